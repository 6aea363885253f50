"""The index of a store: where it begins, where it ends, and which block holds which sequence and position.

It reads no clock and takes no lock: the store calls it while it holds its own.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from penstock.errors import StoreError, StoreFullError
from penstock.model import Position
from penstock.store.batch import BatchSize
from penstock.store.block_info import BlockEntries, BlockInfo, EntryPosition
from penstock.store.block_storage import BlockStorage
from penstock.store.client import StoreClient


class StoreIndex:
    """Maps sequences and log positions to the blocks of a storage.

    index = StoreIndex(MemoryStorage(64 << 20), start)
    index.put, index.boundary, index.origin  # the end, the last transaction boundary, the oldest readable position
    """

    def __init__(self, storage: BlockStorage, start: Position) -> None:
        self.storage = storage
        self.reset(start)

    def reset(self, start: Position) -> None:
        """Read the bounds from the blocks of the storage; without blocks, begin at `start`."""
        blocks = self.storage.blocks
        self.origin = EntryPosition(-1, start, 0)  # the oldest position to read from: everything before it is gone
        self.boundary = self.origin  # the last transaction boundary
        self.put = self.origin
        self.is_origin_open = False  # the origin is inside a transaction whose end was not put yet
        if len(blocks):
            oldest, newest = blocks[blocks.head], blocks[blocks.tail - 1]
            self.origin = self.boundary = EntryPosition(oldest.first - 1, oldest.after, oldest.base)
            self.put = _end(newest)
            if not oldest.is_begin:
                self._set_origin()
            ended = self._last_block_with_boundary()
            if ended is not None:
                self.boundary = _boundary_in(ended, self.storage.entries(ended), ended.boundary)

    def continue_at(self, position: Position) -> None:
        """Continue after everything that was put at `position`, which is of another epoch or behind a gap."""
        self.put = self.boundary = EntryPosition(self.put.sequence, position, self.put.bytes)

    def origin_for(self, position: Position) -> EntryPosition:
        """Return the oldest readable position in the log (the epoch) that `position` belongs to.

        After a switch of the source, the new log begins in the store where capture resumed in it.
        """
        if position.epoch <= self.origin.position.epoch:
            return self.origin
        blocks = self.storage.blocks
        number = blocks.find(lambda block: block.after.epoch < position.epoch)
        if number == blocks.tail:
            return self.put
        block = blocks[number]
        return EntryPosition(block.first - 1, block.after, block.base)

    def covers(self, position: Position) -> bool:
        """Return whether a position of an earlier log lies in what the store still has of that log."""
        blocks = self.storage.blocks
        number = blocks.find(lambda block: block.after.epoch <= position.epoch)
        end = blocks[number - 1].end if number > blocks.head else self.origin.position
        return self.origin_for(position).position <= position <= end

    def assign_sequences(self, blocks: Sequence[BlockEntries]) -> list[tuple[BlockInfo, BlockEntries]]:
        """Return the blocks with the sequences that their entries will have when they are added next."""
        numbered: list[tuple[BlockInfo, BlockEntries]] = []
        sequence, base, after = self.put.sequence + 1, self.put.bytes, self.put.position
        is_begin = self.boundary.sequence == self.put.sequence
        for entries in blocks:
            info = BlockInfo.of(entries, sequence, base, after, is_begin=is_begin)
            sequence, base, after = info.last + 1, base + info.size, info.end
            is_begin = info.boundary == info.last
            numbered.append((info, entries))
        return numbered

    def add(self, info: BlockInfo, entries: BlockEntries) -> None:
        """Add a block that was numbered and written, and move the bounds behind it."""
        self.storage.add(info, entries)
        self.put = _end(info)
        if info.boundary >= 0:
            self.boundary = _boundary_in(info, entries, info.boundary)
            if self.is_origin_open:
                self.origin, self.is_origin_open = _first_boundary(info, entries), False
        elif self.is_origin_open:
            self.origin = self.put

    def discard_incomplete(self) -> None:
        """Drop the entries after the last transaction boundary."""
        storage = self.storage
        blocks = storage.blocks
        while len(blocks) and blocks[blocks.tail - 1].last > self.boundary.sequence:
            info, entries = blocks[blocks.tail - 1], storage.drop_last()
            count = self.boundary.sequence + 1 - info.first
            if count > 0:
                whole = BlockEntries.of(entries.part(0, count))
                shorter = BlockInfo.of(whole, info.first, info.base, info.after, is_begin=info.is_begin)
                try:
                    storage.write([(shorter, whole)])
                except StoreFullError as error:
                    self._step_back(info, error)
                    continue
                self.add(shorter, whole)
                break
        self.put = self.boundary
        if self.origin.sequence > self.put.sequence:
            self.origin, self.is_origin_open = self.put, False

    def _step_back(self, dropped: BlockInfo, error: StoreFullError) -> None:
        """Move to the boundary before a block that could not be written back: capture reads the rest again."""
        ended = self._last_block_with_boundary()
        if ended is not None:
            self.boundary = _boundary_in(ended, self.storage.entries(ended), ended.boundary)
        elif dropped.is_begin:
            self.boundary = EntryPosition(dropped.first - 1, dropped.after, dropped.base)
        else:
            raise StoreError(
                f"the store has lost the transaction that ends at {self.boundary.position} ({error}), and does not have"
                " its beginning: make room, empty the store's folder, and start again from the clients' cursors"
            ) from None

    def _last_block_with_boundary(self) -> BlockInfo | None:
        """Return the last block in which a transaction ends."""
        blocks = self.storage.blocks
        newest_first = (blocks[number] for number in range(blocks.tail - 1, blocks.head - 1, -1))
        return next((block for block in newest_first if block.boundary >= 0), None)

    def free(self, sequence: int) -> BlockInfo | None:
        """Free the blocks up to `sequence` that no client needs, and return the last one that was freed. The oldest
        readable position is then the first boundary in what is left."""
        freed = self.storage.free(sequence)
        if freed is None:
            return None
        self.is_origin_open = False
        if freed.last == self.boundary.sequence:
            self.origin = self.boundary
        elif freed.boundary == freed.last:
            self.origin = _end(freed)
        else:
            self._set_origin()
        return freed

    def _set_origin(self) -> None:
        """Set the origin to the first boundary there is, or to the end while there is none."""
        for info in self.storage.blocks:
            if info.boundary >= 0:
                self.origin = _first_boundary(info, self.storage.entries(info))
                return
        self.origin, self.is_origin_open = self.put, True

    def blocks_for_batch(self, client: StoreClient, size: BatchSize) -> list[BlockInfo]:
        """Return the blocks with the entries that the client's next batch can have."""
        blocks, after, chosen = self.storage.blocks, client.get, list[BlockInfo]()
        has_end = not client.wants_whole
        for block in blocks.iter_from(blocks.find(lambda block: block.last <= after.sequence)):
            chosen.append(block)
            has_end = has_end or block.boundary > after.sequence
            is_full = block.last - after.sequence >= size.count
            if size.unit == "memory":
                available_bytes = block.base + block.size - after.bytes
                is_full = available_bytes >= size.bytes or size.is_enough(available_bytes)
            if is_full and has_end:
                break
        return chosen

    def find_delivered(self, client: StoreClient, end: Position, sequence: int | None) -> EntryPosition:
        """Return the entry that ends at `end`, among those that the client got and has not acked."""
        blocks = self.storage.blocks
        low, high = client.ack.sequence + 1, client.get.sequence
        if sequence is not None:
            if not low <= sequence <= high:
                raise StoreError(
                    f"client {client.name} cannot ack sequence {sequence}: it has acked {low - 1} and got {high}"
                )
            low = high = sequence
        for block in blocks.iter_from(blocks.find(lambda block: block.last < low)):
            if block.first > high:
                break
            if block.end < end or block.start >= end:
                continue
            entries = self.storage.entries(block)
            ends = entries.ends
            same = block.first + np.flatnonzero(ends == end.offset) if block.end.file_key == end.file_key else ends[:0]
            same = same[(same >= low) & (same <= high)]
            if same.size:
                return _position_in(block, entries, int(same[-1]))
        raise StoreError(
            f"client {client.name} cannot ack {end}: no entry that it got and has not acked ends there"
            f" (acked {client.ack.position}, got {client.get.position})"
        )

    def last_boundary(self, after: EntryPosition, sequence: int) -> EntryPosition:
        """Return the last boundary from `after`, which is a boundary itself, up to a sequence."""
        blocks = self.storage.blocks
        newest = min(blocks.find(lambda block: block.last < sequence), blocks.tail - 1)
        for number in range(newest, blocks.head - 1, -1):
            block = blocks[number]
            if block.last <= after.sequence:
                break
            if block.boundary >= 0:
                entries = self.storage.entries(block)
                boundaries = np.flatnonzero(entries.are_boundaries[: sequence + 1 - block.first])
                if boundaries.size:
                    boundary = _boundary_in(block, entries, block.first + int(boundaries[-1]))
                    return max(after, boundary, key=lambda position: position.sequence)
        return after

    def boundary_at(self, end: Position) -> EntryPosition | None:
        """Return the last boundary that is not after `end`."""
        blocks = self.storage.blocks
        newest = min(blocks.find(lambda block: block.end <= end), blocks.tail - 1)
        for number in range(newest, blocks.head - 1, -1):
            block = blocks[number]
            if block.boundary < 0:
                continue
            entries = self.storage.entries(block)
            inside = len(entries.block.between(block.start, end))
            boundaries = np.flatnonzero(entries.are_boundaries & (entries.events < inside))
            if boundaries.size:
                return _boundary_in(block, entries, block.first + int(boundaries[-1]))
        return None

    def blocks_near(self, end: Position) -> list[BlockInfo]:
        """Return the block whose entry ends at `end`, and the last block before it with a boundary."""
        blocks = self.storage.blocks
        number = blocks.find(lambda block: block.end < end)
        near = [blocks[number]] if number < blocks.tail else []
        earlier_blocks = (blocks[earlier] for earlier in range(number - 1, blocks.head - 1, -1))
        return near + list(islice((block for block in earlier_blocks if block.boundary >= 0), 1))

    def blocks_after(self, start: Position, max_bytes: int) -> list[BlockInfo]:
        """Return the blocks with the log after `start`, up to a boundary and `max_bytes`."""
        chosen, size, has_end = list[BlockInfo](), 0, False
        blocks = self.storage.blocks
        for block in blocks.iter_from(blocks.find(lambda block: block.end <= start)):
            chosen.append(block)
            # The boundary of the first block may be `start` itself.
            has_end = has_end or (block.boundary >= 0 and block.start >= start)
            size += block.end.offset - max(block.start, start).offset
            if has_end and size >= max_bytes:
                break
        return chosen


def _end(info: BlockInfo) -> EntryPosition:
    return EntryPosition(info.last, info.end, info.base + info.size)


def _position_in(info: BlockInfo, entries: BlockEntries, sequence: int) -> EntryPosition:
    if sequence == info.last:
        return _end(info)
    entry = sequence - info.first
    return EntryPosition(sequence, entries.end_of(entry), info.base + int(entries.reach[entry]))


def _boundary_in(info: BlockInfo, entries: BlockEntries, sequence: int) -> EntryPosition:
    """Return the boundary after an entry, with the GTIDs that are executed there."""
    entry = sequence - info.first
    return EntryPosition(sequence, entries.boundary_after(entry), info.base + int(entries.reach[entry]))


def _first_boundary(info: BlockInfo, entries: BlockEntries) -> EntryPosition:
    return _boundary_in(info, entries, info.first + int(np.argmax(entries.are_boundaries)))
