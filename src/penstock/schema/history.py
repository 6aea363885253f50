"""What the tables of a source looked like at each position of its log.

Numbered files in a folder: each begins with a whole catalogue and continues with the changes after it, so the tables at
a position are those of the last file that begins before it, and its changes up to there. A change is on the disk before
it takes effect. A damaged file is an error that names it.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Self

from penstock.disk import FileLock, sync_folder
from penstock.errors import SchemaError
from penstock.model import Position, TableName
from penstock.schema.catalogue import AppliedStatement, Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.ddl import classify_statement_text
from penstock.schema.dialect import SqlDialect
from penstock.schema.history_file import (
    SUFFIX,
    HistoryAppender,
    HistoryContent,
    TruncatedEnd,
    create_file,
    read_file,
    read_head,
)

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 1000
LOCK_FILE = "schema.lock"


class SchemaHistory:
    """The schema history of one instance. One process at a time opens it, and one thread in it writes.

    history = SchemaHistory(folder, lambda: (start, catalogue))
    tables = history.catalogue_at(position)
    """

    def __init__(
        self,
        folder: Path,
        first: Callable[[], tuple[Position, Catalogue]],
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        destination: str = "",
    ) -> None:
        """`first` returns the tables and the position at which a new history begins; it is called only when there is
        none."""
        self.folder, self._destination = folder, destination
        self.cut: TruncatedEnd | None = None
        self._every = snapshot_every
        self._lock = _claim(folder)
        self._numbers = self._list_file_numbers()
        self._positions: list[Position] = []  # of the newest file: its beginning, then each change
        self._catalogues: list[Catalogue] = []
        self._changes: list[SchemaChange] = []
        self._older: tuple[int, tuple[list[Position], list[Catalogue], list[SchemaChange]]] | None = None  # read last
        self._tail: HistoryAppender | None = None
        try:
            if self._numbers:
                self._resume()
            else:
                position, catalogue = first()
                self._begin(position, catalogue)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and release the folder."""
        if self._tail:
            self._tail.close()
            self._tail = None
        self._lock.release()

    @property
    def first(self) -> Position:
        """Return the position before which nothing is known."""
        return self._begins(self._numbers[0])

    @property
    def last(self) -> Position:
        """Return the position of the last change."""
        return self._positions[-1]

    @property
    def catalogue(self) -> Catalogue:
        """Return the tables after the last change."""
        return self._catalogues[-1]

    def begin_of_part(self, position: Position) -> Position:
        """Return where the part of the history begins that says what the tables were at a position."""
        if position >= self._positions[0]:
            return self._positions[0]
        return next((begin for begin in map(self._begins, reversed(self._numbers)) if begin <= position), self.first)

    def catalogue_at(self, position: Position) -> Catalogue:
        """Return the tables at a position: all changes that end there or before it are applied."""
        positions, catalogues, _ = self._around(position)
        return catalogues[bisect_right(positions, position) - 1]

    def last_change_of(self, table: TableName, position: Position, column: str = "") -> SchemaChange | None:
        """Return the last change of a table's definition at or before a position, or of one of its columns; None when
        the history has none."""

        def find(catalogue: Catalogue) -> object:
            """Return what the change must have changed."""
            definition = catalogue.find(table)
            return definition.schema.column(column) if column and definition is not None else definition

        if position < self.first:
            return None
        steps = self._around(position)
        while True:
            positions, catalogues, changes = steps
            for at in range(bisect_right(positions, position) - 1, 0, -1):
                if find(catalogues[at]) != find(catalogues[at - 1]):
                    return changes[at - 1]
            position = positions[0]
            if position <= self.first:
                return None
            steps = self._around(position, is_after=True)

    def record(self, change: SchemaChange) -> AppliedStatement:
        """Record a change and apply it. A change that is read again, after a restart, returns what it returned the
        first time.

        A statement that is not understood makes the tables that it names unknown, and says so in the result. If it
        names none it is a DdlError, a SchemaError, and not recorded.
        """
        if change.position <= self.last:
            return self._apply_again(change)
        applied = self.catalogue.apply_or_skip(change.text, change.database, change.session)
        if applied.catalogue is self.catalogue:
            return applied
        if len(self._changes) >= self._every:
            self._begin(self.last, self.catalogue)
        self._open_tail().append(change)
        self._add(change, applied.catalogue)
        return applied

    def restart(self, position: Position, catalogue: Catalogue) -> None:
        """Replace all tracked tables from `position` on, by those of another server, of another release of the server,
        or by those that were read from the source again."""
        if position < self.last:
            raise SchemaError(f"the schema history in {self.folder} is at {self.last}, after {position}")
        self._begin(position, catalogue)

    def snapshot(self) -> None:
        """Begin a new file, so that restoring starts with the present tables."""
        self._begin(self.last, self.catalogue)

    def compact(self, lowest: Position) -> int:
        """Delete the files that a reader which begins at `lowest` or later does not need. Return how many."""
        gone = [number for number in self._numbers[:-1] if self._begins(number + 1) <= lowest]
        try:
            for number in gone:
                self._path(number).unlink()
                self._numbers.remove(number)
            if gone:
                sync_folder(self.folder)
        except OSError as error:
            raise SchemaError(f"old files in {self.folder} cannot be removed: {error.strerror}") from None
        return len(gone)

    def _apply_again(self, change: SchemaChange) -> AppliedStatement:
        """Apply a recorded change again, to the tables before it, and return what it did."""
        positions, catalogues, changes = self._around(change.position, is_after=True)
        at = bisect_left(positions, change.position)
        before = catalogues[at - 1]
        is_known = at < len(positions) and positions[at] == change.position
        if is_known and changes[at - 1].text != change.text:
            raise SchemaError(
                f"the schema history in {self.folder} has another statement at {change.position}:"
                f" {changes[at - 1].text!r}, not {change.text!r}; it is of another log"
            )
        if not is_known and any(self._begins(number) == change.position for number in self._numbers):
            # `restart` took the tables from elsewhere.
            kind = classify_statement_text(change.text, SqlDialect(before.server, change.session))
            return AppliedStatement(self.catalogue_at(change.position), kind)
        if at == len(positions) and positions is not self._positions:
            # After the last change of a file, and before the next one begins: there `restart` left something out.
            return AppliedStatement(
                before, classify_statement_text(change.text, SqlDialect(before.server, change.session))
            )
        applied = before.apply_or_skip(change.text, change.database, change.session)
        if not is_known and applied.catalogue is not before:
            raise SchemaError(
                f"the schema history in {self.folder} lacks the statement at {change.position}: {change.text}"
            )
        return applied

    def _around(
        self, position: Position, *, is_after: bool = False
    ) -> tuple[list[Position], list[Catalogue], list[SchemaChange]]:
        """Return, step by step, the last file that begins at this position or before it, or only before it."""
        for number in reversed(self._numbers):
            begin = self._begins(number)
            if begin < position or (begin == position and not is_after):
                break
        else:
            raise SchemaError(
                f"the schema history in {self.folder} begins at {self.first}; what the tables were at"
                f" {position} is not known"
            )
        if number == self._numbers[-1]:
            return self._positions, self._catalogues, self._changes
        if self._older is None or self._older[0] != number:
            content = self._read(number)
            self._older = number, (*_steps(content), content.changes)
        return self._older[1]

    def _begins(self, number: int) -> Position:
        return self._positions[0] if number == self._numbers[-1] else read_head(self._path(number))[0]

    def _read(self, number: int) -> HistoryContent:
        """Read a file that another one follows: it must be complete."""
        content, next_one = read_file(self._path(number)), self._path(number + 1)
        if content.rest or content.checksum != read_head(next_one)[1]:
            raise SchemaError(f"{self._path(number)} is damaged: it does not end where {next_one.name} continues")
        return content

    def _resume(self) -> None:
        path = self._path(self._numbers[-1])
        content = read_file(path)
        self._tail = HistoryAppender(path, content.checksum, content.end)
        self._positions, self._catalogues = _steps(content)
        self._changes = content.changes
        if content.rest:
            self.cut = TruncatedEnd(path, content.end, content.rest)
            log.warning(
                "incomplete end of schema history removed destination=%s reason=%s last_change=%s: later DDL is read"
                " from the binlog again",
                self._destination,
                self.cut,
                self.last,
            )
            self._tail.cut()

    def _begin(self, position: Position, catalogue: Catalogue) -> None:
        number = self._numbers[-1] + 1 if self._numbers else 1
        try:
            checksum = create_file(self._path(number), position, catalogue, self._tail.checksum if self._tail else 0)
        except OSError as error:
            raise SchemaError(f"{self._path(number)} cannot be written: {error.strerror}") from None
        if self._tail:
            self._tail.close()
        self._tail = HistoryAppender(self._path(number), checksum)
        self._numbers.append(number)
        self._positions, self._catalogues, self._changes = [position], [catalogue], []

    def _add(self, change: SchemaChange, catalogue: Catalogue) -> None:
        self._positions.append(change.position)
        self._catalogues.append(catalogue)
        self._changes.append(change)

    def _open_tail(self) -> HistoryAppender:
        if self._tail is None:
            raise SchemaError(f"the schema history in {self.folder} is closed")
        return self._tail

    def _list_file_numbers(self) -> list[int]:
        for left in self.folder.glob(f"*{SUFFIX}.new"):
            left.unlink()
        numbers = sorted(int(path.stem) for path in self.folder.glob(f"*{SUFFIX}"))
        for number, following in pairwise(numbers):
            if following != number + 1:
                raise SchemaError(f"{self._path(number + 1)} is missing: the schema history has a gap")
        return numbers

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}{SUFFIX}"


def _steps(content: HistoryContent) -> tuple[list[Position], list[Catalogue]]:
    positions, catalogues = [content.position], [content.catalogue]
    for change in content.changes:
        applied = catalogues[-1].apply_or_skip(change.text, change.database, change.session)
        positions.append(change.position)
        catalogues.append(applied.catalogue)
    return positions, catalogues


def _claim(folder: Path) -> FileLock:
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire()
    except BlockingIOError:
        raise SchemaError(f"{folder} is in use by another process: a server that runs; stop it first") from None
    except OSError as error:
        raise SchemaError(f"{lock.path} cannot be written: {error.strerror}") from None
    return lock
