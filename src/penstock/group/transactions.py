"""What is known of the transactions in blocks that follow one another, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.model import Position
from penstock.store import BatchSize


@dataclass(frozen=True, slots=True, eq=False)
class Transactions:
    """Also the part of one, at the end, if it has entries."""

    blocks: Sequence[Block]
    times: NDArray[np.int64]  # of the commit, in microseconds
    entries: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in bytes
    are_statements: NDArray[np.bool_]
    is_open: bool  # the last one has no end here

    def __len__(self) -> int:
        return self.times.size

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "Transactions":
        if not blocks:
            none = np.empty(0, np.int64)
            return cls(blocks, none, none, none, none.astype(np.bool_), is_open=False)
        boundary, entry = joined(blocks, "boundary").astype(np.bool_), joined(blocks, "entry")
        ends = np.flatnonzero(boundary)
        is_open = bool((entry[int(ends[-1]) + 1 if ends.size else 0 :] != Entry.OTHER).any())
        if is_open:
            ends = np.append(ends, boundary.size - 1)
        times = np.concatenate([times_of(block) for block in blocks])
        sizes = np.concatenate([block.raw[2] for block in blocks])
        entries = _sums((entry != Entry.OTHER) | boundary, ends)
        return cls(blocks, times[ends], entries, _sums(sizes, ends), _sums(entry == Entry.DDL, ends) > 0, is_open)

    @property
    def without_last(self) -> "Transactions":
        rest = {name: getattr(self, name)[:-1] for name in ("times", "entries", "sizes", "are_statements")}
        return replace(self, **rest, is_open=False)

    def weights(self, size: BatchSize) -> NDArray[np.int64]:
        """What counts for the size of a batch."""
        return self.entries if size.unit == "items" else self.sizes

    def end_of(self, event: int) -> Position:
        """Of an event, counted over all blocks."""
        for block in self.blocks:
            if event < len(block):
                return block.end_of_event(event)
            event -= len(block)
        raise IndexError(event)


def times_of(block: Block) -> NDArray[np.int64]:
    """In microseconds, of the commit of each event's transaction; where that is not known, of the event."""
    commit: NDArray[np.int64] = block.column("commit_us")
    return np.where(commit > 0, commit, block.column("timestamp") * 1_000_000)


def joined(blocks: Sequence[Block], column: str) -> NDArray[np.int64]:
    return np.concatenate([block.column(column) for block in blocks])


def _sums(values: NDArray[np.generic], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each after the end before."""
    return np.diff(np.cumsum(values, dtype=np.int64)[ends], prepend=0)
