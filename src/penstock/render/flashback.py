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
from penstock.render.frame import TransactionFrame, place_texts, write_headings
from penstock.render.page import OUTSIDE, LineContext, LineFormat, LineRole, PageLines, PageText
from penstock.render.sql import check_names, write_condition, write_delete, write_insert, write_update
from penstock.render.sql_text import PREAMBLE
from penstock.render.weave import ColumnPiece, FormattedColumn, LinePattern, write_lines

_COMMIT = text.texts_from_list(["", "COMMIT;\n"])
Tag = Position | None  # where the XA transaction begins that a text belongs to


class FlashbackFormat(LineFormat):
    """Writes SQL that undoes changes. Each page comes out reversed, and the pages are to be written in reverse order.

    A prepared XA transaction is undone only if it was committed, which the log says later: its texts carry a tag, and
    `check_xa_outcomes` and `is_undone` tell at the end what became of it.
    """

    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._prepared: dict[Position, str] = {}
        self._committed: dict[Position, bool] = {}
        self.statements = 0  # that cannot be undone

    def write_begin(self) -> str:
        """Return the SET statements that the SQL needs."""
        return PREAMBLE

    def write_last(self, last: LineContext) -> str:
        """Return the text to add last, so to be read first, for a log that ends inside a transaction."""
        return "BEGIN;\n" if last.is_in_transaction() and last.transaction not in self.xa.xids else ""

    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of the statement that undoes each change."""
        check_names(changes.table)
        _check_images(changes)
        match changes.kind:
            case RowChangeKind.INSERT:
                return write_delete(changes, changes.after, changes.last)
            case RowChangeKind.DELETE:
                return write_insert(changes, changes.shown_of(changes.before), changes.first)
            case RowChangeKind.UPDATE:
                row = write_condition(changes, changes.after, changes.last)
                return write_update(changes, changes.shown_of(changes.before), changes.first, row)

    def write_statement(self, block: Block, statement: StatementEvent) -> str:
        """Return a comment about a statement, since it cannot be undone."""
        if statement.is_savepoint:
            return ""
        position = int(block.column("position")[statement.event])
        if statement.is_in_transaction and statement.is_rollback_to_savepoint:
            raise _rollback_error(f"{block.file}:{position} the transaction goes back to a savepoint")
        return self._report_statement(block, statement.event, statement.text)

    def _report_statement(self, block: Block, event: int, sql: str) -> str:
        """Count a statement that cannot be undone, and return a comment that names it."""
        self.statements += 1
        position = int(block.column("position")[event])
        return f"-- {block.file}:{position} cannot be undone: {' '.join(sql.split())}\n"

    def write_xa_outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        """Record whether a prepared XA transaction was committed."""
        if outcome.prepared is not None:
            self._committed[outcome.prepared] = outcome.is_commit
            return ""
        return self._report_statement(block, event, f"{outcome.sql}, prepared before") if outcome.is_commit else ""

    def write_incident(self, block: Block, incident: Incident) -> str:  # noqa: ARG002 - it says where it is
        """Return a comment about an INCIDENT event, with which the source says that events may be missing from its
        binlog at this position."""
        return f"-- {incident}; what is lost cannot be undone\n"

    def write_notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> LinePattern:  # noqa: ARG002 - nothing
        """Return nothing: statements that produced rows are undone with their rows."""
        return []

    def check_xa_outcomes(self) -> None:
        """Refuse a log that does not say whether one of its prepared XA transactions was committed."""
        for position, xid in self._prepared.items():
            if position not in self._committed:
                raise BinlogError(
                    f"{position} prepares the XA transaction {xid}, and this part of the log does not say whether it"
                    " was committed: read on to where that is said, or leave it out with --since and --until"
                )

    def is_undone(self, tag: Tag) -> bool:
        """Tell whether texts with this tag are to be undone: all but those of XA transactions that were not
        committed.
        """
        return tag is None or self._committed.get(tag, True)

    def split_by_xa(self, lines: PageText, before: LineContext) -> Iterator[tuple[Tag, memoryview]]:
        """Yield the parts of a page in the order of the log, each reversed in itself; `before` is the context that the
        page before left.
        """
        page = lines.page
        if not len(page):
            return
        frame = TransactionFrame.find_on_page(page, before)
        for i, role, _ in frame.non_commit_ends(page):
            position = Position(page.block.file, int(page.transaction[i]))
            if role is LineRole.ROLLBACK:
                raise _rollback_error(f"{position} the transaction ends in ROLLBACK")
            if role is LineRole.ONE_PHASE:
                self._committed[position] = True
        heads = text.join_columns("-- ", write_headings(page.block, page.event[frame.ends]), "\nBEGIN;\n")
        begins, texts = place_texts(heads, frame.ends), FormattedColumn(lines.texts)
        for tag, first, stop in self._find_xa_ranges(page):
            backwards = np.arange(first, stop)[::-1].copy()
            line = (
                ColumnPiece(begins.column, begins.rows[backwards]),
                texts.pick_rows(backwards),
                FormattedColumn(_COMMIT).pick_rows(frame.starts[backwards].astype(np.int64)),
            )
            yield tag, text.get_raw_bytes(write_lines(line, backwards.size))

    def _find_xa_ranges(self, page: PageLines) -> Iterator[tuple[Tag, int, int]]:
        """Yield the line ranges of XA transactions with changes, and the ranges between them."""
        if not self.xa.xids:
            yield None, 0, len(page)
            return
        begins = np.where(np.isin(page.transaction, list(self.xa.xids)), page.transaction, OUTSIDE)
        bounds = [0, *(np.flatnonzero(np.diff(begins)) + 1).tolist(), len(page)]
        for first, stop in pairwise(bounds):
            begin = int(begins[first])
            position = Position(page.block.file, begin) if begin != OUTSIDE else None
            if position is not None and (page.role[first:stop] == LineRole.CHANGE).any():
                self._prepared[position] = self.xa.xids[begin]
            yield position, first, stop


def _rollback_error(text: str) -> BinlogError:
    """Return the error for a change that the log itself takes back."""
    return BinlogError(
        f"{text}, so only its changes in tables without transactions stayed, and the log does not say which these are:"
        " leave it out with --since and --until"
    )


def _check_images(changes: TableChanges) -> None:
    """Refuse changes whose row images lack columns that are needed to undo them."""
    if changes.partial:
        position = int(changes.block.column("position")[changes.event[0]])
        raise BinlogError(
            f"{changes.block.file}:{position} the update in {changes.table.name} changes parts of the JSON document in"
            f" column {changes.partial[0].name}, and the log does not have the document before it: with"
            " binlog_row_value_options = PARTIAL_JSON and binlog_row_image = MINIMAL or NOBLOB such a change cannot be"
            " undone"
        )
    if changes.absent:
        position = int(changes.block.column("position")[changes.event[0]])
        raise BinlogError(
            f"{changes.block.file}:{position} the {changes.kind.value} in {changes.table.name} does not carry column"
            f" {changes.absent[0]}: with binlog_row_image = MINIMAL or NOBLOB the log leaves out values, and what it"
            " does not have cannot be put back; a generated column, which MariaDB 11 always leaves out, is none that"
            " need be: name it with --without"
        )


class ReversedSpool:
    """A compressed temporary file of texts that are read in the reverse of the order in which they were added."""

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
        """Add a text with its tag."""
        if len(data):
            packed = pa.compress(data, "lz4", asbytes=True)
            try:
                self._file.write(packed)
            except OSError as error:
                error.filename = tempfile.gettempdir()
                raise
            self._sizes.append((len(packed), len(data), tag))

    def read_backwards(self, is_wanted: Callable[[Tag], bool]) -> Iterator[bytes]:
        """Yield the SQL texts whose tag is wanted, in the reverse of the order in which they were added."""
        end = self._file.seek(0, 2)
        while self._sizes:
            size, whole, tag = self._sizes.pop()
            end -= size
            if is_wanted(tag):
                self._file.seek(end)
                yield pa.decompress(self._file.read(size), whole, "lz4", asbytes=True)
