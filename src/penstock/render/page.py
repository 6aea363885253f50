"""A page is the text that `penstock binlog` prints for one block of binlog events: lines in the order of the log.

A line format says of what pieces the lines of each table's changes are; here they are put in order, with the statements
and the ends of transactions between them.

Blocks are rendered by several threads. What depends on the blocks before is kept out of that: `find_lines_between` is
called block by block in the order of the log, `compose_page` for several blocks at once, and
`PageText.framed_pieces`, in order again, adds what the first line needs because of the lines before it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.annotation import annotation_texts, find_annotations
from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident, find_incidents
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.events.statement import StatementEvent, are_rolled_back, find_statements
from penstock.binlog.rows.table_changes import TableChanges
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions, are_outcomes
from penstock.binlog.xa.xid import parse_prepare
from penstock.inspect.masking import mask_secrets
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import ValueWriter
from penstock.render.weave import ColumnPiece, FormattedColumn, LineLayout, LinePattern, bounds_from_sizes, write_lines

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations


class LineRole(IntEnum):
    """What a line in the output of `penstock binlog` stands for."""

    CHANGE = 0
    STATEMENT = 1  # inside a transaction
    ALONE = 2  # a statement outside of one: DDL
    COMMIT = 3
    ROLLBACK = 4
    PREPARE = 5  # of an XA transaction
    ONE_PHASE = 6  # commit of an XA transaction that was never prepared
    OUTCOME = 7  # of an XA transaction that was prepared before
    NOTE = 8  # the statement behind the rows that follow
    INCIDENT = 9  # the server says that something may be missing


ENDS = (LineRole.COMMIT, LineRole.ROLLBACK, LineRole.PREPARE, LineRole.ONE_PHASE)
_INSIDE = (LineRole.CHANGE, LineRole.STATEMENT, LineRole.NOTE)
OUTSIDE = -1  # in no transaction


@dataclass(frozen=True, slots=True)
class LineContext:
    """The context in which the next line of the output of `penstock binlog` is written: the transaction that is open,
    and the session options that its SQL has set."""

    transaction: int = OUTSIDE  # the one that is open, by where it begins
    options: int = 0  # that the session has

    def is_in_transaction(self) -> bool:
        """Tell whether the line leaves a transaction open."""
        return self.transaction != OUTSIDE


@dataclass(frozen=True, slots=True, eq=False)
class PageLines:
    """The lines that `penstock binlog` prints for one block of binlog events (a page), without their text: the role of
    each line, and the event it comes from."""

    block: Block
    role: NDArray[np.uint8]
    event: NDArray[np.int64]  # index in the block

    def __len__(self) -> int:
        return self.event.size

    @property
    def transaction(self) -> NDArray[np.int64]:
        """Return for each line the offset in the log file at which its transaction begins."""
        return self.block.column("transaction")[self.event]

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """Return which lines of the page are inside a transaction and do not end it, as a mask."""
        return np.isin(self.role, _INSIDE)

    def slice_lines(self, first: int, stop: int) -> "PageLines":
        """Return the part of the page from line `first` up to, but without, line `stop`."""
        return PageLines(self.block, self.role[first:stop], self.event[first:stop])


@dataclass(frozen=True, slots=True, eq=False)
class PageText:
    """The text that `penstock binlog` prints for one block of binlog events: line i is data[bounds[i]:bounds[i + 1]]
    and ends with a line feed.

    Lines of ENDS are empty except for what frames them; the frame of the first line is missing, see `framed_pieces`.
    """

    page: PageLines
    bounds: NDArray[np.int64]
    data: NDArray[np.uint8]

    @property
    def texts(self) -> pa.Array:
        """Return the lines that are printed for the block as an Arrow array of texts."""
        return text.texts_from_bytes(self.bounds, self.data)

    @property
    def raw(self) -> memoryview:
        """Return the text that is printed for the block, all lines one after the other, as bytes."""
        return self.data[: int(self.bounds[-1])].data

    def cut_after_changes(self, count: int) -> "PageText":
        """Return the text up to the line of the row change number `count`, for a limit on the number of changes."""
        lines = np.flatnonzero(self.page.role == LineRole.CHANGE)
        if lines.size <= count:
            return self
        stop = int(lines[count - 1]) + 1 if count else 0
        return PageText(self.page.slice_lines(0, stop), self.bounds[: stop + 1], self.data)

    def framed_pieces(self, line_format: "LineFormat", before: LineContext) -> "Iterator[memoryview]":
        """Yield the text in pieces, with the frame of the first line; `before` is the context that the page before
        left.
        """
        if not len(self.page):
            return
        head, tail = line_format.frame_lines(self.page.slice_lines(0, 1), before)
        end = int(self.bounds[1])
        yield text.get_raw_bytes(write_lines(head, 1))
        yield self.raw[:end]
        yield text.get_raw_bytes(write_lines(tail, 1))
        yield self.raw[end:]


class RowFormat(ABC):
    """An output format of `penstock binlog` that writes each row change as one or two lines of text."""

    @abstractmethod
    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of the line, or the two lines, that each row change becomes."""


