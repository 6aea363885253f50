"""Errors about events: file and offset, type, table, what is wrong, and the bytes that are there.

A parser does not know the place of what it parses: it raises an error without one, and whoever knows the place puts it
in front. Inside the reader it raises `EventProblemError`, which says only what is wrong.
"""

from penstock.binlog.events.layout import event_name
from penstock.errors import BinlogError
from penstock.model import Position

_EXTRACT_BYTES = 24
Bytes = bytes | bytearray | memoryview


class EventProblemError(Exception):
    """What is wrong with an event, and at which of its bytes."""

    def __init__(self, what: str, byte: int = 0) -> None:
        super().__init__(what, byte)
        self.what, self.byte = what, byte


def broken(kind: int, what: str, there: Bytes, *, table: object = None, place: Position | None = None) -> BinlogError:
    """`there` begins with the bytes to show."""
    where = f"{place} " if place is not None else ""
    of = f" of {table}" if table is not None else ""
    return BinlogError(f"{where}{event_name(kind)}{of}: {what}; bytes there: {extract(there)}")


def extract(there: Bytes) -> str:
    return bytes(there[:_EXTRACT_BYTES]).hex(" ") or "none"
