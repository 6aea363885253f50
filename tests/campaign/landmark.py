"""Where in an event its lengths, counts and type codes lie, so that mutations can lie there.

TABLE_MAP  table id 6 | flags 2 | schema: length 1, name, 0 | table: the same | columns (packed) | type codes
           | metadata length (packed) | metadata | null bits | fields: number 1, length (packed), content
ROWS       table id 6 | flags 2 | v2: extra length 2, extra | columns (packed) | bitmaps | rows
QUERY      thread 4 | seconds 4 | schema length 1 | error 2 | status length 2 | status | schema, 0 | statement
PAYLOAD    fields: number, length, value (all packed), until number 0
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from tests.campaign.logs import HEADER, PAYLOAD, ROWS, TABLE_MAP

_QUERIES = {2, 165}
_WITH_EXTRA = {30, 31, 32, 39, 169, 170, 171}
_LONGEST_TEXT = 60


@dataclass(frozen=True, slots=True)
class Landmark:
    """`size` bytes at `at`; `what` is a length, a type or metadata."""

    what: str
    at: int
    size: int = 1


def landmarks(event: bytes | bytearray) -> list[Landmark]:
    """As far as the event makes sense."""
    kind = event[4] if len(event) > 4 else 0
    walk = {TABLE_MAP: _table_map, PAYLOAD: _payload}.get(kind)
    if kind in ROWS:
        walk = _rows
    elif kind in _QUERIES:
        walk = _query
    marks: list[Landmark] = []
    with suppress(IndexError):  # it may have been mutated before
        marks.extend(walk(event) if walk else ())
    return [mark for mark in marks if mark.at + mark.size <= len(event)]


def _packed(event: bytes | bytearray, at: int) -> tuple[int, int]:
    """Length-encoded integer, no larger than the event, and its size."""
    size = {252: 3, 253: 4, 254: 9}.get(event[at], 1)
    number = int.from_bytes(event[at + 1 : at + size], "little") if size > 1 else event[at]
    return min(number, len(event)), size


def _table_map(event: bytes | bytearray) -> Iterator[Landmark]:
    at = HEADER + 8
    for _ in range(2):
        yield Landmark("length", at)
        at += event[at] + 2
    columns, size = _packed(event, at)
    yield Landmark("length", at, size)
    at += size
    for i in range(columns):
        yield Landmark("type", at + i)
    at += columns
    length, size = _packed(event, at)
    yield Landmark("length", at, size)
    at += size
    for i in range(length):
        yield Landmark("metadata", at + i)
    at += length + (columns + 7) // 8
    while at < len(event):
        yield Landmark("type", at)
        length, size = _packed(event, at + 1)
        yield Landmark("length", at + 1, size)
        at += 1 + size
        for i in range(0, length, 3):
            yield Landmark("metadata", at + i)
        at += length


def _rows(event: bytes | bytearray) -> Iterator[Landmark]:
    at = HEADER + 8
    if event[4] in _WITH_EXTRA:
        yield Landmark("length", at, 2)
        at += int.from_bytes(event[at : at + 2], "little")
    columns, size = _packed(event, at)
    yield Landmark("length", at, size)
    at += size
    for i in range((columns + 7) // 8):
        yield Landmark("metadata", at + i)
    yield from _text_lengths(event, at)


def _text_lengths(event: bytes | bytearray, start: int) -> Iterator[Landmark]:
    """Bytes that look like the length of the text behind them."""
    for at in range(start, len(event) - 1):
        length = event[at]
        for size in (1, 2, 4):
            text = event[at + size : at + size + length]
            if not 0 < length <= _LONGEST_TEXT or len(text) < length or any(event[at + 1 : at + size]):
                continue
            if all(byte >= 0x20 for byte in text):
                yield Landmark("length", at, size)


def _query(event: bytes | bytearray) -> Iterator[Landmark]:
    yield Landmark("length", HEADER + 8)
    yield Landmark("length", HEADER + 11, 2)


def _payload(event: bytes | bytearray) -> Iterator[Landmark]:
    at = HEADER
    while event[at]:
        yield Landmark("type", at)
        yield Landmark("length", at + 1)
        yield Landmark("length", at + 2, event[at + 1])
        at += 2 + event[at + 1]
