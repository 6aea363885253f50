"""QUERY events: the statements that a log holds as text, such as DDL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

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
_BACK = re.compile(r"\s*ROLLBACK\s+(?:WORK\s+)?TO\b", re.IGNORECASE)
_TEXT_AT = 13  # the variables, the database and the text of a QUERY
_COMMENTS = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    event: int  # index in its block
    database: str
    text: str
    is_in_transaction: bool

    @property
    def goes_back(self) -> bool:
        """To a savepoint: rows before it in the log did not take place."""
        return bool(_BACK.match(self.text))

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
    found = (block.column("kind") == EventType.QUERY) & ((entry == Entry.DDL) | (entry == Entry.OTHER))
    return found & ~begin_with(block, found, "XA ")


def statements_in(block: Block) -> Iterator[Statement]:
    entry = block.column("entry")
    for i in np.flatnonzero(are_statements(block)).tolist():
        query = query_at(block, i)
        # Servers put a comment in the place of events that a reader would not understand.
        if not query.text.startswith("#"):
            yield Statement(i, query.database, query.text, bool(entry[i] == Entry.OTHER))


def query_at(block: Block, event: int) -> Query:
    """What a QUERY event of the block holds."""
    try:
        return cast("Query", parse_body(EventType.QUERY, body_at(block, event)))
    except BinlogError as error:
        raise BinlogError(f"{block.file}:{block.column('position')[event]} {error}") from None


def body_at(block: Block, event: int) -> bytes:
    """Without header and checksum."""
    data, starts, sizes = block.raw
    return data[starts[event] + HEADER : starts[event] + sizes[event] - block.column("checksum")[event]].tobytes()


def begin_with(block: Block, queries: NDArray[np.bool_], word: str) -> NDArray[np.bool_]:
    """Which of these QUERY events have a text that begins with a word, in any case."""
    data, starts, sizes = block.raw
    found = np.zeros(len(block), np.bool_)
    which = np.flatnonzero(queries)
    if which.size:
        body = starts[which] + HEADER
        variables = data[body + 11].astype(np.int64) | data[body + 12].astype(np.int64) << 8
        text = body + _TEXT_AT + variables + data[body + 8] + 1
        is_long_enough = text + len(word) <= starts[which] + sizes[which] - block.column("checksum")[which]
        found[which[is_long_enough]] = _are_word(data, text[is_long_enough], word)
    return found


def are_rolled_back(block: Block) -> NDArray[np.bool_]:
    """Which events end a transaction by ROLLBACK."""
    return begin_with(
        block, (block.column("entry") == Entry.END) & (block.column("kind") == EventType.QUERY), "ROLLBACK"
    )


def _are_word(data: NDArray[np.uint8], places: NDArray[np.int64], word: str) -> NDArray[np.bool_]:
    letters = np.frombuffer(word.encode(), np.uint8)
    upper = np.where((letters >= ord("A")) & (letters <= ord("Z")), 0xDF, 0xFF).astype(np.uint8)
    return ((data[places[:, None] + np.arange(letters.size)] & upper) == letters).all(axis=1)
