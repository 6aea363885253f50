"""The frame of a block in a segment file.

    magic 4 | CRC32 of what follows up to the index 4 | length of all 8 | first sequence, entries, bytes before, bytes,
    boundary 8 each | offset of what came before, start offset, end offset, time of the end 8 each | bytes of events 8
    | events 4 | their CRC32 4 | CRC32 of the index 4 | length of the names 4 | of the description 4 | flags 4
    | epoch of the log, and that of what came before 4 each
    | name of the log file and, after a zero byte, that of what came before | description | index of the events | events

What comes before the index is padded to 8 bytes, as is the whole. Flags: 1, the log is between two transactions before
it; 2, the events carry checksums that were verified, and the CRC32 covers only these, so that the events are not summed
a second time.
"""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.checksum import block_checksum, checksum_of, have_valid_checksums
from penstock.binlog.events.event_columns import EventColumns
from penstock.model import Position
from penstock.model.position import ensure_file_number
from penstock.store.block_info import BlockEntries, BlockInfo

_HEAD = struct.Struct("<4sIQ10q8I")
_MAGIC = b"psb4"
_AFTER_CRC = 8
_IS_BEGIN, _HAS_BLOCK_CHECKSUM = 1, 2
HEAD_BYTES = _HEAD.size + 511  # with two names of files
Part = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a frame: what can be told of it from its first bytes."""

    crc: int
    length: int
    info: BlockInfo
    event_bytes: int
    events: int
    events_crc: int
    index_crc: int
    names: bytes
    description: int
    has_block_checksum: bool

    @property
    def index_at(self) -> int:
        """The offset in the frame at which the index of the events begins."""
        return _padded(_HEAD.size + len(self.names) + self.description)

    @property
    def events_at(self) -> int:
        """The offset in the frame at which the events begin."""
        return self.index_at + EventColumns.buffer_size(self.events)


def encode(info: BlockInfo, entries: BlockEntries) -> list[Part]:
    """Return the parts of the frame, one after the other; neither the events nor their index is copied."""
    block = entries.block
    bounds, index = block.index.bounds, block.index.to_buffer()
    events = block.data[bounds[0] : bounds[-1]]
    names, description = f"{block.file}\0{info.after.file}".encode(), block.encode_description()
    has_block_checksum, events_crc = (
        (True, block.checksum) if block.checksum is not None else (False, checksum_of(events))
    )
    index_crc = checksum_of(index)
    head = Head(
        0, 0, info, events.size, len(block), events_crc, index_crc, names, len(description), has_block_checksum,
    )  # fmt: skip
    length = _padded(head.events_at + events.size)
    front = bytearray(head.index_at)
    _HEAD.pack_into(
        front, 0,
        _MAGIC, 0, length, info.first, info.count, info.base, info.size, info.boundary,
        info.after.offset, info.start.offset, info.end.offset, info.end.timestamp,
        head.event_bytes, head.events, events_crc, index_crc, len(names), len(description),
        _IS_BEGIN * info.is_begin + _HAS_BLOCK_CHECKSUM * has_block_checksum, info.end.epoch, info.after.epoch,
    )  # fmt: skip
    variable = names + description
    front[_HEAD.size : _HEAD.size + len(variable)] = variable
    struct.pack_into("<I", front, 4, zlib.crc32(memoryview(front)[_AFTER_CRC:]))
    return [bytes(front), index.data, events.data, bytes(length - head.events_at - events.size)]


def read_head(raw: bytes) -> Head | None:
    """Return the head of a frame from its first HEAD_BYTES bytes, or from all of them; None when it is not a frame."""
    if len(raw) < _HEAD.size:
        return None
    magic, crc, length, *numbers = _HEAD.unpack_from(raw)
    first, count, base, size, boundary, before, start, end, time_s = numbers[:9]
    event_bytes, events, events_crc, index_crc, names_bytes, description, flags, epoch, epoch_before = numbers[9:]
    if magic != _MAGIC or event_bytes < 0 or _HEAD.size + names_bytes > len(raw):
        return None
    names = raw[_HEAD.size : _HEAD.size + names_bytes]
    file, _, file_before = names.decode("utf-8", "replace").partition("\0")
    if ensure_file_number(file) != file or ensure_file_number(file_before) != file_before:
        return None
    after = Position(file_before, before, epoch=epoch_before)
    positions = Position(file, start, epoch=epoch), Position(file, end, time_s, epoch)
    info = BlockInfo(first, count, base, size, after, *positions, boundary, bool(flags & _IS_BEGIN))
    has_block_checksum = bool(flags & _HAS_BLOCK_CHECKSUM)
    head = Head(crc, length, info, event_bytes, events, events_crc, index_crc, names, description, has_block_checksum)
    return head if length == _padded(head.events_at + event_bytes) else None


def is_whole(head: Head, raw: NDArray[np.uint8]) -> bool:
    """Return whether a frame has the length that its head says, and fits its checksums."""
    if raw.size != head.length or zlib.crc32(raw[_AFTER_CRC : head.index_at].data) != head.crc:
        return False
    index, events = _index(head, raw), _events(head, raw)
    if checksum_of(index) != head.index_crc:
        return False
    if not head.has_block_checksum:
        return checksum_of(events) == head.events_crc
    bounds = EventColumns.from_buffer(index).bounds
    return have_valid_checksums(events, bounds) and block_checksum(events, bounds) == head.events_crc


def decode(head: Head, raw: NDArray[np.uint8]) -> Block:
    """Return the block of a whole frame, over the same memory."""
    at = _HEAD.size + len(head.names)
    description = raw[at : at + head.description].tobytes()
    checksum = head.events_crc if head.has_block_checksum else None
    return Block.from_description(
        description, _events(head, raw), EventColumns.from_buffer(_index(head, raw)), checksum
    )


def _index(head: Head, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return raw[head.index_at : head.index_at + EventColumns.buffer_size(head.events)]


def _events(head: Head, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return raw[head.events_at : head.events_at + head.event_bytes]


def _padded(size: int) -> int:
    return size + -size % 8
