"""Twin of the walk that only checks frames and checksums."""

import struct
import zlib
from dataclasses import dataclass

WHOLE, CUT, BAD_SIZE, BAD_CHECKSUM, ENCRYPTED = "whole", "cut", "bad size", "bad checksum", "encrypted"
BAD_POSITION = "bad position"
_ROTATE, _FORMAT, _GTID_LIST, _START_ENCRYPTION = 4, 15, 163, 164
_HEARTBEATS, _HOLDERS = {27, 41}, {40, *range(164, 173)}  # these hold other events
_LARGEST = (1 << 30) + (1 << 20)


@dataclass(frozen=True, slots=True)
class Walked:
    why: str
    at: int  # in the file, where it stopped
    events: int


def walk(raw: bytes) -> Walked:  # noqa: PLR0911 - one answer per reason
    """Of a file that begins with the magic number."""
    at, events, checksum, position = 4, 0, 0, 4
    while at < len(raw):
        if at + 19 > len(raw):
            return Walked(CUT, at, events)
        kind, (size,) = raw[at + 4], struct.unpack_from("<I", raw, at + 9)
        if size < 19 + checksum or size > _LARGEST:
            return Walked(BAD_SIZE, at, events)
        if at + size > len(raw):
            return Walked(CUT, at, events)
        event = bytearray(raw[at : at + size])
        if kind == _FORMAT:
            checksum = 4 if size >= 19 + 57 + 1 + 4 and event[-5] == 1 else 0
            event[17] &= 0xFE  # the mark of a file in use
        if checksum and zlib.crc32(event[:-4]) != struct.unpack("<I", event[-4:])[0]:
            return Walked(BAD_CHECKSUM, at, events)
        ends = _end_of(kind, bytes(event), position)
        if ends is None:
            return Walked(BAD_POSITION, at, events)
        at, events, position = at + size, events + 1, ends
        if kind == _START_ENCRYPTION:
            return Walked(ENCRYPTED, at, events)
    return Walked(WHOLE, at, events)


def _end_of(kind: int, event: bytes, before: int) -> int | None:  # noqa: PLR0911 - one answer per kind
    """Where the log is after an event; None when the event says that it lies before the one before it."""
    size, low, flags = struct.unpack_from("<IIH", event, 9)
    if kind == _FORMAT:
        return low or before
    if kind == _ROTATE and size >= 27:
        (offset,) = struct.unpack_from("<q", event, 19)
        return None if offset < 0 else offset
    if kind in _HEARTBEATS or (low == 0 and flags & 0x20):
        return before
    if low == 0:
        return before + size
    end = before >> 32 << 32 | low
    end += 1 << 32 if end < before - (1 << 31) else 0
    if kind == _GTID_LIST and flags & 0x20:
        return max(end, before)
    if end - size < before:
        return before + size if kind in _HOLDERS else None
    return end
