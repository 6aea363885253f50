"""Compressed events opened and closed again, so that mutations reach the parsers behind the compression."""

import struct
import zlib

import pyarrow as pa

from tests.campaign.logs import HEADER, PAYLOAD, events_in
from tests.twins.row import packed

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
    whole = pa.Codec("zstd").decompress(bytes(event[at + 1 :]), fields[3], asbytes=True)
    return [bytearray(inner) for inner in events_in(whole)]


def closed(event: bytes | bytearray, inner: list[bytearray]) -> bytearray:
    whole = b"".join(inner)
    body = pa.Codec("zstd").compress(whole, asbytes=True)
    fields = b"".join(
        bytes([number, len(value)]) + value
        for number, value in ((2, packed(0)), (3, packed(len(whole))), (1, packed(len(body))))
    )
    return bytearray(event[:HEADER]) + fields + b"\x00" + body


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


def deflated(event: bytes | bytearray, at: int, rows: bytes | bytearray) -> bytearray:
    head = b"\x84" + struct.pack(">I", len(rows))
    return bytearray(event[:at]) + head + zlib.compress(bytes(rows))
