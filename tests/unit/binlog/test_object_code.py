"""Object code of kernels runs without LLVM, and code of another kind is left to it."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from penstock.binlog import object_code
from penstock.binlog.events.checksum import checksum_of
from penstock.binlog.native import _compile


def code_of(kernel: object) -> tuple[bytes, str]:
    raw = _compile(kernel)  # type: ignore[arg-type]
    assert raw is not None
    (length,) = struct.unpack_from("<I", raw)
    return raw[4 + length :], raw[4 : 4 + length].decode()


@pytest.fixture(scope="module")
def compiled() -> tuple[bytes, str]:
    from penstock.binlog.events import checksum

    return code_of(checksum._checksum)


def test_kernels_are_loaded_and_right_without_llvm_and_numba() -> None:
    program = (
        "import sys, numpy as np, zlib\n"
        "from penstock.binlog.events.checksum import checksum_of\n"
        "data = np.frombuffer(bytes(range(256)) * 9, np.uint8)\n"
        "assert checksum_of(data) == zlib.crc32(data.tobytes())\n"
        "print(*sorted({'llvmlite', 'numba'} & sys.modules.keys()))"
    )
    checksum_of(np.zeros(4, np.uint8))  # it is compiled by now
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [], done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


def test_code_is_put_into_memory_that_cannot_be_written(compiled: tuple[bytes, str]) -> None:
    loaded = object_code.load(*compiled)
    assert loaded is not None
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        own = next(line for line in maps if _holds(line, loaded.address))
    assert own.split()[1].startswith("r-x")


def _holds(line: str, address: int) -> bool:
    first, last = (int(part, 16) for part in line.split(maxsplit=1)[0].split("-"))
    return first <= address < last


@pytest.mark.parametrize("what", ["no ELF", "another machine", "an unknown relocation", "an unknown name"])
def test_other_code_is_left_to_llvm(compiled: tuple[bytes, str], what: str) -> None:
    code, name = bytearray(compiled[0]), compiled[1]
    match what:
        case "no ELF":
            code[:4] = b"\x7fMEH"
        case "another machine":
            struct.pack_into("<H", code, 18, 183)
        case "an unknown relocation":
            at = _first_relocation(code)
            struct.pack_into("<I", code, at + 8, 2)
        case _:
            name = "nothing"
    assert object_code.load(bytes(code), name) is None


def _first_relocation(code: bytearray) -> int:
    (table,), (size, count) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HH", code, 58)
    for i in range(count):
        _, kind, _, _, offset, length, *_ = struct.unpack_from("<IIQQQQIIQQ", code, table + i * size)
        if kind == 4 and length:
            return offset
    raise AssertionError("the code has no relocation")


def test_a_kernel_that_llvm_loads_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.binlog import native
    from penstock.binlog.events import checksum

    monkeypatch.setattr(object_code, "load", lambda *_: None)
    kernel = native.callable_of(checksum._checksum)  # type: ignore[arg-type]
    data = np.frombuffer(bytes(range(256)) * 5, np.uint8)
    assert kernel(data, checksum.TABLES) == zlib.crc32(data.tobytes())
