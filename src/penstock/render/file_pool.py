"""Many files to write to, few of them open at a time."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

_MOST_OPEN = 100


class Sink(ABC):
    """What Arrow asks of a file, for one that is only written to, from its start to its end."""

    def __init__(self) -> None:
        self._at = 0
        self.closed = False

    @abstractmethod
    def _put(self, data: Any) -> None: ...

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._put(data)
        self._at += size
        return size

    def tell(self) -> int:
        return self._at

    @abstractmethod
    def flush(self) -> None: ...

    def close(self) -> None:
        self.flush()
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class Pipe(Sink):
    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def _put(self, data: Any) -> None:
        self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()


class FilePool:
    """Opens a file again, at its end, when it is written to after it had to make room for another."""

    def __init__(self, most_open: int = _MOST_OPEN) -> None:
        self._most_open = most_open
        self._open: OrderedDict[Path, BinaryIO] = OrderedDict()  # the one used last is the last

    def create(self, path: Path) -> Sink:
        self._handle(path, "wb")
        return _PooledFile(self, path)

    def write(self, path: Path, data: Any) -> None:
        if path in self._open:
            self._open.move_to_end(path)
            self._open[path].write(data)
        else:
            self._handle(path, "ab").write(data)

    def _handle(self, path: Path, mode: str) -> Any:
        while len(self._open) >= self._most_open:
            self._open.popitem(last=False)[1].close()
        file: Any = path.open(mode)
        self._open[path] = file
        return file

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


class _PooledFile(Sink):
    def __init__(self, pool: FilePool, path: Path) -> None:
        super().__init__()
        self._pool, self._path = pool, path

    def _put(self, data: Any) -> None:
        self._pool.write(self._path, data)

    def flush(self) -> None:
        """When the pool closes it."""
