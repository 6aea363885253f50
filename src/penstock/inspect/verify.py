"""Only the frames: is every event of a file whole, does it match its checksum, and does it lie where it says?

Knows nothing of what events mean, so it also goes through logs that cannot be decoded. Whatever is wrong here, reading
the log stops at as well.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.checksum import TABLES, crc32
from penstock.binlog.events.file_log import printable
from penstock.binlog.events.incident import Incident, parse_message
from penstock.binlog.events.layout import (
    ARTIFICIAL,
    CHECKSUM,
    ENCRYPTED_MAGIC,
    END_AT,
    FLAGS_AT,
    HEADER,
    IN_USE,
    LARGEST_EVENT,
    MAGIC,
    RELAYED,
    EventType,
    event_name,
)
from penstock.binlog.events.open_file import is_compressed_name, open_log
from penstock.binlog.events.stop_reason import PROBLEMS, StopReason
from penstock.binlog.kernel import BYTES, I64, I64S, TRIPLE, U32S_IN, kernel, read_little_endian, shared, u16, u32

_START_ENCRYPTION, _INCIDENT_KIND = int(EventType.MARIADB_START_ENCRYPTION), int(EventType.INCIDENT)
_ROTATE, _HEARTBEAT, _HEARTBEAT_V2, _GTID_LIST = (
    int(kind) for kind in (EventType.ROTATE, EventType.HEARTBEAT, EventType.HEARTBEAT_V2, EventType.MARIADB_GTID_LIST)
)
_PAYLOAD, _LAST_COMPRESSED = int(EventType.TRANSACTION_PAYLOAD), int(EventType.MARIADB_PARTIAL_ROW_DATA)
_PART_BYTES = 64 << 20
_END, _PART, _FORMAT, _CUT, _BAD_SIZE, _BAD_CHECKSUM, _BAD_POSITION, _ENCRYPTED, _INCIDENT = range(9)
_WRAP, _LOW = np.int64(1) << 32, np.int64(0xFFFFFFFF)  # end positions have 32 bits


@dataclass(slots=True)
class FileVerdict:
    """The result of verifying a binlog file: its events, bytes, checksums, incidents and the first problem."""

    events: int = 0
    bytes: int = 0
    has_checksums: bool = False
    problem: str = ""  # what is wrong at the first broken event
    incidents: list[Incident] = field(default_factory=list[Incident])  # where the server may have lost events


@shared
def _event_end(data: Any, at: Any, size: Any, before: Any) -> Any:
    """Return where an event says that it ends, if the one before it ends at `before`; -1 if that cannot be."""
    kind, end = data[at + 4], u32(data, at + END_AT)
    if kind == _ROTATE and size >= HEADER + 8:
        return read_little_endian(data, at + HEADER, 8)
    is_made_up = u16(data, at + FLAGS_AT) & ARTIFICIAL
    if (end == 0 and is_made_up) or kind in (_HEARTBEAT, _HEARTBEAT_V2):
        return before
    if end == 0:
        return before + size
    last = before & ~_LOW | end
    if last < before - (_WRAP >> 1):
        last += _WRAP
    if kind == _GTID_LIST and is_made_up:
        return max(last, before)
    if last - size < before:
        # What holds other events is laid where there is room for it.
        holds_others = kind == _PAYLOAD or _START_ENCRYPTION <= kind <= _LAST_COMPRESSED
        return before + size if holds_others else np.int64(-1)
    return last


@kernel(TRIPLE(BYTES, I64, I64, I64, U32S_IN, I64, I64S))
def _walk_events(data: Any, at: int, checksum: int, count: int, crc_tables: Any, part: int, position: Any) -> Any:  # noqa: C901, PLR0911 - see the end
    """Walk over events from `at` on, about `part` bytes, and verify frames and checksums.

    Returns why it stopped, where, and how many events it saw. `position` gets the log position that the events say.
    """
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
        last = position[0] + size if position[1] else _event_end(data, at, size, position[0])
        if last < 0:
            return _BAD_POSITION, at, count
        position[0] = last
        count += 1
        at += size
        kind = data[at - size + 4]
        if kind == _START_ENCRYPTION:
            return _ENCRYPTED, at, count
        if kind == _INCIDENT_KIND:
            return _INCIDENT, at - size, count
    return _PART, at, count


def verify_file(path: Path, report: Callable[[int], None], *, part_bytes: int = _PART_BYTES) -> FileVerdict:
    """Verify the checksums and the framing of a file. `report` is called with the number of bytes that were read.
    Standard input and other streams are read in parts."""
    is_plain = path.is_file() and not is_compressed_name(path)
    pieces = _map_file(path) if is_plain else _read_pieces(path, part_bytes)
    return _FileVerifier(printable(path.name), report, part_bytes).run(pieces)


def _map_file(path: Path) -> Iterator[NDArray[np.uint8]]:
    """Yield a file as one memory-mapped piece."""
    # A file of no bytes cannot be mapped.
    if path.stat().st_size:
        yield np.memmap(path, np.uint8, "r").view(np.ndarray)


def _read_pieces(path: Path, size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of a stream piece by piece."""
    with open_log(path) as file:
        while True:
            data = np.empty(size, np.uint8)
            count = file.readinto(data.data)
            if not count:
                return
            yield data[:count]