class LineFormat(RowFormat):
    """An output format that writes row changes, statements and transactions as lines of text. One object writes one
    block of binlog events; `for_block` makes the one for the next block.

    line_format = line_format.for_block(xa)
    between = find_lines_between(block, line_format)
    page = compose_page(block, changes_in(block, choice, shapes), between, line_format)  # in any thread
    """

    finds_rows = False  # has to tell a row from all others, even if only some columns are to be shown
    shows_passwords = False  # of statements about accounts; else they are masked
    comments_nameless = False  # where rows need names, those without are comments; else they are refused

    def __init__(self, xa: XaTransactions) -> None:
        self.xa = xa  # of the block that is being written

    def for_block(self, xa: XaTransactions) -> Self:
        """Return the format for the next block, given the XA transactions of that block."""
        following = copy(self)
        following.xa = xa
        return following

    def write_begin(self) -> str:
        """Return the text that the output begins with."""
        return ""

    def write_end(self, last: LineContext) -> str:  # noqa: ARG002 - of those that override it
        """Return the text that the output ends with; `last` is the context that its last line left."""
        return ""

    @abstractmethod
    def write_statement(self, block: Block, statement: StatementEvent) -> str:
        """Return the line of a statement."""

    @abstractmethod
    def write_xa_outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        """Return the line that commits or rolls back a prepared XA transaction."""

    @abstractmethod
    def write_incident(self, block: Block, incident: Incident) -> str:
        """Return the line of an INCIDENT event, with which the source says that events may be missing from its binlog
        at this position."""

    @abstractmethod
    def write_notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> LinePattern:
        """Return the pieces of the lines of statements that produced rows (Rows_query or Annotate_rows)."""

    def frame_lines(self, page: PageLines, before: LineContext) -> tuple[LinePattern, LinePattern]:  # noqa: ARG002 - of those that override it
        """Return the pieces of text before and after each line of a non-empty page, such as BEGIN and COMMIT between
        transactions."""
        return (), ()

    def context_after(self, page: PageLines, line: int) -> LineContext:
        """Return the context in which the line after `line` is written: the transaction that is still open there, if
        one is."""
        is_inside = page.slice_lines(line, line + 1).is_inside[0]
        return LineContext(int(page.block.column("transaction")[page.event[line]]) if is_inside else OUTSIDE)


def format_column(changes: TableChanges, dialect: ValueWriter, column: Column, rows: NDArray[np.int64]) -> ColumnPiece:
    """Return a column of the row images as a piece; it is written once for all changes that share the images."""
    key = dialect, column.name
    written = changes.images.written
    if key not in written:
        written[key] = dialect.write_column(column, changes.images.columns[column.name])
    return written[key].pick_rows(rows)


def formatted_operations(
    changes: TableChanges,
    write: Callable[["JsonOperations", Column], pa.Array],
    column: Column,
    rows: NDArray[np.int64],
) -> ColumnPiece:
    """Return the JSON operations of a partial column as a piece; they are written once for all changes that share the
    images.
    """
    key = write, column.name
    written = changes.images.written
    if key not in written:
        written[key] = FormattedColumn(write(changes.images.operations[column.name], column))
    return written[key].pick_rows(rows)


@dataclass(frozen=True, slots=True, eq=False)
class LineGroup:
    """Lines of a block that follow the same pattern; `event` and `number` give their order in it."""

    role: NDArray[np.uint8]
    event: NDArray[np.int64]
    number: NDArray[np.int64]
    pattern: LinePattern


def compose_page(
    block: Block, changes: Iterable[TableChanges], between: Sequence[LineGroup], line_format: LineFormat
) -> PageText:
    """Write all lines of a block: its changes, and the lines that `find_lines_between` found."""
    parts = [*_change_lines(changes, line_format), *between]
    page, order = _order_lines(block, parts)
    head: LinePattern = ()
    tail: LinePattern = ()
    if len(page) > 1:
        # Lines of one transaction belong together, whatever the first of them is.
        first = replace(line_format.context_after(page, 0), transaction=int(page.transaction[0]))
        head, tail = line_format.frame_lines(page.slice_lines(1, len(page)), first)
    return _write_page(page, order, parts, head, tail)


def compose_changes(block: Block, changes: Iterable[TableChanges], row_format: RowFormat) -> PageText:
    """Write the lines of changes only, without what stands between them."""
    parts = _change_lines(changes, row_format)
    return _write_page(*_order_lines(block, parts), parts)


def _change_lines(changes: Iterable[TableChanges], row_format: RowFormat) -> list[LineGroup]:
    """Return the lines of the row changes of each table."""
    return [
        LineGroup(
            np.full(len(table_changes), LineRole.CHANGE, np.uint8),
            table_changes.event,
            table_changes.number,
            row_format.write_changes(table_changes),
        )
        for table_changes in changes
    ]


