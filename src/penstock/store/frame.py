"""A block in a segment file.

magic 4 | CRC32 of what follows, up to the events 4 | length of all 8 | first sequence, entries, bytes before, bytes,
boundary 8 each | start offset, end offset, time of the end 8 each | bytes of events 8 | events 4 | their CRC32 4
| length of the description 4 | length of the name 4 | shape of the index 4 | is it between two transactions before it 4
| name of the log file, description | bounds of the events | columns of the index | the events
Parts are padded to 8 bytes.
"""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import EVENT_SCHEMA, Block
from penstock.binlog.events.checksum import checksum_of
from penstock.model import Position
from penstock.store.held import Entries, Held

_HEAD = struct.Struct("<4sIQ9q6I")
_MAGIC = b"psb1"
_AFTER_CRC = 8
HEAD_BYTES = _HEAD.size + 256  # with the name of the log file
_COLUMNS = [field for field in EVENT_SCHEMA if field.name != "event"]
_SHAPE = zlib.crc32(str(EVENT_SCHEMA).encode())
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
    description: int
    name: str

    @property
    def events_at(self) -> int:
        return self.length - self.event_bytes - -self.event_bytes % 8


def encode(held: Held, entries: Entries) -> list[Part]:
    """The parts of the frame, one after the other; the events themselves are not copied."""
    block = entries.block
    data, starts, sizes = block.raw
    first, stop = (int(starts[0]), int(starts[-1] + sizes[-1])) if len(block) else (0, 0)
    bounds = np.append(starts, stop) - first
    name, description = block.file.encode(), block.describe()
    columns = (_bytes_of(block, field.name) for field in _COLUMNS)
    events = data[first:stop]
    parts: list[Part] = []
    length = _HEAD.size
    arrays = (bounds.astype(np.int32).view(np.uint8), *columns, events)
    for part in (name + description, *(array.data for array in arrays)):
        padding = bytes(-(length + len(part)) % 8)
        parts += [part, padding]
        length += len(part) + len(padding)
    head = _HEAD.pack(
        _MAGIC, 0, length, held.first, held.count, held.base, held.size, held.boundary,
        held.start.offset, held.end.offset, held.end.timestamp, events.size, len(block), checksum_of(events),
        len(description), len(name), _SHAPE, held.is_begin,
    )  # fmt: skip
    crc = zlib.crc32(head[_AFTER_CRC:])
    for part in parts[:-2]:
        crc = zlib.crc32(part, crc)
    return [head[:4] + crc.to_bytes(4, "little") + head[_AFTER_CRC:], *parts]


def read_head(raw: bytes) -> Head | None:
    """Of the first HEAD_BYTES bytes of a frame, or all of them; None for what is no frame."""
    if len(raw) < _HEAD.size:
        return None
    magic, crc, length, *numbers = _HEAD.unpack_from(raw)
    first, count, base, size, boundary, start, end, time_s = numbers[:8]
    event_bytes, events, events_crc, description, name_bytes, shape, is_begin = numbers[8:]
    if magic != _MAGIC or shape != _SHAPE or _HEAD.size + name_bytes > min(len(raw), length) or event_bytes > length:
        return None
    name = raw[_HEAD.size : _HEAD.size + name_bytes].decode("utf-8", "replace")
    held = Held(first, count, base, size, Position(name, start), Position(name, end, time_s), boundary, bool(is_begin))
    return Head(crc, length, held, event_bytes, events, events_crc, description, name)


def is_whole(head: Head, raw: NDArray[np.uint8]) -> bool:
    at = head.events_at
    if raw.size != head.length or zlib.crc32(raw[_AFTER_CRC:at].data) != head.crc:
        return False
    return checksum_of(raw[at : at + head.event_bytes]) == head.events_crc


def decode(head: Head, raw: NDArray[np.uint8]) -> Block:
    """The block of a whole frame, over the same memory."""
    at = _HEAD.size + len(head.name.encode())
    description = raw[at : at + head.description].tobytes()
    at += head.description
    bounds, at = _next(raw, at, 4 * (head.events + 1))
    events = raw[head.events_at : head.events_at + head.event_bytes]
    arrays: dict[str, pa.Array] = {
        "event": pa.Array.from_buffers(pa.binary(), head.events, [None, pa.py_buffer(bounds), pa.py_buffer(events)])
    }
    for field in _COLUMNS:
        part, at = _next(raw, at, head.events * field.type.bit_width // 8)
        arrays[field.name] = pa.Array.from_buffers(field.type, head.events, [None, pa.py_buffer(part)])
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in EVENT_SCHEMA.names], schema=EVENT_SCHEMA)
    return Block.of_wire(batch, description)


def _next(raw: NDArray[np.uint8], at: int, size: int) -> tuple[NDArray[np.uint8], int]:
    at += -at % 8
    return raw[at : at + size], at + size


def _bytes_of(block: Block, name: str) -> NDArray[np.uint8]:
    return block.gtids.reshape(-1) if name == "gtid" else block.column(name).view(np.uint8)
