"""The SQL that undoes the log: the last transaction first, in each the last change first.

The log is read forwards once. What each block needs to be undone goes, compressed, into a temporary file, which is then
read backwards: memory holds one block and two numbers per block, whatever the size of the log.
"""

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident
from penstock.binlog.events.statement import StatementEvent
from penstock.binlog.rows.table_changes import RowChangeKind, TableChanges
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions
from penstock.errors import BinlogError
from penstock.model import Position
from penstock.render import text
from penstock.render.frame import Frame, heading, placed
from penstock.render.page import OUTSIDE, LineContext, LineFormat, Page, PageText, Role
from penstock.render.sql import check_names, delete, insert, update, where
from penstock.render.sql_text import PREAMBLE
from penstock.render.weave import Chosen, Line, Written, weave

_COMMIT = text.of_list(["", "COMMIT;\n"])
Tag = Position | None  # where the XA transaction begins that a text belongs to


class FlashbackLines(LineFormat):
    """Each page comes out reversed; the pages themselves are to be written in reverse.

    What an XA transaction has prepared is to be undone only if it was committed, which the log says later: its texts
    carry a tag, and `check` and `is_undone` tell at the end what became of it.
    """

    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._prepared: dict[Position, str] = {}
        self._committed: dict[Position, bool] = {}
        self.statements = 0  # that cannot be undone

    def begin(self) -> str:
        return PREAMBLE

    def closing(self, last: LineContext) -> str:
        """Return the last text to be added, so the first to be read, of a log that ends inside a transaction."""
        return "BEGIN;\n" if last.is_open() and last.transaction not in self.xa.xids else ""

    def changes(self, changes: TableChanges) -> Line:
        check_names(changes.table)
        _check_images(changes)
        match changes.kind:
            case RowChangeKind.INSERT:
                return delete(changes, changes.after, changes.last)
            case RowChangeKind.DELETE:
                return insert(changes, changes.shown_of(changes.before), changes.first)
            case RowChangeKind.UPDATE:
                row = where(changes, changes.after, changes.last)
                return update(changes, changes.shown_of(changes.before), changes.first, row)

    def statement(self, block: Block, statement: StatementEvent) -> str:
        if statement.is_savepoint:
            return ""
        place = int(block.column("position")[statement.event])
        if statement.is_in_transaction and statement.is_rollback_to_savepoint:
            raise _rolled_back(f"{block.file}:{place} the transaction goes back to a savepoint")
        return self._named(block, statement.event, statement.text)

    def _named(self, block: Block, event: int, sql: str) -> str:
        self.statements += 1
        place = int(block.column("position")[event])
        return f"-- {block.file}:{place} cannot be undone: {' '.join(sql.split())}\n"

    def outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        if outcome.prepared is not None:
            self._committed[outcome.prepared] = outcome.is_commit
            return ""
        return self._named(block, event, f"{outcome.sql}, prepared before") if outcome.is_commit else ""

    def incident(self, block: Block, incident: Incident) -> str:  # noqa: ARG002 - it says where it is
        return f"-- {incident}; what is lost cannot be undone\n"

    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:  # noqa: ARG002 - nothing
        return []

    def check(self) -> None:
        """At the end: an XA transaction of which the log does not say what became."""
        for place, xid in self._prepared.items():
            if place not in self._committed:
                raise BinlogError(
                    f"{place} prepares the XA transaction {xid}, and this part of the log does not say whether it was"
                    " committed: read on to where that is said, or leave it out with --since and --until"
                )

    def is_undone(self, tag: Tag) -> bool:
        return tag is None or self._committed.get(tag, True)

    def parts(self, lines: PageText, before: LineContext) -> Iterator[tuple[Tag, memoryview]]:
        """Yield the parts of a page in the order of the log; each is reversed in itself. `before` is what the page
        before it left."""
        page = lines.page
        if not len(page):
            return
        frame = Frame.of(page, before)
        for i, role, _ in frame.unusual_ends(page):
            place = Position(page.block.file, int(page.transaction[i]))
            if role is Role.ROLLBACK:
                raise _rolled_back(f"{place} the transaction ends in ROLLBACK")
            if role is Role.ONE_PHASE:
                self._committed[place] = True
        heads = text.join("-- ", heading(page.block, page.event[frame.ends]), "\nBEGIN;\n")
        begins, texts = placed(heads, frame.ends), Written(lines.texts)
        for tag, first, stop in self._runs(page):
            backwards = np.arange(first, stop)[::-1].copy()
            line = (
                Chosen(begins.column, begins.rows[backwards]),
                texts.at(backwards),
                Written(_COMMIT).at(frame.starts[backwards].astype(np.int64)),
            )
            yield tag, text.raw_bytes(weave(line, backwards.size))

    def _runs(self, page: Page) -> Iterator[tuple[Tag, int, int]]:
        """Where XA transactions with changes are, and what is between them."""
        if not self.xa.xids:
            yield None, 0, len(page)
            return
        begins = np.where(np.isin(page.transaction, list(self.xa.xids)), page.transaction, OUTSIDE)
        bounds = [0, *(np.flatnonzero(np.diff(begins)) + 1).tolist(), len(page)]
        for first, stop in pairwise(bounds):
            begin = int(begins[first])
            place = Position(page.block.file, begin) if begin != OUTSIDE else None
            if place is not None and (page.role[first:stop] == Role.CHANGE).any():
                self._prepared[place] = self.xa.xids[begin]
            yield place, first, stop


def _rolled_back(what: str) -> BinlogError:
    return BinlogError(
        f"{what}, so only its changes in tables without transactions stayed, and the log does not say which these are:"
        " leave it out with --since and --until"
    )


def _check_images(changes: TableChanges) -> None:
    if changes.partial:
        place = int(changes.block.column("position")[changes.event[0]])
        raise BinlogError(
            f"{changes.block.file}:{place} the update in {changes.table.name} changes parts of the JSON document in"
            f" column {changes.partial[0].name}, and the log does not have the document before it: with"
            " binlog_row_value_options = PARTIAL_JSON and binlog_row_image = MINIMAL or NOBLOB such a change cannot be"
            " undone"
        )
    if changes.absent:
        place = int(changes.block.column("position")[changes.event[0]])
        raise BinlogError(
            f"{changes.block.file}:{place} the {changes.kind.value} in {changes.table.name} does not carry column"
            f" {changes.absent[0]}: with binlog_row_image = MINIMAL or NOBLOB the log leaves out values, and what it"
            " does not have cannot be put back; a generated column, which MariaDB 11 always leaves out, is none that"
            " need be: name it with --without"
        )


class Spool:
    """Texts that come out in the reverse of the order in which they went in."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="penstock-flashback-")  # noqa: SIM115 - closed by __exit__
        self._sizes: list[tuple[int, int, Tag]] = []  # on disk, and as text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, tag: Tag, data: bytes | memoryview) -> None:
        if len(data):
            packed = pa.compress(data, "lz4", asbytes=True)
            try:
                self._file.write(packed)
            except OSError as error:
                error.filename = tempfile.gettempdir()
                raise
            self._sizes.append((len(packed), len(data), tag))

    def backwards(self, is_wanted: Callable[[Tag], bool]) -> Iterator[bytes]:
        end = self._file.seek(0, 2)
        while self._sizes:
            size, whole, tag = self._sizes.pop()
            end -= size
            if is_wanted(tag):
                self._file.seek(end)
                yield pa.decompress(self._file.read(size), whole, "lz4", asbytes=True)
