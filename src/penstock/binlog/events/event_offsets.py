"""File offsets of events: of those in the file itself, and of those that another event held.

An event that was expanded from another one has no bytes of its own in the file. It gets a share of the file offsets of
the event that held it, so that offsets rise with the events whatever they were packed into.
"""

from collections.abc import Generator
from contextlib import contextmanager

from penstock.binlog.events.input_buffer import InputBuffer
from penstock.binlog.events.layout import ARTIFICIAL, END_AT, FLAGS_AT, TYPE_AT, EventType
from penstock.binlog.events.state import (
    BY_BYTES,
    CHECKSUM_BYTES,
    FRAME_AT,
    FRAME_SHIFT,
    FRAME_SPAN,
    FRAME_TOTAL,
    POSITION,
    IndexState,
)

_WRAP = 1 << 32  # the end positions in headers start again from 0 there


def locate_event(state: IndexState, buffer: InputBuffer, depth: int) -> tuple[int, int]:
    """Return where the next event begins in the file, and how many bytes of the file are its own: an event that was
    inside another (`depth` is not 0) has a share of that."""
    slots, size = state.slots, buffer.event_size
    if depth:
        at, span, total = (int(slots[slot]) for slot in (FRAME_AT, FRAME_SPAN, FRAME_TOTAL))
        inside = buffer.at + int(slots[FRAME_SHIFT])
        start = at + inside * span // total
        return start, at + (inside + size) * span // total - start
    return max(int(slots[POSITION]), end_in_header(state, buffer.event) - size), size


def end_in_header(state: IndexState, event: memoryview) -> int:
    """Return the end position that an event has in its header, beyond 4 GiB too; 0 when it has none."""
    if state.slots[BY_BYTES]:
        return 0
    before, low = int(state.slots[POSITION]), int.from_bytes(event[END_AT : END_AT + 4], "little")
    end = before // _WRAP * _WRAP + low
    if end < before - _WRAP // 2:
        end += _WRAP
    return end if low else 0


@contextmanager
def share_offsets(state: IndexState, start: int, span: int, total: int) -> Generator[None]:
    """Give the events inside of one event a share of its file offsets, in a `with` block that indexes their `total`
    bytes."""
    slots = state.slots
    own = (CHECKSUM_BYTES, FRAME_AT, FRAME_SPAN, FRAME_TOTAL, FRAME_SHIFT)
    outside = [int(slots[slot]) for slot in own]
    for slot, value in zip(own, (0, start, span, total, 0), strict=True):
        slots[slot] = value
    yield
    for slot, value in zip(own, outside, strict=True):
        slots[slot] = value
    slots[POSITION] = start + span


def is_artificial(event: memoryview) -> bool:
    """Return whether the server made an event up for the stream: its bytes are in no file. MariaDB's list of GTIDs
    nevertheless has an end position, that of the events that were left out before it."""
    flags = int.from_bytes(event[FLAGS_AT : FLAGS_AT + 2], "little")
    has_end = any(event[END_AT : END_AT + 4])
    return bool(flags & ARTIFICIAL) and (not has_end or event[TYPE_AT] == EventType.MARIADB_GTID_LIST)
