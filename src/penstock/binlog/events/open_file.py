"""Log files as they lie on a disk: plain, or compressed by gzip or zstd, which are expanded while they are read."""

import gzip
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from penstock.errors import BinlogError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Frames that readers of zstd skip begin with 50 to 5f and these; pzstd writes one before each of its frames.
_ZSTD_SKIPPED = b"\x2a\x4d\x18"
_ENDINGS = {".gz", ".zst", ".zstd"}


class LogBytes(Protocol):
    """The expanded bytes of a file."""

    def readinto(self, into: memoryview, /) -> int | None:
        """Fill the memory, or a part of it, and return how many bytes; 0 at the end."""
        ...


class _Expanded:
    """Bytes of a compressed file; what its library complains of is said in our words."""

    def __init__(self, path: Path, kind: str, reader: Any) -> None:
        self._path, self._kind, self._reader = path, kind, reader

    def readinto(self, into: memoryview, /) -> int:
        """Read expanded bytes into a buffer, and return how many; 0 at the end. Raises BinlogError for a broken
        file."""
        try:
            return int(self._reader.readinto(into))
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            raise BinlogError(f"{self._path} is not whole: it cannot be expanded by {self._kind}: {error}") from None


def log_name(path: Path) -> str:
    """Return the name that the server gave a file: without what a compressing tool has put behind it."""
    return path.name[: -len(path.suffix)] if is_compressed_name(path) else path.name


def is_compressed_name(path: Path) -> bool:
    """Tell whether a file is compressed, by its name."""
    return path.suffix in _ENDINGS


@contextmanager
def open_log(path: Path) -> Generator[LogBytes, None, None]:
    """Open a log file; whether it is compressed is told by its first bytes, so that a pipe can be read too."""
    with path.open("rb") as file:
        head = file.peek(len(_ZSTD))[: len(_ZSTD)]
        if head.startswith(_GZIP):
            with gzip.GzipFile(fileobj=file) as expanded:
                yield _Expanded(path, "gzip", expanded)
        elif _is_zstd(head):
            with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as expanded:
                yield _Expanded(path, "zstd", expanded)
        else:
            yield _Plain(file)


def _is_zstd(head: bytes) -> bool:
    return head == _ZSTD or (head[1:] == _ZSTD_SKIPPED and head[0] & 0xF0 == 0x50)


class _Plain:
    """Bytes of a file as it is."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file

    def readinto(self, into: memoryview, /) -> int:
        """Read bytes into a buffer, and return how many; 0 at the end."""
        # What a pipe has now is enough: `readinto` would wait until all of it is filled.
        return self._file.readinto1(into)


def read_start(path: Path, size: int) -> bytes:
    """Return the first bytes of a log file; fewer when it has no more."""
    data = bytearray(size)
    with memoryview(data) as view, open_log(path) as file:
        done = 0
        while done < size and (count := file.readinto(view[done:])):
            done += count
    return bytes(data[:done])
