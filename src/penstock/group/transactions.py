"""The transactions in a sequence of blocks, as arrays: commit time, entries, bytes."""

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
    """The transactions in consecutive blocks of binlog events of one source, with the commit time, number of entries
    and size of each; the last transaction may be incomplete (`is_open`)."""

    blocks: Sequence[Block]
    times: NDArray[np.int64]  # of the commit, in microseconds
    entries: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in bytes
    are_statements: NDArray[np.bool_]
    is_open: bool  # the last one has no end here

    def __len__(self) -> int:
        return self.times.size

    @classmethod
    def from_blocks(cls, blocks: Sequence[Block]) -> "Transactions":
        """Return the transactions of blocks that follow one another."""
        if not blocks:
            none = np.empty(0, np.int64)
            return cls(blocks, none, none, none, none.astype(np.bool_), is_open=False)
        boundary, entry = join_column(blocks, "boundary").astype(np.bool_), join_column(blocks, "entry")
        ends = np.flatnonzero(boundary)
        is_open = bool((entry[int(ends[-1]) + 1 if ends.size else 0 :] != Entry.OTHER).any())
        if is_open:
            ends = np.append(ends, boundary.size - 1)
        times = np.concatenate([commit_times(block) for block in blocks])
        sizes = np.concatenate([block.raw[2] for block in blocks])
        entries = _sum_between((entry != Entry.OTHER) | boundary, ends)
        return cls(
            blocks, times[ends], entries, _sum_between(sizes, ends), _sum_between(entry == Entry.DDL, ends) > 0, is_open
        )

    @property
    def without_last(self) -> "Transactions":
        """Return all transactions but the last, incomplete one."""
        rest = {name: getattr(self, name)[:-1] for name in ("times", "entries", "sizes", "are_statements")}
        return replace(self, **rest, is_open=False)

    def weights(self, size: BatchSize) -> NDArray[np.int64]:
        """Return what each transaction counts against the size of a batch: its entries, or its bytes."""
        return self.entries if size.unit == "items" else self.sizes

    def end_of_event(self, event: int) -> Position:
        """Return the position after an event, counted over all blocks."""
        for block in self.blocks:
            if event < len(block):
                return block.end_of_event(event)
            event -= len(block)
        raise IndexError(event)


def commit_times(block: Block) -> NDArray[np.int64]:
    """Return the commit time of each event's transaction in microseconds; where that is unknown, the time of the
    event."""
    commit: NDArray[np.int64] = block.column("commit_us")
    return np.where(commit > 0, commit, block.column("timestamp") * 1_000_000)


def join_column(blocks: Sequence[Block], column: str) -> NDArray[np.int64]:
    """Return a column of the event index of several blocks as one array."""
    return np.concatenate([block.column(column) for block in blocks])


def _sum_between(values: NDArray[np.generic], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of `values` over the ranges that end at `ends`."""
    return np.diff(np.cumsum(values, dtype=np.int64)[ends], prepend=0)
