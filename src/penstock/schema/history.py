"""What the tables of a source looked like at each place of its log.

Files in a folder, numbered: each begins with a whole catalogue and goes on with the changes after it, so the tables at
a place are those of the last file that begins before it, and its changes up to there. A change is on the disk before
anyone sees what it made of the tables. A file that is damaged is an error that names it.
"""

import fcntl
import logging
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Self

from penstock.disk import make_private_folder, sync_folder
from penstock.errors import SchemaError
from penstock.model import Position
from penstock.schema.catalogue import Applied, Catalogue
from penstock.schema.change import Change
from penstock.schema.ddl import kind_of
from penstock.schema.dialect import Dialect
from penstock.schema.history_file import SUFFIX, Content, Cut, Tail, create, read, read_head

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 1000
_LOCK = "schema.lock"


class SchemaHistory:
    """Of one instance. One process at a time, and in it one thread, writes."""

    def __init__(
        self, folder: Path, first: Callable[[], tuple[Position, Catalogue]], *, snapshot_every: int = SNAPSHOT_EVERY
    ) -> None:
        """`first` gives the tables and the place at which a new history begins; it is asked only when there is none."""
        self.folder = folder
        self.cut: Cut | None = None
        self._every = snapshot_every
        self._lock = _claim(folder)
        self._numbers = self._found()
        self._places: list[Position] = []  # of the newest file: its beginning, then each change
        self._catalogues: list[Catalogue] = []
        self._changes: list[Change] = []
        self._older: tuple[int, tuple[list[Position], list[Catalogue], list[Change]]] | None = None  # read last
        self._tail: Tail | None = None
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
        if self._tail:
            self._tail.close()
            self._tail = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def first(self) -> Position:
        """Before it nothing is known."""
        return self._begins(self._numbers[0])

    @property
    def last(self) -> Position:
        """Of the last change."""
        return self._places[-1]

    @property
    def catalogue(self) -> Catalogue:
        """After the last change."""
        return self._catalogues[-1]

    def begin_of(self, position: Position) -> Position:
        """Where the part of the history begins that says what the tables were there."""
        if position >= self._places[0]:
            return self._places[0]
        return next((begin for begin in map(self._begins, reversed(self._numbers)) if begin <= position), self.first)

    def at(self, position: Position) -> Catalogue:
        """The tables at a place: all changes that end there or before it have been made."""
        places, catalogues, _ = self._around(position)
        return catalogues[bisect_right(places, position) - 1]

    def record(self, change: Change) -> Applied:
        """Make a change. One that comes again, after a restart, gives what it gave the first time.

        A statement that is not understood makes the tables that it names unknown, and says so in what it gives. If it
        names none it is a DdlError, a SchemaError, and not recorded.
        """
        if change.position <= self.last:
            return self._again(change)
        applied = self.catalogue.follow(change.text, change.database, change.session)
        if applied.catalogue is self.catalogue:
            return applied
        if len(self._changes) >= self._every:
            self._begin(self.last, self.catalogue)
        self._open_tail().append(change)
        self._add(change, applied.catalogue)
        return applied

    def restart(self, position: Position, catalogue: Catalogue) -> None:
        """Go on with other tables: those of another server, of another release, or read anew."""
        if position < self.last:
            raise SchemaError(f"the schema history in {self.folder} is at {self.last}, after {position}")
        self._begin(position, catalogue)

    def snapshot(self) -> None:
        """Begin a new file, so that restoring starts with the present tables."""
        self._begin(self.last, self.catalogue)

    def compact(self, lowest: Position) -> int:
        """Delete the files that nobody needs who begins at `lowest` or later. Gives how many."""
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

    def _again(self, change: Change) -> Applied:
        """By the tables before it."""
        places, catalogues, changes = self._around(change.position, is_after=True)
        at = bisect_left(places, change.position)
        before = catalogues[at - 1]
        is_known = at < len(places) and places[at] == change.position
        if is_known and changes[at - 1].text != change.text:
            raise SchemaError(
                f"the schema history in {self.folder} has another statement at {change.position}:"
                f" {changes[at - 1].text!r}, not {change.text!r}; it is of another log"
            )
        if not is_known and any(self._begins(number) == change.position for number in self._numbers):
            # `restart` took the tables from elsewhere.
            kind = kind_of(change.text, Dialect(before.server, change.session))
            return Applied(self.at(change.position), kind)
        if at == len(places) and places is not self._places:
            # After the last change of a file, and before the next one begins: there `restart` left something out.
            return Applied(before, kind_of(change.text, Dialect(before.server, change.session)))
        applied = before.follow(change.text, change.database, change.session)
        if not is_known and applied.catalogue is not before:
            raise SchemaError(
                f"the schema history in {self.folder} lacks the statement at {change.position}: {change.text}"
            )
        return applied

    def _around(
        self, place: Position, *, is_after: bool = False
    ) -> tuple[list[Position], list[Catalogue], list[Change]]:
        """The last file that begins at this place or before it, or only before it, step by step."""
        for number in reversed(self._numbers):
            begin = self._begins(number)
            if begin < place or (begin == place and not is_after):
                break
        else:
            raise SchemaError(
                f"the schema history in {self.folder} begins at {self.first}; what the tables were at"
                f" {place} is not known"
            )
        if number == self._numbers[-1]:
            return self._places, self._catalogues, self._changes
        if self._older is None or self._older[0] != number:
            content = self._read(number)
            self._older = number, (*_steps(content), content.changes)
        return self._older[1]

    def _begins(self, number: int) -> Position:
        return self._places[0] if number == self._numbers[-1] else read_head(self._path(number))[0]

    def _read(self, number: int) -> Content:
        """A file that another one follows: it must be whole, to its end."""
        content, next_one = read(self._path(number)), self._path(number + 1)
        if content.rest or content.checksum != read_head(next_one)[1]:
            raise SchemaError(f"{self._path(number)} is damaged: it does not end where {next_one.name} goes on")
        return content

    def _resume(self) -> None:
        path = self._path(self._numbers[-1])
        content = read(path)
        self._tail = Tail(path, content.checksum, content.end)
        self._places, self._catalogues = _steps(content)
        self._changes = content.changes
        if content.rest:
            self.cut = Cut(path, content.end, content.rest)
            log.warning("%s; the last change is now that of %s", self.cut, self.last)
            self._tail.cut()

    def _begin(self, place: Position, catalogue: Catalogue) -> None:
        number = self._numbers[-1] + 1 if self._numbers else 1
        try:
            checksum = create(self._path(number), place, catalogue, self._tail.checksum if self._tail else 0)
        except OSError as error:
            raise SchemaError(f"{self._path(number)} cannot be written: {error.strerror}") from None
        if self._tail:
            self._tail.close()
        self._tail = Tail(self._path(number), checksum)
        self._numbers.append(number)
        self._places, self._catalogues, self._changes = [place], [catalogue], []

    def _add(self, change: Change, catalogue: Catalogue) -> None:
        self._places.append(change.position)
        self._catalogues.append(catalogue)
        self._changes.append(change)

    def _open_tail(self) -> Tail:
        if self._tail is None:
            raise SchemaError(f"the schema history in {self.folder} is closed")
        return self._tail

    def _found(self) -> list[int]:
        for left in self.folder.glob(f"*{SUFFIX}.new"):
            left.unlink()
        numbers = sorted(int(path.stem) for path in self.folder.glob(f"*{SUFFIX}"))
        for one, other in pairwise(numbers):
            if other != one + 1:
                raise SchemaError(f"{self._path(one + 1)} is missing: the schema history has a gap")
        return numbers

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}{SUFFIX}"


def _steps(content: Content) -> tuple[list[Position], list[Catalogue]]:
    places, catalogues = [content.place], [content.catalogue]
    for change in content.changes:
        applied = catalogues[-1].follow(change.text, change.database, change.session)
        places.append(change.position)
        catalogues.append(applied.catalogue)
    return places, catalogues


def _claim(folder: Path) -> int:
    make_private_folder(folder)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise SchemaError(f"{folder} is in use by another process: a server that runs; stop it first") from None
    return lock
