"""QUERY events: the statements that a log holds as text, such as DDL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import Statement as Query
from penstock.binlog.events.bodies import parse_body
from penstock.binlog.events.layout import HEADER, Entry, EventType
from penstock.errors import BinlogError
from penstock.model import TableName

_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TABLE = re.compile(
    r"\s*(?:CREATE(?:\s+OR\s+REPLACE)?(?:\s+TEMPORARY)?|ALTER(?:\s+ONLINE|\s+OFFLINE)?(?:\s+IGNORE)?|DROP(?:\s+TEMPORARY)?"
    r"|RENAME|TRUNCATE|ANALYZE|OPTIMIZE|REPAIR)(?:\s+TABLE)?(?:\s+IF\s+(?:NOT\s+)?EXISTS)?\s+"
    rf"{_NAME}(?:\s*\.\s*{_NAME})?",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    event: int  # index in its block
    database: str
    text: str
    is_in_transaction: bool

    @property
    def table(self) -> TableName | None:
        """The one table that a DDL names first, as far as its text says."""
        comment = _COMMENTS.match(self.text)
        found = _TABLE.match(self.text, comment.end() if comment else 0)
        if not found:
            return None
        names = [name.replace("``", "`") for name in (found[1] or found[2], found[3] or found[4]) if name]
        return TableName(names[0], names[1]) if len(names) > 1 else TableName(self.database, names[0])


def are_statements(block: Block) -> NDArray[np.bool_]:
    """Which events of a block are statements of their own, not the frame of a transaction."""
    entry = block.column("entry")
    return (block.column("kind") == EventType.QUERY) & ((entry == Entry.DDL) | (entry == Entry.OTHER))


def statements_in(block: Block) -> Iterator[Statement]:
    data, starts, sizes = block.raw
    sums = block.column("checksum")
    entry = block.column("entry")
    for i in np.flatnonzero(are_statements(block)).tolist():
        body = data[starts[i] + HEADER : starts[i] + sizes[i] - sums[i]].tobytes()
        try:
            query = parse_body(EventType.QUERY, body)
        except BinlogError as error:
            raise BinlogError(f"{block.file}:{block.column('position')[i]} {error}") from None
        # Servers put a comment in the place of events that a reader would not understand.
        if isinstance(query, Query) and not query.text.startswith("#"):
            yield Statement(i, query.database, query.text, bool(entry[i] == Entry.OTHER))


def are_rolled_back(block: Block) -> NDArray[np.bool_]:
    """Which events end a transaction by ROLLBACK."""
    word = np.frombuffer(b"ROLLBACK", np.uint8)
    data, starts, sizes = block.raw
    ends = (block.column("entry") == Entry.END) & (block.column("kind") == EventType.QUERY)
    found = np.zeros(len(block), np.bool_)
    which = np.flatnonzero(ends)
    first = (starts + sizes - block.column("checksum"))[which] - word.size
    found[which] = ((data[first[:, None] + np.arange(word.size)] & 0xDF) == word).all(axis=1) if which.size else False
    return found
