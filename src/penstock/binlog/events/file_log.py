"""Reads log files on disk, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.commit_time import has_commit_since
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.layout import MAGIC
from penstock.binlog.events.open_file import is_compressed_name, log_name, read_start
from penstock.errors import BinlogError, ConfigurationError
from penstock.model import Position
from penstock.model.position import ensure_file_number
from penstock.model.start_point import LogPoint, Moment

Warn = Callable[[str], None]
_BLOCK_BYTES = 3 << 20  # a block costs milliseconds whatever its size; two at once, and their text, take 100 MB


class FileLog:
    """Yields the blocks of files in the order in which they are given. A file that ends inside an event gives
    everything before that, with a warning.

        for block in FileLog([Path("binlog.000007")], None, print, verify=True):
            ...
    """

    def __init__(self, paths: Sequence[Path], since: LogPoint | None, warn: Warn, *, verify: bool) -> None:
        names = name_files(self.checked(paths))
        first = _first_wanted(paths, names, since)
        self._paths, self._names = paths[first:], names[first:]
        self._before = list(zip(paths[:first], names[:first], strict=True))
        self._warn = warn
        self._verify = verify
        self.done = 0
        sizes = [path.stat().st_size for path in self._paths if path.is_file()]
        # How much a compressed file holds is not known before it is read.
        self.total = 0 if any(map(is_compressed_name, self._paths)) else sum(sizes)

    @staticmethod
    def checked(paths: Sequence[Path]) -> Sequence[Path]:
        """Return the paths, if all of them are files; raise ConfigurationError otherwise."""
        for path in paths:
            if path.is_dir():
                raise ConfigurationError(f"{printable(path)} is a folder: name the log files in it")
            if not path.exists():
                raise ConfigurationError(f"there is no file {printable(path)}")
        return paths

    def earlier(self) -> Iterator[Block]:
        """Yield the blocks of the files that end before the position where reading begins."""
        for path, file in self._before:
            yield from LogFile(path, name=file, verify=False)

    def __iter__(self) -> Iterator[Block]:
        before = 0
        for path, file in zip(self._paths, self._names, strict=True):
            log = LogFile(path, name=file, verify=self._verify, block_bytes=_BLOCK_BYTES)
            for block in log:
                self.done = before + int(block.column("position")[-1])
                name = printable(block.file)
                yield block if name == block.file else replace(block, file=name)
            before += path.stat().st_size if path.is_file() else 0
            if log.rest:
                self._warn(
                    f"{printable(path)} ends inside an event: the {log.rest} bytes after {log.end.offset} are no whole"
                    " event; everything before is there"
                )
        self.done = self.total


def printable(path: Path | str) -> str:
    """Return a file name as text: a name need not be UTF-8."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def name_files(paths: Sequence[Path]) -> list[str]:
    """Return the name by which positions have each file: its own, or with a number where it has none.

    A number that rises from file to file lets positions, and with them `seq`, rise too.
    """
    names: list[str] = []
    for path in paths:
        name = log_name(path)
        if ensure_file_number(name) != name:
            name = f"{name}.{Position(names[-1], 0).file_number + 1 if names else 0}"
        names.append(name)
    return names


def _first_wanted(paths: Sequence[Path], names: Sequence[str], since: LogPoint | None) -> int:
    """Return the number of the first file that does not end before the position where reading begins."""
    if isinstance(since, Position):
        numbers = [Position(name, 0).file_number for name in names]
        first = next((i for i, number in enumerate(numbers) if number >= since.file_number), len(paths))
        if paths and first == len(paths):
            raise ConfigurationError(f"{since} is after the last of these files, {names[-1]}")
        return first
    if isinstance(since, Moment):
        opened = [_opened_s(path) for path in paths]
        return first_with(opened, since, lambda i: _reaches(paths[i], since))
    return 0


def first_with(opened: Sequence[int | None], since: Moment, reaches: Callable[[int], bool]) -> int:
    """Return the first of several files that can hold something of this time, by when each was opened and by whether it
    reaches this time.

    A file's first event has the time at which the statement began that made the server open it, which is before the
    last commits in the previous file: that one is skipped only after a look into it. And that time can be any other
    (SET TIMESTAMP): no file is skipped after one that was opened later.
    """
    is_early = [second is not None and since.is_after(second) for second in opened]
    first = max(next((i for i, early in enumerate(is_early) if not early), len(opened)) - 1, 0)
    while first and reaches(first - 1):
        first -= 1
    return first


def _reaches(path: Path, since: Moment) -> bool:
    """Return whether a file has a transaction of this time or later; a file that cannot be read may have one."""
    try:
        return any(has_commit_since(block, since) for block in LogFile(path, verify=False))
    except BinlogError:
        return True


def _opened_s(path: Path) -> int | None:
    """Return the time in the header of a file's first event."""
    if not path.is_file():
        return None
    head = read_start(path, len(MAGIC) + 4)
    return int.from_bytes(head[len(MAGIC) :], "little")
