"""A block of picked events → lines of text in the order of the log.

A language says of what pieces the lines of each table's changes are; here they are put in order, with the statements
and the ends of transactions between them.

Blocks are rendered by several threads. What depends on the blocks before is kept out of that: `find_lines_between` is
called block by block in the order of the log, `compose` for several blocks at once, and `PageText.framed`, in order
again, adds what the first line needs because of the lines before it.
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

from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident, find_incidents
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.events.note import annotation_texts, find_annotations
from penstock.binlog.events.statement import StatementEvent, are_rolled_back, find_statements
from penstock.binlog.rows.table_changes import TableChanges
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions, are_outcomes
from penstock.binlog.xa.xid import parse_prepare
from penstock.inspect.masking import without_secrets
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import Dialect
from penstock.render.weave import Chosen, Layout, Line, Written, bounds_of, weave

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations


class Role(IntEnum):
    """What a line is."""

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


ENDS = (Role.COMMIT, Role.ROLLBACK, Role.PREPARE, Role.ONE_PHASE)
_INSIDE = (Role.CHANGE, Role.STATEMENT, Role.NOTE)
OUTSIDE = -1  # in no transaction


@dataclass(frozen=True, slots=True)
class LineContext:
    """The state that one line of output leaves for the next: the open transaction, and the options of its session."""

    transaction: int = OUTSIDE  # the one that is open, by where it begins
    options: int = 0  # that the session has

    def is_open(self) -> bool:
        return self.transaction != OUTSIDE


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What the lines of a block are, in the order of the log."""

    block: Block
    role: NDArray[np.uint8]
    event: NDArray[np.int64]  # index in the block

    def __len__(self) -> int:
        return self.event.size

    @property
    def transaction(self) -> NDArray[np.int64]:
        return self.block.column("transaction")[self.event]

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """Tell which lines are inside a transaction and do not end it."""
        return np.isin(self.role, _INSIDE)

    def part(self, first: int, stop: int) -> "Page":
        return Page(self.block, self.role[first:stop], self.event[first:stop])


@dataclass(frozen=True, slots=True, eq=False)
class PageText:
    """A page with its text: line i is data[bounds[i]:bounds[i + 1]]. Each line ends with a line feed, and those of ENDS
    are empty, but for what frames them; the frame of the first line is missing."""

    page: Page
    bounds: NDArray[np.int64]
    data: NDArray[np.uint8]

    @property
    def texts(self) -> pa.Array:
        return text.of_bytes(self.bounds, self.data)

    @property
    def raw(self) -> memoryview:
        return self.data[: int(self.bounds[-1])].data

    def first_changes(self, count: int) -> "PageText":
        """Return the lines up to the change with this number."""
        places = np.flatnonzero(self.page.role == Role.CHANGE)
        if places.size <= count:
            return self
        stop = int(places[count - 1]) + 1 if count else 0
        return PageText(self.page.part(0, stop), self.bounds[: stop + 1], self.data)

    def framed(self, language: "LineFormat", before: LineContext) -> "Iterator[memoryview]":
        """Yield the text in pieces, with the frame of the first line; `before` is what the page before it left."""
        if not len(self.page):
            return
        head, tail = language.frame(self.page.part(0, 1), before)
        end = int(self.bounds[1])
        yield text.raw_bytes(weave(head, 1))
        yield self.raw[:end]
        yield text.raw_bytes(weave(tail, 1))
        yield self.raw[end:]


class RowFormat(ABC):
    """A language that has lines for changes."""

    @abstractmethod
    def changes(self, changes: TableChanges) -> Line:
        """The pieces of one line, or two, per change."""


