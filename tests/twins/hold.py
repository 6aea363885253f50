"""Events that hold others, as the servers write them: payloads, compressed events, fragments."""

import struct
import zlib
from collections.abc import Iterator

import pyarrow as pa

from tests.twins.event import Header, event
from tests.twins.row import packed

TRANSACTION_PAYLOAD, QUERY_COMPRESSED, PARTIAL_ROW_DATA = 40, 165, 172
_COMPRESSED_KIND = {2: 165, 23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}


def split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at : at + size]
        at += size


def payload(events: bytes, *, is_compressed: bool = True) -> bytes:
    """Body of a TRANSACTION_PAYLOAD; the events have no checksums."""
    held = pa.Codec("zstd").compress(events, asbytes=True) if is_compressed else events
    fields = {2: packed(0 if is_compressed else 255), 3: packed(len(events)), 1: packed(len(held))}
    return b"".join(bytes([number]) + packed(len(raw)) + raw for number, raw in fields.items()) + b"\x00" + held


def compressed(raw: bytes, position: int, *, checksum: int) -> bytes:
    """A plain event as MariaDB writes it with log_bin_compress."""
    kind, body = raw[4], raw[19 : len(raw) - checksum]
    at = _first_compressed(kind, body)
    size = len(body) - at
    width = (size.bit_length() + 7) // 8
    head = bytes([0x80 | width]) + size.to_bytes(width, "big")
    timestamp, server = struct.unpack_from("<I", raw)[0], struct.unpack_from("<I", raw, 5)[0]
    header = Header(position, timestamp, server, is_checksummed=checksum > 0)
    return event(_COMPRESSED_KIND[kind], body[:at] + head + zlib.compress(body[at:]), header)


def _first_compressed(kind: int, body: bytes) -> int:
    if kind == 2:
        return 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
    at = 8 + (int.from_bytes(body[8:10], "little") if kind >= 30 else 0)
    columns, at = (body[at], at + 1) if body[at] < 251 else (int.from_bytes(body[at + 1 : at + 3], "little"), at + 3)
    return at + (columns + 7) // 8 * (2 if kind in {24, 31} else 1)


def fragments(raw: bytes, size: int) -> list[bytes]:
    """Bodies of the PARTIAL_ROW_DATA events of one rows event."""
    pieces = [raw[i : i + size] for i in range(0, len(raw), size)]
    return [
        struct.pack("<IIB", len(pieces), number, number == 1)
        + (struct.pack("<Q", len(raw)) if number == 1 else b"")
        + piece
        for number, piece in enumerate(pieces, 1)
    ]
