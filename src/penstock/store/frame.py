"""A block in a segment file.

magic 4 | CRC32 of what follows, up to the events 4 | length of all 8 | first sequence, entries, bytes before, bytes,
boundary 8 each | offset of what came before, start offset, end offset, time of the end 8 each | bytes of events 8
| events 4 | their CRC32 4 | length of the names 4 | of the description 4 | of the index 4 | flags 4
| name of the log file and, after a zero byte, that of what came before | description | bounds of the events
| the other columns, as Arrow has them | the events
Parts are padded to 8 bytes. Flags: 1, the log is between two transactions before it; 2, the events carry checksums that
were found right, and the CRC32 is of these alone, so that nobody sums the events a second time.
"""

import struct
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import EVENT_SCHEMA, Block
from penstock.binlog.events.checksum import are_sound, checksum_of, seal_of
from penstock.model import Position
from penstock.store.held import Entries, Held

_HEAD = struct.Struct("<4sIQ10q6I")
_MAGIC = b"psb2"
_AFTER_CRC = 8
_IS_BEGIN, _IS_SEALED = 1, 2
HEAD_BYTES = _HEAD.size + 511  # with two names of files
_INDEX_SCHEMA = pa.schema([field for field in EVENT_SCHEMA if field.name != "event"])
Part = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a frame from its first bytes."""

    crc: int
    length: int
    held: Held
    event_bytes: int
    events: int
    events_crc: int
    names: bytes
    description: int
    index: int
    is_sealed: bool

    @property
    def bounds_at(self) -> int:
        return _padded(_HEAD.size + len(self.names) + self.description)

    @property
    def index_at(self) -> int:
        return self.bounds_at + _padded(4 * (self.events + 1))

    @property
    def events_at(self) -> int:
        return self.index_at + _padded(self.index)


def encode(held: Held, entries: Entries) -> list[Part]:
    """The parts of the frame, one after the other; the events themselves are not copied."""
    block = entries.block
    data, bounds = block.packed
    events, bounds = data[bounds[0] : bounds[-1]], bounds - bounds[0]
    names, description = f"{block.file}\0{held.after.file}".encode(), block.describe()
    index = block.events.drop_columns(["event"]).serialize()
    is_sealed, events_crc = (True, block.seal) if block.seal is not None else (False, checksum_of(events))
    head = Head(
        0, 0, held, events.size, len(block), events_crc, names, len(description), index.size, is_sealed,
    )  # fmt: skip
    length = head.events_at + _padded(events.size)
    packed = _HEAD.pack(
        _MAGIC, 0, length, held.first, held.count, held.base, held.size, held.boundary,
        held.after.offset, held.start.offset, held.end.offset, held.end.timestamp,
        head.event_bytes, head.events, head.events_crc, len(names), len(description), index.size,
        _IS_BEGIN * held.is_begin + _IS_SEALED * is_sealed,
    )  # fmt: skip
    front = np.zeros(head.events_at, np.uint8)
    about = packed + names + description
    for at, part in ((0, about), (head.bounds_at, bounds), (head.index_at, index)):
        raw = np.frombuffer(part, np.uint8)
        front[at : at + raw.size] = raw
    struct.pack_into("<I", front.data, 4, checksum_of(front[_AFTER_CRC:]))
    return [front.data, events.data, bytes(-events.size % 8)]


def read_head(raw: bytes) -> Head | None:
    """Of the first HEAD_BYTES bytes of a frame, or all of them; None for what is no frame."""
    if len(raw) < _HEAD.size:
        return None
    magic, crc, length, *numbers = _HEAD.unpack_from(raw)
    first, count, base, size, boundary, before, start, end, time_s = numbers[:9]
    event_bytes, events, events_crc, names_bytes, description, index, flags = numbers[9:]
    if magic != _MAGIC or event_bytes < 0 or _HEAD.size + names_bytes > len(raw):
        return None
    names = raw[_HEAD.size : _HEAD.size + names_bytes]
    file, _, file_before = names.decode("utf-8", "replace").partition("\0")
    places = Position(file_before, before), Position(file, start), Position(file, end, time_s)
    held = Held(first, count, base, size, *places, boundary, bool(flags & _IS_BEGIN))
    is_sealed = bool(flags & _IS_SEALED)
    head = Head(crc, length, held, event_bytes, events, events_crc, names, description, index, is_sealed)
    return head if length == head.events_at + _padded(event_bytes) else None


def is_whole(head: Head, raw: NDArray[np.uint8]) -> bool:
    at = head.events_at
    if raw.size != head.length or checksum_of(raw[_AFTER_CRC:at]) != head.crc:
        return False
    events = raw[at : at + head.event_bytes]
    if not head.is_sealed:
        return checksum_of(events) == head.events_crc
    bounds = _bounds(head, raw)
    return are_sound(events, bounds) and seal_of(events, bounds) == head.events_crc


def decode(head: Head, raw: NDArray[np.uint8]) -> Block:
    """The block of a whole frame, over the same memory."""
    at = _HEAD.size + len(head.names)
    description = raw[at : at + head.description].tobytes()
    events = raw[head.events_at : head.events_at + head.event_bytes]
    buffers = [None, pa.py_buffer(_bounds(head, raw)), pa.py_buffer(events)]
    index = pa.ipc.read_record_batch(pa.py_buffer(raw[head.index_at : head.index_at + head.index]), _INDEX_SCHEMA)
    event = pa.Array.from_buffers(pa.binary(), head.events, buffers)
    batch = pa.RecordBatch.from_arrays([event, *index.columns], schema=EVENT_SCHEMA)
    return replace(Block.of_wire(batch, description), seal=head.events_crc if head.is_sealed else None)


def _bounds(head: Head, raw: NDArray[np.uint8]) -> NDArray[np.int32]:
    return raw[head.bounds_at : head.bounds_at + 4 * (head.events + 1)].view(np.int32)


def _padded(size: int) -> int:
    return size + -size % 8