def _order_lines(block: Block, parts: Sequence[LineGroup]) -> tuple[PageLines, NDArray[np.int64]]:
    """Return the lines of all groups in the order of the log, and which line of the groups each of them is."""
    if not parts:
        return PageLines(block, np.empty(0, np.uint8), np.empty(0, np.int64)), np.empty(0, np.int64)
    role, event, number = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("role", "event", "number")
    )
    order = np.argsort(event << 32 | number, kind="stable")  # each part is in order: few runs to merge
    return PageLines(block, role[order], event[order]), order


def _write_page(
    page: PageLines,
    order: NDArray[np.int64],
    parts: Sequence[LineGroup],
    head: LinePattern = (),
    tail: LinePattern = (),
) -> PageText:
    """Write each line with the pieces around it; the first line has none around it."""
    layouts = [LineLayout(part.pattern, part.event.size) for part in parts]
    own = np.concatenate([layout.sizes for layout in layouts])[order] if layouts else np.empty(0, np.int64)
    sizes = own
    heads, tails = (LineLayout(line, len(page) - 1) if line else None for line in (head, tail))
    for frame in (heads, tails):
        if frame is not None:
            sizes = np.concatenate([sizes[:1], sizes[1:] + frame.sizes])
    bounds = bounds_from_sizes(sizes)
    out = np.empty(int(bounds[-1]), np.uint8)
    starts = bounds[:-1]
    if heads is not None:
        heads.write(starts[1:], out)
        starts = np.concatenate([starts[:1], starts[1:] + heads.sizes])
    if tails is not None:
        tails.write(starts[1:] + own[1:], out)
    positions = np.empty(order.size, np.int64)
    positions[order] = starts
    done = 0
    for layout in layouts:
        layout.write(positions[done : done + layout.sizes.size], out)
        done += layout.sizes.size
    return PageText(page, bounds, out)


def find_lines_between(block: Block, line_format: LineFormat) -> Sequence[LineGroup]:
    """Return the lines that are no changes: statements, XA outcomes, incidents, notes, and the ends of transactions,
    whose lines are empty.
    """
    parts: list[LineGroup] = []
    statements = list(find_statements(block))
    if not line_format.shows_passwords:
        statements = [mask_secrets(statement, block.server_version) for statement in statements]
    if statements:
        roles = [LineRole.STATEMENT if statement.is_in_transaction else LineRole.ALONE for statement in statements]
        texts = [line_format.write_statement(block, statement) for statement in statements]
        parts.append(_group_of_texts(np.array(roles), [statement.event for statement in statements], texts))
    begins, outcomes = block.column("transaction"), line_format.xa.outcomes
    outcome_events = (
        [i for i in np.flatnonzero(are_outcomes(block)).tolist() if int(begins[i]) in outcomes] if outcomes else []
    )
    if outcome_events:
        texts = [line_format.write_xa_outcome(block, i, outcomes[int(begins[i])]) for i in outcome_events]
        parts.append(_group_of_texts(np.full(len(outcome_events), LineRole.OUTCOME), outcome_events, texts))
    if incidents := list(find_incidents(block)):
        texts = [line_format.write_incident(block, incident) for incident in incidents]
        parts.append(
            _group_of_texts(np.full(len(texts), LineRole.INCIDENT), [incident.event for incident in incidents], texts)
        )
    notes = np.flatnonzero(find_annotations(block))
    if notes.size:
        line = line_format.write_notes(block, notes, annotation_texts(block, notes))
        parts.append(
            LineGroup(np.full(notes.size, LineRole.NOTE, np.uint8), notes, np.zeros(notes.size, np.int64), line)
        )
    ends = np.flatnonzero(block.column("entry") == Entry.END)
    if ends.size:
        parts.append(LineGroup(_roles_of_ends(block)[ends], ends, np.zeros(ends.size, np.int64), []))
    return parts


def _group_of_texts(roles: NDArray[Any], events: list[int], texts: list[str]) -> LineGroup:
    """Return lines with these roles, events and texts."""
    rows = np.arange(len(events))
    line = [FormattedColumn(text.texts_from_list(texts)).pick_rows(rows)]
    return LineGroup(roles.astype(np.uint8), np.array(events, np.int64), np.zeros(rows.size, np.int64), line)


def _roles_of_ends(block: Block) -> NDArray[np.uint8]:
    """Return for each event the role it has if it ends a transaction: commit, rollback, XA prepare or one-phase
    commit.
    """
    roles = np.where(are_rolled_back(block), LineRole.ROLLBACK, LineRole.COMMIT).astype(np.uint8)
    for i in np.flatnonzero(block.column("kind") == EventType.XA_PREPARE).tolist():
        roles[i] = LineRole.ONE_PHASE if parse_prepare(block, i)[1] else LineRole.PREPARE
    return roles
