"""Events that hold others: compressed transactions and compressed events.

TRANSACTION_PAYLOAD (MySQL 8.0.20): fields (type, length, value, all packed integers) until type 0, then the events of a
    transaction without their checksums: 1 payload size | 2 compression (0 zstd, 255 none) | 3 size when expanded
*_COMPRESSED (MariaDB): as the plain event up to the statement or the first row, then
    1 byte 0x80 | method << 4 | n,  size when expanded n bytes big-endian,  a zlib stream
"""

import zlib
from typing import Any

import pyarrow as pa

from penstock.binlog.events.layout import HEADER, LARGEST_EVENT, SIZE_AT, TYPE_AT, EventType
from penstock.binlog.events.problem import Bytes, EventProblemError

_ZSTD, _PLAIN = 0, 255
_PAYLOAD_SIZE, _COMPRESSION, _EXPANDED_SIZE = 1, 2, 3
_PLAIN_KIND = {EventType.MARIADB_QUERY_COMPRESSED: EventType.QUERY} | {
    compressed: plain
    for first, plain_first in ((166, EventType.WRITE_ROWS_V1), (169, EventType.WRITE_ROWS_V2))
    for compressed, plain in zip(range(first, first + 3), range(plain_first, plain_first + 3), strict=True)
}
COMPRESSED_KINDS = frozenset(_PLAIN_KIND)
_LARGEST_PAYLOAD = 1 << 40  # a transaction of a terabyte; more is a broken number


def _packed(data: Bytes, at: int) -> tuple[int, int]:
    """Return the length-encoded integer at `at`, and where it ends."""
    if at >= len(data):
        raise EventProblemError("it ends early")
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}.get(first, 0)
    if not width or at + 1 + width > len(data):
        raise EventProblemError("it holds no length where one belongs", at)
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width


def open_payload(event: memoryview) -> tuple[Any, int]:
    """Return a stream of the events in a TRANSACTION_PAYLOAD without its checksum, and how many bytes it will give."""
    at, fields = HEADER, dict[int, int]()
    while True:
        field, at = _packed(event, at)
        if field == 0:
            break
        size, at = _packed(event, at)
        fields[field], _ = _packed(event[: at + size], at)
        at += size
    packed = event[at : at + fields.get(_PAYLOAD_SIZE, len(event) - at)]
    total = fields.get(_EXPANDED_SIZE, len(packed))
    if total > _LARGEST_PAYLOAD:
        raise EventProblemError(f"it says that it holds {total} bytes", HEADER)
    match fields.get(_COMPRESSION, _PLAIN):
        case 0:  # zstd
            return pa.CompressedInputStream(pa.BufferReader(packed), "zstd"), total
        case 255:  # none
            return pa.BufferReader(packed), total
        case other:
            raise EventProblemError(f"its events are compressed by method {other}, which is not known", HEADER)


def decompress_event(event: Bytes) -> bytearray:
    """Return a compressed event without its checksum, as the server would have written it without compression."""
    at = _compressed_part(event)
    plain = bytearray(event[:at])
    plain += _inflate(event, at)
    plain[TYPE_AT] = _PLAIN_KIND[EventType(event[TYPE_AT])]
    plain[SIZE_AT : SIZE_AT + 4] = len(plain).to_bytes(4, "little")
    return plain


def _compressed_part(event: Bytes) -> int:
    """Return where the compressed part of an event begins: after the database's name of a statement, after the bitmaps
    of a rows event."""
    if len(event) < HEADER + 13:
        raise EventProblemError("it ends early")
    kind = event[TYPE_AT]
    if kind == EventType.MARIADB_QUERY_COMPRESSED:
        return HEADER + 13 + int.from_bytes(event[HEADER + 11 : HEADER + 13], "little") + event[HEADER + 8] + 1
    at = HEADER + 8
    if kind >= EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2:
        at += int.from_bytes(event[at : at + 2], "little")
    columns, at = _packed(event, at)
    is_update = kind in (EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1, EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2)
    return at + (columns + 7) // 8 * (2 if is_update else 1)


def _inflate(event: Bytes, at: int) -> bytes:
    if at >= len(event) or not event[at] & 0x80 or event[at] >> 4 & 7:
        raise EventProblemError("its compressed part has no header that is known", min(at, len(event)))
    width = event[at] & 7
    size = int.from_bytes(event[at + 1 : at + 1 + width], "big")
    if not 0 < size <= LARGEST_EVENT:
        raise EventProblemError(f"it says that it holds {size} bytes", at)
    try:
        whole = zlib.decompressobj().decompress(memoryview(event)[at + 1 + width :], size)
    except zlib.error as error:
        raise EventProblemError(f"it cannot be expanded: {error}", at) from None
    if len(whole) != size:
        raise EventProblemError(f"it holds {len(whole)} bytes instead of {size}", at)
    return whole
