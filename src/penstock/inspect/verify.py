"""Only the checksums: is every event of a file whole, and does it match its checksum?

Knows nothing of what events mean, so it also goes through logs that cannot be decoded.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.checksum import TABLES, crc32
from penstock.binlog.events.layout import (
    CHECKSUM,
    ENCRYPTED_MAGIC,
    HEADER,
    IN_USE,
    LARGEST_EVENT,
    MAGIC,
    event_name,
)
from penstock.binlog.kernel import BYTES, I64, TRIPLE, U32S_IN, kernel, u32
from penstock.errors import BinlogError

_PART_BYTES = 64 << 20
_END, _PART, _FORMAT, _CUT, _BAD_SIZE, _BAD_CHECKSUM = range(6)


@dataclass(slots=True)
class Verdict:
    events: int = 0
    bytes: int = 0
    has_checksums: bool = False
    problem: str = ""  # what is wrong at the first broken place


@kernel(TRIPLE(BYTES, I64, I64, I64, U32S_IN, I64))
def _walk(data: Any, at: int, checksum: int, count: int, crc_tables: Any, part: int) -> Any:  # noqa: PLR0911 - see the end
    """Events from `at` on, about `part` bytes; gives (why it stopped, where, events)."""
    end = np.int64(data.size)
    stop = at + part
    while at < stop:
        if at == end:
            return _END, at, count
        if at + 19 > end:
            return _CUT, at, count
        size = u32(data, at + 9)
        if size < 19 + checksum or size > LARGEST_EVENT:
            return _BAD_SIZE, at, count
        if at + size > end:
            return _CUT, at, count
        if data[at + 4] == 15:
            return _FORMAT, at, count
        if checksum and crc32(data, at, at + size - 4, crc_tables) != u32(data, at + size - 4):
            return _BAD_CHECKSUM, at, count
        count += 1
        at += size
    return _PART, at, count


def verify_file(path: Path, report: Callable[[int], None]) -> Verdict:
    """`report` is called with the number of bytes that were looked at."""
    if path.stat().st_size < len(MAGIC):
        raise BinlogError(f"{path} is no binlog: it is empty")
    data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    magic = data[: len(MAGIC)].tobytes()
    if magic == ENCRYPTED_MAGIC:
        raise BinlogError(f"{path} is encrypted, and only its server has the key")
    if magic != MAGIC:
        raise BinlogError(f"{path} is no binlog: it begins with {magic.hex(' ')}, not {MAGIC.hex(' ')}")
    verdict = Verdict()
    plain = data.view(np.ndarray)
    why, at, checksum = _PART, len(MAGIC), 0
    while why in (_PART, _FORMAT):
        why, at, verdict.events = _walk(plain, at, checksum, verdict.events, TABLES, _PART_BYTES)
        if why == _FORMAT:
            event = plain[at : at + int.from_bytes(plain[at + 9 : at + 13].tobytes(), "little")].tobytes()
            checksum = _checksum_of(event)
            if checksum and not _is_sound(event):
                why = _BAD_CHECKSUM
            else:
                verdict.events += 1
                verdict.has_checksums |= checksum > 0
                at += len(event)
        verdict.bytes = at
        report(at)
    if why != _END:
        verdict.problem = _problem(path, plain, why, at)
    return verdict


def _checksum_of(event: bytes) -> int:
    """The format event says by its last byte before its own checksum whether the others have one."""
    return CHECKSUM if len(event) >= HEADER + 57 + 1 + CHECKSUM and event[-5] == 1 else 0


def _is_sound(event: bytes) -> bool:
    """The mark of a file in use was not there when the checksum was made."""
    clean = event[:17] + bytes([event[17] & ~IN_USE]) + event[18:-CHECKSUM]
    return zlib.crc32(clean) == int.from_bytes(event[-CHECKSUM:], "little")


def _problem(path: Path, data: NDArray[np.uint8], why: int, at: int) -> str:
    name = event_name(int(data[at + 4])) if at + HEADER <= data.size else "event"
    left = data.size - at
    what = {
        _CUT: f"the file ends inside this event, {left} bytes after it began",
        _BAD_SIZE: "the event's size is not one that an event can have",
        _BAD_CHECKSUM: "the event does not match its checksum",
    }[why]
    return f"{path.name}:{at} {name}: {what}; bytes there: {data[at : at + 24].tobytes().hex(' ')}"
