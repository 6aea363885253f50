"""Many files to write to, few of them open at a time."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

_MAX_OPEN = 100


class WriteOnlyFile(ABC):
    """A file object for Arrow that is only written to, from its start to its end."""

    def __init__(self) -> None:
        self._at = 0
        self.closed = False

    @abstractmethod
    def _write_bytes(self, data: Any) -> None:
        """Write the bytes to where they belong."""

    def write(self, data: Any) -> int:
        """Write bytes, and return how many."""
        size = memoryview(data).nbytes
        self._write_bytes(data)
        self._at += size
        return size

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._at

    @abstractmethod
    def flush(self) -> None:
        """Pass the bytes that are buffered on to the file or the stream."""

    def close(self) -> None:
        """Flush, and refuse further writes."""
        self.flush()
        self.closed = True

    def readable(self) -> bool:
        """Return False: the file is only written to."""
        return False

    def writable(self) -> bool:
        """Return True: the file is only written to."""
        return True

    def seekable(self) -> bool:
        """Return False: the file is written from its start to its end."""
        return False


class PipeFile(WriteOnlyFile):
    """Writes to standard output or another stream that cannot be reopened."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def _write_bytes(self, data: Any) -> None:
        self._stream.write(data)

    def flush(self) -> None:
        """Flush the stream, so that its reader receives all that was written."""
        self._stream.flush()


class FilePool:
    """Keeps at most so many files open, and reopens a file at its end when it is written to again.

    file = FilePool().create(path)
    file.write(b"...")
    """

    def __init__(self, most_open: int = _MAX_OPEN) -> None:
        self._most_open = most_open
        self._open: OrderedDict[Path, BinaryIO] = OrderedDict()  # the one used last is the last

    def create(self, path: Path) -> WriteOnlyFile:
        """Create a file, and return an object that writes to it through the pool."""
        self._open_handle(path, "wb")
        return _PooledFile(self, path)

    def write(self, path: Path, data: Any) -> None:
        """Append bytes to a file of the pool."""
        if path in self._open:
            self._open.move_to_end(path)
            self._open[path].write(data)
        else:
            self._open_handle(path, "ab").write(data)

    def _open_handle(self, path: Path, mode: str) -> Any:
        """Return an open handle of the file, closing the least recently used one if there are too many."""
        while len(self._open) >= self._most_open:
            self._open.popitem(last=False)[1].close()
        file: Any = path.open(mode)
        self._open[path] = file
        return file

    def close(self) -> None:
        """Close all open files."""
        while self._open:
            self._open.popitem()[1].close()


class _PooledFile(WriteOnlyFile):
    """A file of a pool."""

    def __init__(self, pool: FilePool, path: Path) -> None:
        super().__init__()
        self._pool, self._path = pool, path

    def _write_bytes(self, data: Any) -> None:
        self._pool.write(self._path, data)

    def flush(self) -> None:
        """Do nothing: the pool flushes the file when it closes it."""
