"""Twin of the walk that only checks frames and checksums."""

import struct
import zlib
from dataclasses import dataclass

WHOLE, CUT, BAD_SIZE, BAD_CHECKSUM, ENCRYPTED = "whole", "cut", "bad size", "bad checksum", "encrypted"
_FORMAT, _START_ENCRYPTION = 15, 164
_LARGEST = (1 << 30) + (1 << 20)


@dataclass(frozen=True, slots=True)
class Walked:
    why: str
    at: int  # in the file, where it stopped
    events: int


def walk(raw: bytes) -> Walked:
    """Of a file that begins with the magic number."""
    at, events, checksum = 4, 0, 0
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
        at, events = at + size, events + 1
        if kind == _START_ENCRYPTION:
            return Walked(ENCRYPTED, at, events)
    return Walked(WHOLE, at, events)
