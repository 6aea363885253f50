"""Errors about events: file and offset, type, table, what is wrong, and the bytes that are there.

A parser does not know the position of what it parses: it raises an error without one, and its caller adds the position.
Inside the reader it raises `EventProblemError`, which says only what is wrong.
"""

from penstock.binlog.events.layout import event_name
from penstock.errors import BinlogError
from penstock.model import Position

_EXTRACT_BYTES = 24
Bytes = bytes | bytearray | memoryview


class EventProblemError(Exception):
    """An event that is wrong at one of its bytes; the reader adds the position."""

    def __init__(self, what: str, byte: int = 0) -> None:
        super().__init__(what, byte)
        self.what, self.byte = what, byte


def event_error(
    kind: int, what: str, there: Bytes, *, table: object = None, position: Position | None = None
) -> BinlogError:
    """Return the error for an event that cannot be read; `there` begins with the bytes to show."""
    where = f"{position} " if position is not None else ""
    of = f" of {table}" if table is not None else ""
    return BinlogError(f"{where}{event_name(kind)}{of}: {what}; bytes there: {hex_excerpt(there)}")


def hex_excerpt(there: Bytes) -> str:
    """Return the first bytes in hexadecimal, for an error message."""
    return bytes(there[:_EXTRACT_BYTES]).hex(" ") or "none"
