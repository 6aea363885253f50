"""The text of QUERY events of a block, one by one, and by their first word all at once.

An EXECUTE_LOAD_QUERY is a QUERY too: the LOAD DATA of a log in statement format, with a longer head.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import LOAD_HEAD, QueryBody, parse_body
from penstock.binlog.events.layout import HEADER, Entry, EventType
from penstock.errors import BinlogError

_TEXT_AT = 13  # the variables, the database and the text
_XA, _FRAME_WORDS = "XA ", ("SAVEPOINT", "ROLLBACK", "RELEASE", "#")  # a # is what a server puts in an event's place


def parse_query_at(block: Block, event: int) -> QueryBody:
    """Return the parsed body of a QUERY event of the block."""
    try:
        return cast("QueryBody", parse_body(int(block.column("kind")[event]), body_at(block, event)))
    except BinlogError as error:
        raise BinlogError(f"{block.file}:{block.column('position')[event]} {error}") from None


def body_at(block: Block, event: int) -> bytes:
    """Return the body of an event, without header and checksum."""
    data, starts, sizes = block.raw
    return data[starts[event] + HEADER : starts[event] + sizes[event] - block.column("checksum")[event]].tobytes()


def text_span(block: Block, event: int) -> tuple[int, int]:
    """Return where the text of a QUERY event begins and ends in the block's data."""
    data, starts, sizes = block.raw
    body = int(starts[event]) + HEADER
    variables = int(data[body + 11]) | int(data[body + 12]) << 8
    begin = body + text_at(block, event) + variables + int(data[body + 8]) + 1
    return begin, int(starts[event] + sizes[event]) - int(block.column("checksum")[event])


def text_at(block: Block, event: int) -> int:
    """Return where the variables begin in the body of a QUERY event; the database and the text are behind them."""
    return _TEXT_AT + (LOAD_HEAD if block.column("kind")[event] == EventType.EXECUTE_LOAD_QUERY else 0)


def are_queries(block: Block) -> NDArray[np.bool_]:
    """Return which events of a block hold a statement as text."""
    kind = block.column("kind")
    return (kind == EventType.QUERY) | (kind == EventType.EXECUTE_LOAD_QUERY)


def begin_with(block: Block, queries: NDArray[np.bool_], word: str) -> NDArray[np.bool_]:
    """Return which of these QUERY events have a text that begins with a word, in any case."""
    data, starts, sizes = block.raw
    mask = np.zeros(len(block), np.bool_)
    which = np.flatnonzero(queries)
    if which.size:
        body = starts[which] + HEADER
        variables = data[body + 11].astype(np.int64) | data[body + 12].astype(np.int64) << 8
        is_load = block.column("kind")[which] == EventType.EXECUTE_LOAD_QUERY
        text = body + np.where(is_load, _TEXT_AT + LOAD_HEAD, _TEXT_AT) + variables + data[body + 8] + 1
        is_long_enough = text + len(word) <= starts[which] + sizes[which] - block.column("checksum")[which]
        mask[which[is_long_enough]] = _are_word(data, text[is_long_enough], word)
    return mask


def are_logged_statements(block: Block) -> NDArray[np.bool_]:
    """Return which events are statements that the log has as text. Those that begin or end a transaction are not
    counted, nor are XA statements; savepoints and the comments of servers are."""
    entry, boundary = block.column("entry"), block.column("boundary")
    mask = are_queries(block) & ((entry == Entry.DDL) | ((entry == Entry.OTHER) & (boundary == 0)))
    return mask & ~begin_with(block, mask, _XA) if mask.any() else mask


def are_statements(block: Block) -> NDArray[np.bool_]:
    """Return which events are statements that may change tables or rows: XA statements, savepoints and comments are
    not."""
    mask = are_logged_statements(block)
    if mask.any():
        for word in _FRAME_WORDS:
            mask &= ~begin_with(block, mask, word)
    return mask


def _are_word(data: NDArray[np.uint8], offsets: NDArray[np.int64], word: str) -> NDArray[np.bool_]:
    letters = np.frombuffer(word.encode(), np.uint8)
    upper = np.where((letters >= ord("A")) & (letters <= ord("Z")), 0xDF, 0xFF).astype(np.uint8)
    return ((data[offsets[:, None] + np.arange(letters.size)] & upper) == letters).all(axis=1)
