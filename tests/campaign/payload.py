"""Compressed events opened and closed again, so that mutations reach the parsers behind the compression."""

import zlib
from dataclasses import dataclass

import pyarrow as pa

from tests.campaign.logs import HEADER, PAYLOAD, events_in
from tests.twins.row import packed

_LARGEST = 1 << 24
_MARIADB_ROWS = frozenset(range(166, 169))


def opened(event: bytes | bytearray) -> list[bytearray] | None:
    """The events inside a TRANSACTION_PAYLOAD that nothing has touched yet; None for anything else."""
    if len(event) <= HEADER or event[4] != PAYLOAD:
        return None
    at, fields = HEADER, dict[int, int]()
    while event[at]:
        number, size = event[at], event[at + 1]
        value = bytes(event[at + 2 : at + 2 + size])
        fields[number] = int.from_bytes(value[1:] if value[0] >= 252 else value, "little")
        at += 2 + size
    assert fields[3] <= _LARGEST, "it was mutated before"
    whole = pa.Codec("zstd").decompress(bytes(event[at + 1 :]), fields[3], asbytes=True)
    return [bytearray(inner) for inner in events_in(whole)]


@dataclass(frozen=True, slots=True)
class Field:
    """Of a payload: 1 its size, 2 the method (0 zstd, 255 none), 3 the size of what it holds."""

    number: int
    value: int


def fields_of(inner: list[bytearray], *, is_compressed: bool = True) -> list[Field]:
    """True ones."""
    whole = b"".join(inner)
    return [Field(2, 0 if is_compressed else 255), Field(3, len(whole)), Field(1, len(_body(whole, is_compressed)))]


def closed(event: bytes | bytearray, inner: list[bytearray], fields: list[Field] | None = None) -> bytearray:
    """The events in the payload again; with these fields, whether they are true or not."""
    fields = fields_of(inner) if fields is None else fields
    said = b"".join(
        _packed(entry.number) + _packed(len(_packed(entry.value))) + _packed(entry.value) for entry in fields
    )
    is_compressed = next((entry.value for entry in fields if entry.number == 2), 255) != 255
    return bytearray(event[:HEADER]) + said + b"\x00" + _body(b"".join(inner), is_compressed)


def _body(whole: bytes, is_compressed: bool) -> bytes:
    return pa.Codec("zstd").compress(whole, asbytes=True) if is_compressed else whole


def _packed(value: int) -> bytes:
    return packed(value) if value < 1 << 16 else b"\xfe" + value.to_bytes(8, "little")


def inflated(event: bytes | bytearray) -> tuple[int, bytearray] | None:
    """Where the compressed part of a MariaDB rows event begins, and what it holds; None for anything else."""
    if len(event) <= HEADER or event[4] not in _MARIADB_ROWS:
        return None
    try:
        columns = event[HEADER + 8]
        at = HEADER + 9 + (columns + 7) // 8 * (2 if event[4] == 167 else 1)
        return at, bytearray(zlib.decompress(bytes(event[at + 1 + (event[at] & 7) :])))
    except (zlib.error, IndexError):
        return None  # it was mutated before


def deflated(
    event: bytes | bytearray, at: int, rows: bytes | bytearray, *, said: int | None = None, width: int = 4
) -> bytearray:
    """`said` is the size that it speaks of, in so many bytes."""
    size = len(rows) if said is None else said & (1 << 8 * width) - 1
    head = bytes([0x80 | width]) + size.to_bytes(width, "big")
    return bytearray(event[:at]) + head + zlib.compress(bytes(rows))
