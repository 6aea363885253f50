"""Twin of the locate pass: where each field of each row image of one rows event lies."""

from collections.abc import Sequence
from dataclasses import dataclass

NULL, ABSENT = -1, -2
ENDS_EARLY, OTHER_COLUMN_COUNT = 1, 2
INSERT, BEFORE, AFTER, DELETE = range(4)
_UPDATES, _INSERTS, _PARTIAL = {24, 31, 39}, {23, 30}, 39


@dataclass(frozen=True, slots=True)
class Image:
    kind: int
    start: int  # in the event
    fields: tuple[tuple[int, int], ...]  # offset in the event and length, or (NULL, 0), or (ABSENT, 0)
    partial: tuple[bool, ...] = ()  # which are lists of differences; nothing when none can be


class _BrokenError(Exception):
    """With the code that the kernel answers."""


def locate(
    event: bytes, checksum: int, wires: Sequence[tuple[int, int]], documents: Sequence[int] = ()
) -> list[Image] | int:
    """`wires` is (length bytes, width) per column, `documents` the columns that are JSON; a code instead of images when
    the event is broken."""
    try:
        return _locate(event, checksum, wires, documents)
    except _BrokenError as error:
        return error.args[0]


def _locate(event: bytes, checksum: int, wires: Sequence[tuple[int, int]], documents: Sequence[int]) -> list[Image]:  # noqa: C901 - one branch per rule
    cursor = _Cursor(event[: len(event) - checksum], 27)
    if event[4] >= 30:
        cursor.need(2)
        size = int.from_bytes(cursor.data[cursor.at : cursor.at + 2], "little")
        if size < 2:  # it counts itself
            raise _BrokenError(ENDS_EARLY)
        cursor.at += size
    count = cursor.number(1)
    if count == 252:
        count = cursor.number(2)
    if count != len(wires) or not wires:
        raise _BrokenError(OTHER_COLUMN_COUNT)
    is_update = event[4] in _UPDATES
    sides = [_bits(cursor.take((len(wires) + 7) // 8), len(wires)) for _ in range(1 + is_update)]
    images: list[Image] = []
    is_empty = not is_update and not sum(sides[0]) and cursor.at == len(cursor.data)
    while True:
        side = len(images) % 2 if is_update else 0
        is_nothing = side and not sum(sides[1]) and event[4] != _PARTIAL  # it has no bytes, but it is there
        if cursor.at >= len(cursor.data) and not is_nothing and not (is_empty and not images):
            break
        kind = BEFORE + side if is_update else INSERT if event[4] in _INSERTS else DELETE
        partial = [False] * len(documents)
        start = cursor.at
        if event[4] == _PARTIAL and side:
            options = cursor.number(1)
            if options > 1:
                raise _BrokenError(ENDS_EARLY)
            if options:
                partial = _bits(cursor.take((len(documents) + 7) // 8), len(documents))
        if not is_empty and not sum(sides[side]) and not (is_update and sum(sides[0]) + sum(sides[1])):
            raise _BrokenError(ENDS_EARLY)
        fields = _image(cursor, sides[side], wires)
        which = dict(zip(documents, partial, strict=True))
        shown = (which.get(column, False) and field[0] >= 0 for column, field in enumerate(fields))
        images.append(Image(kind, start, fields, tuple(shown) if event[4] == _PARTIAL else ()))
    if is_update and len(images) % 2:
        raise _BrokenError(ENDS_EARLY)
    return images


def _image(cursor: "_Cursor", present: list[bool], wires: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    shown = sum(present)
    nulls = iter(_bits(cursor.take((shown + 7) // 8), shown))
    fields: list[tuple[int, int]] = []
    for is_present, (prefix, width) in zip(present, wires, strict=True):
        if not is_present:
            fields.append((ABSENT, 0))
        elif next(nulls):
            fields.append((NULL, 0))
        else:
            size = cursor.number(prefix) if prefix else width
            fields.append((cursor.at, size))
            cursor.take(size)
    return tuple(fields)


def _bits(raw: bytes, count: int) -> list[bool]:
    return [bool(raw[i >> 3] >> (i & 7) & 1) for i in range(count)]


@dataclass(slots=True)
class _Cursor:
    data: bytes
    at: int

    def need(self, size: int) -> None:
        if self.at + size > len(self.data):
            raise _BrokenError(ENDS_EARLY)

    def take(self, size: int) -> bytes:
        self.need(size)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")
