"""The logs that mutants are made of, taken apart: events without checksums, in transactions.

header of an event: timestamp 4 | type 1 | server id 4 | size 4 | end position 4 | flags 2
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.campaign.built import built_logs
from tests.twins.event import MAGIC

SEEDS = Path(__file__).parent / "seeds"
HEADER = 19
TABLE_MAP, FORMAT_DESCRIPTION, PAYLOAD = 19, 15, 40
ROWS = frozenset({*range(23, 26), *range(30, 33), 39, *range(166, 172)})
_GTIDS = frozenset({33, 34, 42, 162})


@dataclass(frozen=True, slots=True)
class SourceLog:
    """`opening` is what comes before the first transaction, the FORMAT_DESCRIPTION first."""

    name: str
    opening: tuple[bytes, ...]
    transactions: tuple[tuple[bytes, ...], ...]
    is_checksummed: bool


@cache
def source_logs() -> tuple[SourceLog, ...]:
    real = [(path.stem, path.read_bytes()[len(MAGIC) :]) for path in sorted(SEEDS.glob("*.binlog"))]
    return tuple(_taken_apart(name, data) for name, data in (*real, *built_logs()))


def events_in(data: bytes) -> list[bytes]:
    """Of whole events, one after the other."""
    events, at = list[bytes](), 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 9)
        assert size >= HEADER, f"no event at {at}"
        events.append(data[at : at + size])
        at += size
    return events


def _taken_apart(name: str, data: bytes) -> SourceLog:
    first, *others = events_in(data)
    is_checksummed = first[-5] == 1
    others = [event[:-4] if is_checksummed else event for event in others]
    starts = [i for i, event in enumerate(others) if event[4] in _GTIDS]
    ends = [*starts[1:], len(others)]
    transactions = tuple(tuple(others[a:b]) for a, b in zip(starts, ends, strict=True))
    return SourceLog(name, (first[:-4], *others[: starts[0]]), transactions, is_checksummed)


def assembled(events: Sequence[bytes | bytearray], *, is_checksummed: bool) -> bytes:
    """A file of these events: positions and checksums are made to fit, sizes are left as they are."""
    data = bytearray(MAGIC)
    for event in events:
        # The FORMAT_DESCRIPTION has a checksum even where others have none.
        has_checksum = is_checksummed or event[4:5] == bytes([FORMAT_DESCRIPTION])
        raw = bytearray(event)
        if len(raw) >= HEADER and any(raw[13:17]):
            struct.pack_into("<I", raw, 13, len(data) + len(raw) + 4 * has_checksum)
        data += raw
        if has_checksum:
            raw[17:18] = bytes([raw[17] & 0xFE]) if len(raw) > 17 and event[4] == FORMAT_DESCRIPTION else raw[17:18]
            data += struct.pack("<I", zlib.crc32(raw))
    return bytes(data)


def sized(event: bytes | bytearray, *, is_checksummed: bool) -> bytearray:
    """The event with its size as its header should have it."""
    raw = bytearray(event)
    if len(raw) >= 13:
        has_checksum = is_checksummed or raw[4] == FORMAT_DESCRIPTION
        struct.pack_into("<I", raw, 9, len(raw) + 4 * has_checksum)
    return raw
