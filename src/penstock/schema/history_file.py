"""One file of a schema history: a catalogue, and the changes after it.

Lines of `checksum`, a space, and JSON; a checksum covers its line and all before it, in 8 hex digits. The first line
says where the file begins, the second holds the catalogue there, and every further one is a change. The file is created
with the first two lines; then it only grows. A line without an end is what a crash left of a change that nothing has
relied on. Any other line that does not fit its checksum is damage.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.disk import replace_file
from penstock.errors import SchemaError
from penstock.model import Position
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange, change_from_plain, change_to_plain
from penstock.schema.plain import catalogue_from_plain, catalogue_to_plain

SUFFIX = ".history"
_FORMAT = 1
_CHECKSUM_CHARS = 8


@dataclass(frozen=True, slots=True)
class TruncatedEnd:
    """The part that was cut off the end of a schema history file."""

    path: Path
    offset: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.path} ended within a change: {self.size_bytes} bytes from offset {self.offset} on were cut off"


@dataclass(frozen=True, slots=True)
class HistoryContent:
    """The content of a schema history file: where it begins, the tables there, and the changes since.

    `end` is the offset after the last complete line, and `checksum` covers the file up to it. `rest` is the number of
    bytes after it: more than 0 when a crash left an incomplete last line.
    """

    position: Position
    catalogue: Catalogue
    changes: list[SchemaChange]
    checksum: int
    end: int
    rest: int


def create_file(path: Path, position: Position, catalogue: Catalogue, previous: int) -> int:
    """Create a schema history file, completely or not at all; `previous` is the checksum of the file before it. Return
    its own."""
    head = {"format": _FORMAT, "position": position.to_json(), "previous": previous}
    first, checksum = _line(head, 0)
    second, checksum = _line(catalogue_to_plain(catalogue), checksum)
    replace_file(path, first + second)
    return checksum


def read_file(path: Path) -> HistoryContent:
    """Read a schema history file. Raises SchemaError for one that is damaged or was not written by this package."""
    raw = _bytes(path)
    values: list[Any] = []
    checksum, end = 0, 0
    for value, line_checksum, line_end in _values(path, raw):
        values.append(value)
        checksum, end = line_checksum, line_end
    if len(values) < 2:
        raise _damage(path, end, "it has no catalogue")
    position, _ = _head(path, values[0])
    changes = [change_from_plain(row) for row in values[2:]]
    return HistoryContent(position, catalogue_from_plain(values[1]), changes, checksum, end, len(raw) - end)


def read_head(path: Path) -> tuple[Position, int]:
    """Return where the file begins, and the checksum of the previous file."""
    with path.open("rb") as file:
        for value, _, _ in _values(path, file.readline()):
            return _head(path, value)
    raise _damage(path, 0, "it has no beginning")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from None


def _head(path: Path, head: Any) -> tuple[Position, int]:
    if head.get("format") != _FORMAT:
        raise SchemaError(f"{path} is of format {head.get('format')}: another release of Penstock wrote it")
    return Position.from_json(head["position"]), head["previous"]


def _values(path: Path, raw: bytes) -> Iterator[tuple[Any, int, int]]:
    """Yield each line's value, its checksum and its end, up to a last line that is not complete."""
    checksum, at = 0, 0
    while at < len(raw):
        end = raw.find(b"\n", at) + 1
        line = raw[at : end - 1] if end else raw[at:]
        if not end or (b"\0" in line and end == len(raw)):  # zeros: the size was on the disk before the bytes
            return
        body = line[_CHECKSUM_CHARS + 1 :]
        checksum = zlib.crc32(body, checksum)
        if line[: _CHECKSUM_CHARS + 1] != b"%08x " % checksum:
            raise _damage(path, at, "a line does not fit its checksum")
        yield json.loads(body), checksum, end
        at = end


def _damage(path: Path, at: int, what: str) -> SchemaError:
    return SchemaError(
        f"{path} is damaged at offset {at}: {what}; put back a copy of the file, or move the folder away so that the"
        " history begins again with the source's present tables"
    )


def _line(value: Any, before: int) -> tuple[bytes, int]:
    body = json.dumps(value, separators=(",", ":")).encode()
    checksum = zlib.crc32(body, before)
    return b"%08x %b\n" % (checksum, body), checksum


class HistoryAppender:
    """Appends changes to the last file of a schema history."""

    def __init__(self, path: Path, checksum: int, size: int | None = None) -> None:
        self.path, self.checksum = path, checksum
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size if size is None else size
        self._is_torn = False  # the file is longer than `_size`

    def cut(self) -> None:
        """Truncate the file after the last change that was appended completely, and sync it."""
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)
        self._is_torn = False

    def append(self, change: SchemaChange) -> None:
        """Append a change; it is on the disk when this returns. What an error leaves behind is cut off before the next
        one."""
        line, checksum = _line(change_to_plain(change), self.checksum)
        try:
            if self._is_torn:
                self.cut()
            self._is_torn = True
            self._write(line)
            os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):
                self.cut()
            raise SchemaError(f"{self.path} cannot be written: {error.strerror}") from None
        self.checksum, self._size, self._is_torn = checksum, self._size + len(line), False

    def _write(self, line: bytes) -> None:
        done = 0
        while done < len(line):
            done += os.pwrite(self._file, line[done:], self._size + done)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
