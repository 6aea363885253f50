"""A block in the store: its entries, their sequences and their bytes.

An entry is an event that means something to a consumer: the begin or the end of a transaction, rows, a statement, or a
place between two transactions. Other events, such as table maps, belong to the entry after them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import EVENT_SCHEMA, Block
from penstock.binlog.events.layout import Entry
from penstock.model import Position

# Of one event in a block beside its own bytes.
INDEX_BYTES = 4 + sum(field.type.bit_width // 8 for field in EVENT_SCHEMA if field.name != "event")


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Of one block."""

    block: Block
    events: NDArray[np.int64]  # index in the block of each entry
    reach: NDArray[np.int64]  # bytes of the block up to the end of each entry; the last one has all of them
    ends: NDArray[np.int64]  # offset in the log's file of the end of each
    times: NDArray[np.int64]  # seconds
    are_boundaries: NDArray[np.bool_]
    are_statements: NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block) -> "Entries":
        entry, boundary = block.column("entry"), block.column("boundary").view(np.bool_)
        events = np.flatnonzero(entry.view(np.bool_) | boundary)
        _, bounds = block.packed
        reach = bounds[events + 1] + INDEX_BYTES * (events + 1) - bounds[0]
        if events.size:
            reach[-1] = int(bounds[-1]) - int(bounds[0]) + INDEX_BYTES * len(block)
        ends = (block.column("position") + block.column("span"))[events]
        times = block.column("timestamp")[events]
        return cls(block, events, reach, ends, times, boundary[events], entry[events] == Entry.DDL)

    def __len__(self) -> int:
        return self.events.size

    @property
    def size(self) -> int:
        return int(self.reach[-1]) if self.reach.size else 0

    def end_of(self, entry: int) -> Position:
        return Position(self.block.file, int(self.ends[entry]), int(self.times[entry]))

    def part(self, first: int, stop: int) -> Block:
        """Entries first … stop-1 with the events that belong to them, without copying."""
        before = int(self.events[first - 1]) + 1 if first else 0
        return self.block.slice(before, int(self.events[stop - 1]) + 1 if stop < len(self) else len(self.block))


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What is known of a block without looking into it."""

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
        return self.first + self.count - 1

    @classmethod
    def of(
        cls, entries: Entries, first: int, base: int, after: Position | None = None, *, is_begin: bool = True
    ) -> "Held":
        boundaries = np.flatnonzero(entries.are_boundaries)
        block = entries.block
        boundary = first + int(boundaries[-1]) if boundaries.size else -1
        start, end = block.start, entries.end_of(len(entries) - 1)
        return cls(first, len(entries), base, entries.size, after or start, start, end, boundary, is_begin)