class LineFormat(RowFormat):
    """A language whose output is lines. One object writes one block; `for_block` makes the one for the next block.

    language = language.for_block(xa)
    between = find_lines_between(block, language)
    page = compose(block, changes_in(block, choice, shapes), between, language)  # in any thread
    """

    finds_rows = False  # has to tell a row from all others, even if only some columns are to be shown
    shows_passwords = False  # of statements about accounts; else they are masked
    comments_nameless = False  # where rows need names, those without are comments; else they are refused

    def __init__(self, xa: XaTransactions) -> None:
        self.xa = xa  # of the block that is being written

    def for_block(self, xa: XaTransactions) -> Self:
        """Return one for the block after the one that this is for, of which the XA transactions are given."""
        following = copy(self)
        following.xa = xa
        return following

    def begin(self) -> str:
        return ""

    def end(self, last: LineContext) -> str:  # noqa: ARG002 - of those that override it
        """Return what the output ends with; `last` is what its last line left."""
        return ""

    @abstractmethod
    def statement(self, block: Block, statement: StatementEvent) -> str: ...

    @abstractmethod
    def outcome(self, block: Block, event: int, outcome: XaOutcome) -> str: ...

    @abstractmethod
    def incident(self, block: Block, incident: Incident) -> str:
        """Return the line that says that something may be missing here."""

    @abstractmethod
    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:
        """The pieces of one line, or some, per statement behind rows."""

    def frame(self, page: Page, before: LineContext) -> tuple[Line, Line]:  # noqa: ARG002 - of those that override it
        """Return the pieces that belong before and after each line of a page, which has one at least: what stands
        between transactions."""
        return (), ()

    def context_after(self, page: Page, line: int) -> LineContext:
        """Return what a line of the page leaves for the next one."""
        is_inside = page.part(line, line + 1).is_inside[0]
        return LineContext(int(page.block.column("transaction")[page.event[line]]) if is_inside else OUTSIDE)


def values(changes: TableChanges, dialect: Dialect, column: Column, rows: NDArray[np.int64]) -> Chosen:
    """A column of the images, written once for all changes that share them."""
    key = dialect, column.name
    made = changes.images.written
    if key not in made:
        made[key] = dialect.write(column, changes.images.columns[column.name])
    return made[key].at(rows)


