"""The tests on broken bytes once more, in a process whose kernels check every index they read or write."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.binlog.copying import copy_bytes

_HERE = Path(__file__).parent
_TESTS = (
    "test_broken_log.py",
    "test_expand.py",
    "test_locate.py",
    "test_count_rows.py",
    "test_decode.py",
    "test_text.py",
    "test_json_text.py",
    "test_json_patch.py",
    "test_json_operations.py",
    "test_gtid_text.py",
    "test_changes.py",
    "test_event_index.py",
    "test_known_tables.py",
    "test_mixed_rows.py",
    "test_gather.py",
    "../render/test_text_kernels.py",
    "../source/test_packet.py",
)
_NAMES = (
    "broken or garbage or named or decimals or integers or times or test_bytes or every_number or cut or pieces"
    " or shared or holds_itself or lying or differ or kernels"
)


@pytest.mark.slow
@pytest.mark.timeout(900)  # it compiles all kernels once more
def test_no_kernel_reads_or_writes_outside_of_its_arrays(request: pytest.FixtureRequest) -> None:
    # numba's cache sees neither the setting nor changed helpers, so each state of the sources has its own.
    sources = sorted(Path(penstock.__file__).parent.rglob("*.py"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources if {"binlog", "source"} & set(path.parts)))
    folder = request.config.cache.mkdir(f"numba-{state.hexdigest()[:16]}")  # type: ignore[union-attr]
    run = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider",
            "-k", _NAMES,
            *(str(_HERE / name) for name in _TESTS),
        ],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder), "EXAMPLES": "0.3"},
        cwd=_HERE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout


def test_copies_are_checked_in_that_process_too() -> None:
    code = "from penstock.binlog.copying import copy_bytes as c; print(c.__name__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["_by_byte"]
    assert copy_bytes.__name__ == ("_by_byte" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "memcpy")
