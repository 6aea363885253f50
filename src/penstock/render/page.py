"""A block of picked events → lines of text in the order of the log.

A language says of what pieces the lines of each table's changes are; here they are put in order, with the statements
and the ends of transactions between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.xa.xid import parse_prepare
from penstock.inspect.changes import Changes
from penstock.inspect.incident import Incident, incidents_in
from penstock.inspect.note import are_notes, note_texts
from penstock.inspect.statement import Statement, are_rolled_back, statements_in, without_secrets
from penstock.inspect.xa import Outcome, XaTransactions, are_outcomes
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import Dialect
from penstock.render.weave import Chosen, Line, Written, fill, sizes_of

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


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Lines in the order of the log; each text ends with a line feed, those of ENDS are empty."""

    block: Block
    role: NDArray[np.uint8]
    event: NDArray[np.int64]  # index in the block
    texts: pa.Array

    def __len__(self) -> int:
        return self.event.size

    @property
    def transaction(self) -> NDArray[np.int64]:
        return self.block.column("transaction")[self.event]

    def first_changes(self, count: int) -> "Page":
        """Up to the change with this number."""
        places = np.flatnonzero(self.role == Role.CHANGE)
        if places.size <= count:
            return self
        stop = int(places[count - 1]) + 1 if count else 0
        return Page(self.block, self.role[:stop], self.event[:stop], self.texts.slice(0, stop))


class RowFormat(ABC):
    """A language that has lines for changes."""

    @abstractmethod
    def changes(self, changes: Changes) -> Line:
        """The pieces of one line, or two, per change."""


class LineFormat(RowFormat):
    """A language whose output is lines. One object writes one output, from `begin` to `end`."""

    finds_rows = False  # has to tell a row from all others, even if only some columns are to be shown
    shows_passwords = False  # of statements about accounts; else they are masked
    comments_nameless = False  # where rows need names, those without are comments; else they are refused

    def __init__(self, xa: XaTransactions) -> None:
        self.xa = xa  # of the block that is being written

    def dialect_of(self, changes: Changes) -> Dialect | None:  # noqa: ARG002 - of those that override it
        """Return how it writes all shown columns of these changes; None when it does not write all of them alike."""
        return None

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""

    @abstractmethod
    def statement(self, block: Block, statement: Statement) -> str: ...

    @abstractmethod
    def outcome(self, block: Block, event: int, outcome: Outcome) -> str: ...

    @abstractmethod
    def incident(self, block: Block, incident: Incident) -> str:
        """Return the line that says that something may be missing here."""

    @abstractmethod
    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:
        """The pieces of one line, or some, per statement behind rows."""

    def frame(self, page: Page) -> pa.Array:
        """The page's texts with what belongs between transactions."""
        return page.texts


def values(changes: Changes, dialect: Dialect, column: Column, rows: NDArray[np.int64]) -> Chosen:
    """A column of the images, written once for all changes that share them."""
    key = dialect, column.name
    made = changes.images.written
    if key not in made:
        made[key] = dialect.write(column, changes.images.columns[column.name])
    return made[key].at(rows)


def operations(
    changes: Changes, write: Callable[["JsonOperations", Column], pa.Array], column: Column, rows: NDArray[np.int64]
) -> Chosen:
    """The operations on a column of the images that are partial, written once for all changes that share them."""
    key = write, column.name
    made = changes.images.written
    if key not in made:
        made[key] = Written(write(changes.images.operations[column.name], column))
    return made[key].at(rows)


def write_values(changes: Changes, language: LineFormat) -> None:
    """Write the columns of these changes already, so that `compose`, in another thread, finds them written."""
    dialect = language.dialect_of(changes)
    if dialect is not None:
        for column in dict.fromkeys([*changes.shown_of(changes.before), *changes.shown_of(changes.after)]):
            values(changes, dialect, column, changes.last)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    role: NDArray[np.uint8]
    event: NDArray[np.int64]
    number: NDArray[np.int64]
    line: Line


def compose(block: Block, changes: Iterable[Changes], language: LineFormat) -> Page:
    return _ordered(block, [*_changes(changes, language), *_between(block, language)])


def compose_changes(block: Block, changes: Iterable[Changes], language: RowFormat) -> Page:
    """Without what is between them."""
    return _ordered(block, _changes(changes, language))


def _changes(changes: Iterable[Changes], language: RowFormat) -> list[_Part]:
    return [
        _Part(np.full(len(some), Role.CHANGE, np.uint8), some.event, some.number, language.changes(some))
        for some in changes
    ]


def _ordered(block: Block, parts: list[_Part]) -> Page:
    if not parts:
        return Page(block, np.empty(0, np.uint8), np.empty(0, np.int64), text.of_list([]))
    role, event, number = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("role", "event", "number")
    )
    sizes = np.concatenate([sizes_of(part.line, part.event.size) for part in parts])
    order = np.lexsort((number, event))
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[order])])
    places = np.empty(order.size, np.int64)
    places[order] = bounds[:-1]
    out = np.empty(int(bounds[-1]), np.uint8)
    done = 0
    for part in parts:
        fill(part.line, places[done : done + part.event.size], out)
        done += part.event.size
    return Page(block, role[order], event[order], text.of_bytes(bounds, out))


def _between(block: Block, language: LineFormat) -> Sequence[_Part]:
    """Statements, and the ends of transactions, whose lines are empty."""
    parts: list[_Part] = []
    statements = list(statements_in(block))
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
    if incidents := list(incidents_in(block)):
        texts = [language.incident(block, incident) for incident in incidents]
        parts.append(_part(np.full(len(texts), Role.INCIDENT), [incident.event for incident in incidents], texts))
    notes = np.flatnonzero(are_notes(block))
    if notes.size:
        line = language.notes(block, notes, note_texts(block, notes))
        parts.append(_Part(np.full(notes.size, Role.NOTE, np.uint8), notes, np.zeros(notes.size, np.int64), line))
    ends = np.flatnonzero(block.column("entry") == Entry.END)
    if ends.size:
        parts.append(_Part(_roles_of_ends(block)[ends], ends, np.zeros(ends.size, np.int64), []))
    return parts


def _part(roles: NDArray[Any], events: list[int], texts: list[str]) -> _Part:
    every = np.arange(len(events))
    line = [Written(text.of_list(texts)).at(every)]
    return _Part(roles.astype(np.uint8), np.array(events, np.int64), np.zeros(every.size, np.int64), line)


def _roles_of_ends(block: Block) -> NDArray[np.uint8]:
    roles = np.where(are_rolled_back(block), Role.ROLLBACK, Role.COMMIT).astype(np.uint8)
    for i in np.flatnonzero(block.column("kind") == EventType.XA_PREPARE).tolist():
        roles[i] = Role.ONE_PHASE if parse_prepare(block, i)[1] else Role.PREPARE
    return roles