def operations(
    changes: TableChanges,
    write: Callable[["JsonOperations", Column], pa.Array],
    column: Column,
    rows: NDArray[np.int64],
) -> Chosen:
    """The operations on a column of the images that are partial, written once for all changes that share them."""
    key = write, column.name
    made = changes.images.written
    if key not in made:
        made[key] = Written(write(changes.images.operations[column.name], column))
    return made[key].at(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines of a block that are made of the same pieces; `event` and `number` say where they belong in it."""

    role: NDArray[np.uint8]
    event: NDArray[np.int64]
    number: NDArray[np.int64]
    line: Line


def compose(block: Block, changes: Iterable[TableChanges], between: Sequence[Lines], language: LineFormat) -> PageText:
    """Write all lines of a block, those of its changes and those that `find_lines_between` found."""
    parts = [*_changes(changes, language), *between]
    page, order = _ordered(block, parts)
    head: Line = ()
    tail: Line = ()
    if len(page) > 1:
        # Lines of one transaction belong together, whatever the first of them is.
        first = replace(language.context_after(page, 0), transaction=int(page.transaction[0]))
        head, tail = language.frame(page.part(1, len(page)), first)
    return _written(page, order, parts, head, tail)


def compose_changes(block: Block, changes: Iterable[TableChanges], language: RowFormat) -> PageText:
    """Write the lines of changes without what is between them."""
    parts = _changes(changes, language)
    return _written(*_ordered(block, parts), parts)


def _changes(changes: Iterable[TableChanges], language: RowFormat) -> list[Lines]:
    return [
        Lines(np.full(len(some), Role.CHANGE, np.uint8), some.event, some.number, language.changes(some))
        for some in changes
    ]


def _ordered(block: Block, parts: Sequence[Lines]) -> tuple[Page, NDArray[np.int64]]:
    """Return the lines of all parts in the order of the log, and which line of the parts each of them is."""
    if not parts:
        return Page(block, np.empty(0, np.uint8), np.empty(0, np.int64)), np.empty(0, np.int64)
    role, event, number = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("role", "event", "number")
    )
    order = np.argsort(event << 32 | number, kind="stable")  # each part is in order: few runs to merge
    return Page(block, role[order], event[order]), order


def _written(
    page: Page, order: NDArray[np.int64], parts: Sequence[Lines], head: Line = (), tail: Line = ()
) -> PageText:
    """Write each line with the pieces around it; the first line has none."""
    layouts = [Layout(part.line, part.event.size) for part in parts]
    own = np.concatenate([layout.sizes for layout in layouts])[order] if layouts else np.empty(0, np.int64)
    sizes = own
    heads, tails = (Layout(line, len(page) - 1) if line else None for line in (head, tail))
    for around in (heads, tails):
        if around is not None:
            sizes = np.concatenate([sizes[:1], sizes[1:] + around.sizes])
    bounds = bounds_of(sizes)
    out = np.empty(int(bounds[-1]), np.uint8)
    starts = bounds[:-1]
    if heads is not None:
        heads.write(starts[1:], out)
        starts = np.concatenate([starts[:1], starts[1:] + heads.sizes])
    if tails is not None:
        tails.write(starts[1:] + own[1:], out)
    places = np.empty(order.size, np.int64)
    places[order] = starts
    done = 0
    for layout in layouts:
        layout.write(places[done : done + layout.sizes.size], out)
        done += layout.sizes.size
    return PageText(page, bounds, out)


def find_lines_between(block: Block, language: LineFormat) -> Sequence[Lines]:
    """Return the lines that are no changes: statements, and the ends of transactions, whose lines are empty."""
    parts: list[Lines] = []
    statements = list(find_statements(block))
    if not language.shows_passwords:
        statements = [without_secrets(statement, block.server_version) for statement in statements]
    if statements:
        roles = [Role.STATEMENT if statement.is_in_transaction else Role.ALONE for statement in statements]
        texts = [language.statement(block, statement) for statement in statements]
        parts.append(_part(np.array(roles), [statement.event for statement in statements], texts))
    begins, outcomes = block.column("transaction"), language.xa.outcomes
    ended = [i for i in np.flatnonzero(are_outcomes(block)).tolist() if int(begins[i]) in outcomes] if outcomes else []
    if ended:
        texts = [language.outcome(block, i, outcomes[int(begins[i])]) for i in ended]
        parts.append(_part(np.full(len(ended), Role.OUTCOME), ended, texts))
    if incidents := list(find_incidents(block)):
        texts = [language.incident(block, incident) for incident in incidents]
        parts.append(_part(np.full(len(texts), Role.INCIDENT), [incident.event for incident in incidents], texts))
    notes = np.flatnonzero(find_annotations(block))
    if notes.size:
        line = language.notes(block, notes, annotation_texts(block, notes))
        parts.append(Lines(np.full(notes.size, Role.NOTE, np.uint8), notes, np.zeros(notes.size, np.int64), line))
    ends = np.flatnonzero(block.column("entry") == Entry.END)
    if ends.size:
        parts.append(Lines(_roles_of_ends(block)[ends], ends, np.zeros(ends.size, np.int64), []))
    return parts


def _part(roles: NDArray[Any], events: list[int], texts: list[str]) -> Lines:
    every = np.arange(len(events))
    line = [Written(text.of_list(texts)).at(every)]
    return Lines(roles.astype(np.uint8), np.array(events, np.int64), np.zeros(every.size, np.int64), line)


def _roles_of_ends(block: Block) -> NDArray[np.uint8]:
    roles = np.where(are_rolled_back(block), Role.ROLLBACK, Role.COMMIT).astype(np.uint8)
    for i in np.flatnonzero(block.column("kind") == EventType.XA_PREPARE).tolist():
        roles[i] = Role.ONE_PHASE if parse_prepare(block, i)[1] else Role.PREPARE
    return roles
