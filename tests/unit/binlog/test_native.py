"""Kernels as machine code: kept on disk, loaded without numba, refused for other arrays than they were made for."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.binlog import native
from penstock.binlog.compile import find_kernels
from penstock.binlog.kernel import BYTES, I64, IS_CHECKED, PAIR, Kernel, kernel, shared
from penstock.binlog.values import numbers

pytestmark = pytest.mark.skipif(IS_CHECKED, reason="with bounds checks numba calls the kernels itself")


@shared
def _twice(value: int) -> int:
    return _FACTOR * value


_FACTOR = 2


def _sum(data: Any, end: int) -> Any:
    total = 0
    for k in range(end):
        total += np.int64(data[k])
    return _twice(total), end


def a_kernel() -> Kernel:
    made = kernel(PAIR(BYTES, I64))(_sum)
    assert isinstance(made, Kernel)
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where code is looked for."""
    real = native._cache_files
    monkeypatch.setattr(native, "_cache_files", lambda kernel: iter([tmp_path / next(iter(real(kernel))).name]))
    return tmp_path


def test_every_kernel_stands_alone() -> None:
    """None needs numba's runtime, so that all of them are loaded without it."""
    made = find_kernels()
    assert len(made) > 30
    assert {kernel.__name__ for kernel in made if not isinstance(kernel.compiled, native._Native)} == set()


def test_code_is_kept_and_loaded_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert a_kernel()(np.array([1, 2, 3], np.uint8), 3) == (12, 3)
    (first,) = folder.iterdir()
    assert first.stat().st_mode & 0o444 == 0o444  # for all users of an installation
    monkeypatch.setattr(native, "_compile", None)  # would fail when called
    assert a_kernel()(np.array([1, 2, 3], np.uint8), 2) == (6, 2)
    assert list(folder.iterdir()) == [first]


def test_another_constant_makes_other_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert a_kernel()(np.array([1], np.uint8), 1) == (2, 1)
    before = list(folder.iterdir())
    monkeypatch.setitem(globals(), "_FACTOR", 5)
    monkeypatch.delitem(vars(_twice), "dispatcher", raising=False)
    assert a_kernel()(np.array([1], np.uint8), 1) == (5, 1)
    assert len(list(folder.iterdir())) == 2
    assert before[0] in folder.iterdir()


def test_code_belongs_to_a_function_and_not_to_its_file() -> None:
    """A package may be installed with the times of another version's files."""

    def digest(source: str, file: str) -> str:
        names: dict[str, Any] = {}
        exec(compile(source, file, "exec"), names)  # noqa: S102
        made: Any = kernel(I64(I64))(names["add"])
        return native._digest(made)

    code = "def add(value):\n    return value + 1\n"
    assert digest(code, "a.py") == digest("\n\n" + code, "b.py")
    assert digest(code, "a.py") != digest(code.replace("1", "2"), "a.py")
    assert digest(code, "a.py") != digest(code.replace("+", "-"), "a.py")


def test_code_that_is_long_out_of_use_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_kernel()(np.array([1], np.uint8), 1)
    (old,) = folder.iterdir()
    os.utime(old, (0, 0))
    monkeypatch.setitem(globals(), "_FACTOR", 7)
    monkeypatch.delitem(vars(_twice), "dispatcher", raising=False)
    assert a_kernel()(np.array([1], np.uint8), 1) == (7, 1)
    assert old not in folder.iterdir()


@pytest.mark.parametrize("size", [0, 10, 40, 500])
def test_a_damaged_file_is_compiled_again(folder: Path, size: int) -> None:
    a_kernel()(np.array([1], np.uint8), 1)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    assert a_kernel()(np.array([1, 2], np.uint8), 2) == (6, 2)
    assert native._read_cached_code(path) is not None
    assert list(folder.iterdir()) == [path]


def test_a_user_without_a_home_has_one_folder_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert len(list(native._cache_files(a_kernel()))) == 1


@pytest.mark.parametrize(
    "offsets",
    [np.zeros(3, np.int64), np.zeros((3, 1), np.int32), np.zeros(6, np.int32)[::2]],
    ids=["other numbers", "other dimensions", "with gaps"],
)
def test_other_arrays_are_refused(offsets: Any) -> None:
    with pytest.raises(TypeError, match="a kernel wants int32 of 1 dimensions in C order"):
        numbers.pack_validity(offsets, np.zeros(1, np.uint8))


def test_read_only_arrays_are_not_written() -> None:
    bits = np.zeros(1, np.uint8)
    bits.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        numbers.pack_validity(np.zeros(3, np.int32), bits)


@pytest.mark.slow
def test_a_process_without_a_cache_to_write_works() -> None:
    """It compiles in memory."""
    code = """
import sys, pathlib
sys.dont_write_bytecode = True
from penstock.binlog import native
native._cache_files = lambda one: iter([pathlib.Path("/proc/nowhere") / "x.code"])
import numpy as np
from penstock.binlog.values import numbers
bits = np.zeros(1, np.uint8)
numbers.pack_validity(np.array([0, -1, 3], np.int32), bits)
print(bits[0])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert run.stdout.split() == ["5"], run.stderr
