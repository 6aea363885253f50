"""A block in the store: its entries, their sequences and their bytes.

An entry is an event that means something to a consumer: the begin or the end of a transaction, rows, a statement, or a
boundary between two transactions. Other events, such as table maps, belong to the entry after them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import EVENT_INDEX_BYTES
from penstock.binlog.events.layout import Entry
from penstock.model import Position

# What a block takes of memory beside its events and their index: measured, see test_memory.py.
_BLOCK_BYTES, _ENTRY_BYTES = 2250, 18


def memory_bytes(size: int, count: int) -> int:
    """Return the memory that a block of `size` bytes and `count` entries takes, with its index."""
    return size + _BLOCK_BYTES + _ENTRY_BYTES * count


@dataclass(frozen=True, slots=True)
class EntryPosition:
    """The point after an entry of the store: the sequence (number) of that entry, its position in the source's log, and
    the total size of everything put into the store up to there."""

    sequence: int
    position: Position
    bytes: int  # size of all entries up to this point together, since the store began; not an offset in a file


@dataclass(frozen=True, slots=True, eq=False)
class BlockEntries:
    """The entries of one block, and where each begins and ends in it."""

    block: Block
    events: NDArray[np.int64]  # index in the block of each entry
    reach: NDArray[np.int64]  # bytes of the block up to the end of each entry; the last one has all of them
    are_boundaries: NDArray[np.bool_]
    are_statements: NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block) -> "BlockEntries":
        """Return the entries of a block."""
        entry, boundary = block.column("entry"), block.column("boundary").view(np.bool_)
        events = np.flatnonzero(entry.view(np.bool_) | boundary)
        bounds = block.index.bounds
        reach = bounds[events + 1] + EVENT_INDEX_BYTES * (events + 1) - bounds[0]
        if events.size:
            reach[-1] = int(bounds[-1]) - int(bounds[0]) + EVENT_INDEX_BYTES * len(block)
        return cls(block, events, reach, boundary[events], entry[events] == Entry.DDL)

    def __len__(self) -> int:
        return self.events.size

    @property
    def size(self) -> int:
        """The bytes of the block: its events and their index."""
        return int(self.reach[-1]) if self.reach.size else 0

    @property
    def memory_bytes(self) -> int:
        """The memory that the block takes in the store, with its index."""
        return memory_bytes(self.size, len(self))

    @property
    def ends(self) -> NDArray[np.int64]:
        """The offset in the log's file at which each entry ends."""
        return (self.block.column("position") + self.block.column("span"))[self.events]

    def end_of(self, entry: int) -> Position:
        """Return the position at which an entry ends."""
        return self.block.end_of_event(int(self.events[entry]))

    def boundary_after(self, entry: int) -> Position:
        """Return the position after an entry that ends a transaction, with the GTIDs up to there."""
        return self.block.boundary_after(int(self.events[entry]))

    def part(self, first: int, stop: int) -> Block:
        """Return the entries first … stop-1 with the events that belong to them, without copying."""
        before = int(self.events[first - 1]) + 1 if first else 0
        return self.block.slice(before, int(self.events[stop - 1]) + 1 if stop < len(self) else len(self.block))


@dataclass(frozen=True, slots=True, eq=False)
class BlockInfo:
    """A summary of a block, known without reading it."""

    first: int  # sequence of its first entry
    count: int  # of entries
    base: int  # bytes of everything that was put before it
    size: int
    after: Position  # the end of what came before it, maybe in another file
    start: Position
    end: Position  # of its last entry; events after that belong to the entry to come
    boundary: int  # sequence of the last entry after which the log is between two transactions; -1: none
    is_begin: bool = True  # the log is between two transactions before its first entry

    @property
    def last(self) -> int:
        """The sequence of its last entry."""
        return self.first + self.count - 1

    @property
    def memory_bytes(self) -> int:
        """The memory that the block takes in the store, with its index."""
        return memory_bytes(self.size, self.count)

    def is_same(self, other: "BlockInfo") -> bool:
        """Return whether it holds the same entries as `other`: after entries were discarded, others may have their
        numbers."""
        return (self.first, self.count, self.size, self.end) == (other.first, other.count, other.size, other.end)

    @classmethod
    def of(
        cls, entries: BlockEntries, first: int, base: int, after: Position | None = None, *, is_begin: bool = True
    ) -> "BlockInfo":
        """Return the summary of a block whose first entry has the sequence `first`, after `base` bytes that were put
        before."""
        boundaries = np.flatnonzero(entries.are_boundaries)
        block = entries.block
        boundary = first + int(boundaries[-1]) if boundaries.size else -1
        start, end = block.start, entries.end_of(len(entries) - 1)
        return cls(first, len(entries), base, entries.size, after or start, start, end, boundary, is_begin)
