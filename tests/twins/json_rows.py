"""Row images with JSON columns, read out of a server's log file in plain Python.

Event 39, PARTIAL_UPDATE_ROWS, is an UPDATE_ROWS event whose after images begin with

  value options (length-encoded; bit 0: a bitmap follows) | a bit per JSON column of the table, columns that the image
  leaves out included: set when the field holds diffs | null bitmap | fields

Both differ from row to row. A bit is never set for a column that is null, before or after.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WRITE_ROWS, UPDATE_ROWS, PARTIAL_UPDATE_ROWS = 30, 31, 39
LONG, JSON = 3, 245
_TABLE_MAP = 19


@dataclass(frozen=True, slots=True)
class Field:
    """Where it lies in its event; a negative size: null, or not in the image."""

    at: int
    size: int
    is_diff: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    event: bytes
    kind: int
    is_after: bool
    fields: tuple[Field, ...]

    def number(self, column: int) -> int:
        return struct.unpack_from("<i", self.event, self.fields[column].at)[0]

    def raw(self, column: int) -> bytes:
        field = self.fields[column]
        return self.event[field.at : field.at + field.size]


def _lenenc(raw: bytes, at: int) -> tuple[int, int]:
    width = {252: 2, 253: 3, 254: 8}.get(raw[at], 0)
    return (int.from_bytes(raw[at + 1 : at + 1 + width], "little"), at + 1 + width) if width else (raw[at], at + 1)


def _bits(raw: bytes, at: int, count: int) -> tuple[list[bool], int]:
    return [bool(raw[at + i // 8] >> i % 8 & 1) for i in range(count)], at + (count + 7) // 8


def images(path: Path, table: str, types: Sequence[int]) -> Iterator[Image]:
    """Of the table's rows events in a log file; its columns are INT and JSON."""
    data = path.read_bytes()
    at, ids = 4, dict[int, str]()
    while at < len(data):
        kind, size = data[at + 4], struct.unpack_from("<I", data, at + 9)[0]
        event = data[at : at + size - 4]  # without the checksum
        at += size
        table_id = int.from_bytes(event[19:25], "little")
        if kind == _TABLE_MAP:
            schema_size = event[27]
            name = event[30 + schema_size : 30 + schema_size + event[29 + schema_size]]
            ids[table_id] = name.decode()
        if kind in {WRITE_ROWS, UPDATE_ROWS, PARTIAL_UPDATE_ROWS} and ids[table_id] == table:
            yield from _rows(event, kind, types)


def _rows(event: bytes, kind: int, types: Sequence[int]) -> Iterator[Image]:
    at = 27 + struct.unpack_from("<H", event, 27)[0]
    count, at = _lenenc(event, at)
    assert count == len(types)
    sides = list[list[bool]]()
    for _ in range(1 if kind == WRITE_ROWS else 2):
        present, at = _bits(event, at, count)
        sides.append(present)
    while at < len(event):
        for side, present in enumerate(sides):
            is_partial = iter([False] * count)
            if kind == PARTIAL_UPDATE_ROWS and side:
                options, at = _lenenc(event, at)
                assert options in {0, 1}
                if options:
                    marks, at = _bits(event, at, sum(wire_type == JSON for wire_type in types))
                    is_partial = iter(marks)
            nulls, at = _bits(event, at, sum(present))
            is_null, fields = iter(nulls), list[Field]()
            for wire_type, is_present in zip(types, present, strict=True):
                is_diff = wire_type == JSON and next(is_partial)
                if not is_present or next(is_null):
                    assert not is_diff
                    fields.append(Field(at, -1 if is_present else -2))
                    continue
                size = 4
                if wire_type == JSON:
                    size, at = struct.unpack_from("<I", event, at)[0], at + 4
                fields.append(Field(at, size, is_diff))
                at += size
            yield Image(event, kind, side == 1, tuple(fields))
    assert at == len(event)