class _FileVerifier:
    """Verifies the events of one file, piece by piece."""

    def __init__(self, name: str, report: Callable[[int], None], part_bytes: int) -> None:
        self._name = name
        self._report = report
        self._part_bytes = part_bytes
        self._verdict = FileVerdict()
        self._checksum = 0  # bytes of it at the end of each event
        self._base = 0  # offset in the file of what is in memory
        # Where the log is by what its events say, and whether they say nothing of it: those of a relay log do not.
        self._position = np.array([len(MAGIC), 0], np.int64)

    def run(self, pieces: Iterator[NDArray[np.uint8]]) -> FileVerdict:
        """Verify all pieces, and return the verdict."""
        data = np.empty(0, np.uint8)
        why, at = _CUT, 0
        for piece in pieces:
            data = np.concatenate([data[at:], piece]) if at < data.size else piece
            self._base += at
            at = 0
            if self._base == 0:
                if data.size < len(MAGIC):
                    continue
                if problem := _describe_magic(data[: len(MAGIC)].tobytes()):
                    self._verdict.problem = problem
                    return self._verdict
                at = len(MAGIC)
            why, at = self._verify_piece(data, at)
            if why not in {_END, _CUT}:
                break
        if self._base + at < len(MAGIC):
            self._verdict.problem = _describe_magic(data.tobytes())
        elif why != _END:
            self._verdict.problem = self._describe_problem(data, why, at)
        return self._verdict

    def _verify_piece(self, data: NDArray[np.uint8], at: int) -> tuple[int, int]:
        """Verify events as far as these bytes reach; return why it stopped, and where in them."""
        why = _PART
        while why in {_PART, _FORMAT, _INCIDENT}:
            why, at, self._verdict.events = _walk_events(
                data, at, self._checksum, self._verdict.events, TABLES, self._part_bytes, self._position
            )
            if why == _FORMAT:
                why, at = self._read_format(data, at)
            elif why == _INCIDENT:
                at = self._add_incident(data, at)
            self._verdict.bytes = self._base + at
            self._report(self._verdict.bytes)
        return why, at

    def _read_format(self, data: NDArray[np.uint8], at: int) -> tuple[int, int]:
        """Read the format event: whether events carry checksums. Return why it stopped, and where."""
        event = data[at : at + int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")].tobytes()
        self._checksum = _has_checksums(event)
        if self._checksum and not _is_checksum_right(event):
            return _BAD_CHECKSUM, at
        self._position[1] |= bool(event[FLAGS_AT] & RELAYED)
        if end := int.from_bytes(event[END_AT : END_AT + 4], "little"):
            self._position[0] = end
        self._verdict.events += 1
        self._verdict.has_checksums |= self._checksum > 0
        return _FORMAT, at + len(event)

    def _add_incident(self, data: NDArray[np.uint8], at: int) -> int:
        """Add the INCIDENT event that begins at byte `at` to the verdict, and return where it ends."""
        end = at + int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        body = data[at + HEADER : end - self._checksum].tobytes()
        self._verdict.incidents.append(
            Incident(self._verdict.events - 1, self._name, self._base + at, parse_message(body))
        )
        return end

    def _describe_problem(self, data: NDArray[np.uint8], why: int, at: int) -> str:
        """Describe why the walk stopped, with the position."""
        if why == _ENCRYPTED:
            return (
                f"{self._name}:{self._base + at} the log is encrypted from here on, and only its server has the key:"
                " what follows cannot be checked"
            )
        name = event_name(int(data[at + 4])) if at + HEADER <= data.size else "event"
        problem = {
            _CUT: f"the file ends inside this event, {data.size - at} bytes after it began",
            _BAD_SIZE: "the event's size is not one that an event can have",
            _BAD_CHECKSUM: "the event does not match its checksum",
            _BAD_POSITION: PROBLEMS[StopReason.BAD_POSITION],
        }[why]
        extract = data[at : at + 24].tobytes().hex(" ")
        return f"{self._name}:{self._base + at} {name}: {problem}; bytes there: {extract}"


def _describe_magic(magic: bytes) -> str:
    """Return what is wrong with the first bytes of a file; empty if it is a binlog."""
    if magic == ENCRYPTED_MAGIC:
        return "the file is encrypted, and only its server has the key"
    if magic == MAGIC:
        return ""
    begins = f"it begins with {magic.hex(' ')}" if magic else "it is empty"
    return f"this is no binlog: {begins}, not {MAGIC.hex(' ')}"


def _has_checksums(event: bytes) -> int:
    """Return whether events carry a checksum, which the last byte of the format event before its own checksum says."""
    return CHECKSUM if len(event) >= HEADER + 57 + 1 + CHECKSUM and event[-5] == 1 else 0


def _is_checksum_right(event: bytes) -> bool:
    """Tell whether the checksum of an event is right. The in-use flag of a file was not set when it was computed."""
    clean = event[:17] + bytes([event[17] & ~IN_USE]) + event[18:-CHECKSUM]
    return zlib.crc32(clean) == int.from_bytes(event[-CHECKSUM:], "little")
