"""A block of picked events → lines of text in the order of the log.

A language says of what pieces the lines of each table's changes are; here they are put in order, with the statements
and the ends of transactions between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.inspect.changes import Changes
from penstock.inspect.statement import Statement, are_rolled_back, statements_in
from penstock.model import Column
from penstock.render import text
from penstock.render.dialect import Dialect
from penstock.render.weave import Chosen, Line, Written, fill, sizes_of


class Role(IntEnum):
    """What a line is."""

    CHANGE = 0
    STATEMENT = 1  # inside a transaction
    ALONE = 2  # a statement outside of one: DDL
    COMMIT = 3
    ROLLBACK = 4


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Lines in the order of the log; each text ends with a line feed, those of COMMIT and ROLLBACK are empty."""

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


class LineFormat(ABC):
    """A language whose output is lines. One object writes one output, from `begin` to `end`."""

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""

    @abstractmethod
    def changes(self, changes: Changes) -> Line:
        """The pieces of one line per change."""

    @abstractmethod
    def statement(self, block: Block, statement: Statement) -> str: ...

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


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    role: NDArray[np.uint8]
    event: NDArray[np.int64]
    number: NDArray[np.int64]
    line: Line


def compose(block: Block, changes: Iterable[Changes], language: LineFormat) -> Page:
    parts = [
        _Part(np.full(len(some), Role.CHANGE, np.uint8), some.event, some.number, language.changes(some))
        for some in changes
    ]
    parts += _between(block, language)
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
    if statements:
        roles = [Role.STATEMENT if statement.is_in_transaction else Role.ALONE for statement in statements]
        event = np.array([statement.event for statement in statements], np.int64)
        written = Written(text.of_list([language.statement(block, statement) for statement in statements]))
        line = [written.at(np.arange(event.size))]
        parts.append(_Part(np.array(roles, np.uint8), event, np.zeros(event.size, np.int64), line))
    ends = np.flatnonzero(block.column("entry") == Entry.END)
    if ends.size:
        role = np.where(are_rolled_back(block)[ends], Role.ROLLBACK, Role.COMMIT).astype(np.uint8)
        parts.append(_Part(role, ends, np.zeros(ends.size, np.int64), []))
    return parts
