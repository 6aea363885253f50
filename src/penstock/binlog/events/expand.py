"""Events that hold others: compressed transactions, compressed events, events in fragments.

TRANSACTION_PAYLOAD (MySQL 8.0.20): fields (type, length, value, all packed integers) until type 0, then the events of a
    transaction without their checksums: 1 payload size | 2 compression (0 zstd, 255 none) | 3 size when expanded
*_COMPRESSED (MariaDB): as the plain event up to the statement or the first row, then
    1 byte 0x80 | method << 4 | n,  size when expanded n bytes big-endian,  a zlib stream
PARTIAL_ROW_DATA (MariaDB 12.3): fragments 4 | number 4, from 1 | flags 1 | the first: size of the whole 8 | a piece
"""

import zlib
from typing import Any

import pyarrow as pa

from penstock.binlog.events.layout import HEADER, LARGEST_EVENT, EventType

_ZSTD, _PLAIN = 0, 255
_PAYLOAD_SIZE, _COMPRESSION, _EXPANDED_SIZE = 1, 2, 3
_PLAIN_KIND = {EventType.MARIADB_QUERY_COMPRESSED: EventType.QUERY} | {
    compressed: plain
    for first, plain_first in ((166, EventType.WRITE_ROWS_V1), (169, EventType.WRITE_ROWS_V2))
    for compressed, plain in zip(range(first, first + 3), range(plain_first, plain_first + 3), strict=True)
}
COMPRESSED_KINDS = frozenset(_PLAIN_KIND)
_ROWS_KINDS = {*range(23, 26), *range(30, 33), *range(166, 172)}
_HAS_SIZE = 1
_LARGEST_PAYLOAD = 1 << 40  # a transaction of a terabyte; more is a broken number


class ExpandError(ValueError):
    """What is wrong; the reader adds where."""


def _packed(data: bytes, at: int) -> tuple[int, int]:
    """Length-encoded integer and where it ends."""
    if at >= len(data):
        raise ExpandError("it ends early")
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}.get(first, 0)
    if not width or at + 1 + width > len(data):
        raise ExpandError("it holds no length where one belongs")
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width


def open_payload(body: bytes) -> tuple[Any, int]:
    """A stream of the events in a TRANSACTION_PAYLOAD, and how many bytes it will give."""
    at, fields = 0, dict[int, int]()
    while True:
        field, at = _packed(body, at)
        if field == 0:
            break
        size, at = _packed(body, at)
        fields[field], _ = _packed(body[at : at + size], 0)
        at += size
    packed = body[at : at + fields.get(_PAYLOAD_SIZE, len(body) - at)]
    total = fields.get(_EXPANDED_SIZE, len(packed))
    if total > _LARGEST_PAYLOAD:
        raise ExpandError(f"it says that it holds {total} bytes")
    match fields.get(_COMPRESSION, _PLAIN):
        case 0:  # zstd
            return pa.CompressedInputStream(pa.BufferReader(packed), "zstd"), total
        case 255:  # none
            return pa.BufferReader(packed), total
        case other:
            raise ExpandError(f"its events are compressed by method {other}, which is not known")


def plain_event(event: bytes, checksum: int) -> bytes:
    """The event as the server would have written it without compression; it has no checksum."""
    stop = len(event) - checksum
    at = _compressed_part(event[:stop])
    whole = event[HEADER:at] + _inflate(event[at:stop])
    size = (HEADER + len(whole)).to_bytes(4, "little")
    return event[:4] + bytes([_PLAIN_KIND[EventType(event[4])]]) + event[5:9] + size + event[13:HEADER] + whole


def _compressed_part(event: bytes) -> int:
    """Where it begins: after the database's name of a statement, after the bitmaps of a rows event."""
    if len(event) < HEADER + 13:
        raise ExpandError("it ends early")
    kind = event[4]
    if kind == EventType.MARIADB_QUERY_COMPRESSED:
        return HEADER + 13 + int.from_bytes(event[HEADER + 11 : HEADER + 13], "little") + event[HEADER + 8] + 1
    at = HEADER + 8
    if kind >= EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2:
        at += int.from_bytes(event[at : at + 2], "little")
    columns, at = _packed(event, at)
    is_update = kind in (EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1, EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2)
    return at + (columns + 7) // 8 * (2 if is_update else 1)


def _inflate(part: bytes) -> bytes:
    if not part or not part[0] & 0x80 or part[0] >> 4 & 7:
        raise ExpandError("its compressed part has no header that is known")
    width = part[0] & 7
    size = int.from_bytes(part[1 : 1 + width], "big")
    if not 0 < size <= LARGEST_EVENT:
        raise ExpandError(f"it says that it holds {size} bytes")
    try:
        whole = zlib.decompressobj().decompress(part[1 + width :], size)
    except zlib.error as error:
        raise ExpandError(f"it cannot be expanded: {error}") from None
    if len(whole) != size:
        raise ExpandError(f"it holds {len(whole)} bytes instead of {size}")
    return whole


class Fragments:
    """The pieces of one large event."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.start = 0  # file offset of the first

    @property
    def is_open(self) -> bool:
        return bool(self._pieces)

    def add(self, body: bytes, position: int) -> bytes | None:
        """Gives the whole event with the last piece."""
        count, number = int.from_bytes(body[:4], "little"), int.from_bytes(body[4:8], "little")
        if len(body) < 9 or number != len(self._pieces) + 1 or number > count:
            raise ExpandError(f"it is fragment {number} of {count}, but fragment {len(self._pieces) + 1} is next")
        if number == 1:
            self.start = position
        self._pieces.append(body[17 if body[8] & _HAS_SIZE else 9 :])
        if number < count:
            return None
        whole = b"".join(self._pieces)
        self._pieces = []
        size = int.from_bytes(whole[9:13], "little")
        if len(whole) < HEADER or whole[4] not in _ROWS_KINDS or not 0 <= size - len(whole) <= 4:
            raise ExpandError("its fragments make no rows event")
        return whole[:9] + len(whole).to_bytes(4, "little") + whole[13:]
