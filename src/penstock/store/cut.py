"""Cuts batches: decides which entries of the blocks a batch holds, and where it ends."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from penstock.binlog.events.block import Block
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.block_info import BlockEntries, BlockInfo, EntryPosition
from penstock.store.client import StoreClient


@dataclass(frozen=True, slots=True)
class _Piece:
    """The entries low … high - 1 of a block, which may be in the batch."""

    info: BlockInfo
    entries: BlockEntries
    low: int
    high: int

    def position_at(self, entry: int) -> EntryPosition:
        """Return the position after an entry of the block."""
        sequence, reach = self.info.first + entry, self.info.base + int(self.entries.reach[entry])
        return EntryPosition(sequence, self.entries.end_of(entry), reach)


def cut_batch(
    client: StoreClient,
    after: EntryPosition,
    parts: Iterable[BlockInfo],
    entries_of: Callable[[BlockInfo], BlockEntries],
    size: BatchSize,
    last: int,
    *,
    is_ddl_alone: bool,
) -> tuple[Batch, EntryPosition]:
    """Return a batch of the entries after `after`, not beyond the sequence `last`, and the position where it ends. It
    has at most `size`, but at least one entry, or one transaction for a client that wants whole ones."""
    pieces: list[_Piece] = []
    end: EntryPosition | None = None
    for info in parts:
        low, high = max(0, after.sequence + 1 - info.first), min(info.count, last + 1 - info.first)
        if low >= high:
            break
        piece = _Piece(info, entries_of(info), low, high)
        fit = _count_fitting(piece, after, size)
        wall, is_alone = _before_statement(piece, is_first=not pieces) if is_ddl_alone else (high, False)
        if not pieces:
            fit = max(fit, low + 1)
        stop = max(low, min(fit, wall))
        pieces.append(piece)
        if client.wants_whole:
            boundaries = low + np.flatnonzero(piece.entries.are_boundaries[low:wall])
            fitting = boundaries[boundaries < stop]
            if fitting.size or (end is None and boundaries.size):
                end = piece.position_at(int(fitting[-1] if fitting.size else boundaries[0]))
            elif end is None and wall < high:
                end = piece.position_at(wall)  # the statement ends what has no end of its own
        elif stop > low:
            end = piece.position_at(stop - 1)
        is_full = (stop < high and (end is not None or not client.wants_whole)) or _is_enough(size, after, end)
        if is_full or wall < high or is_alone:
            break
    if end is None:
        raise StoreError(f"there is no transaction boundary after {after.position}")
    return _batch(client, after, end, pieces), end


def find_batch_end(
    start: Position, parts: Iterable[BlockInfo], entries_of: Callable[[BlockInfo], BlockEntries], max_bytes: int
) -> Position:
    """Return the last boundary within `max_bytes` of the log after `start`, or the first one if that is farther. Raises
    StoreError when there is none."""
    total, best = 0, None
    for info in parts:
        block = entries_of(info).block
        block = block.between(start, block.end)
        boundaries = block.boundaries
        _, starts, sizes = block.raw
        if boundaries.size:
            reach = total + starts[boundaries] + sizes[boundaries] - starts[0]
            fitting = boundaries[reach <= max_bytes]
            if fitting.size or best is None:
                best = block.boundary_after(int(fitting[-1] if fitting.size else boundaries[0]))
        total += int(sizes.sum())
        if best is not None and total >= max_bytes:
            break
    if best is None:
        raise StoreError(f"there is no transaction boundary after {start}")
    return best


def _is_enough(size: BatchSize, after: EntryPosition, end: EntryPosition | None) -> bool:
    return end is not None and size.is_enough(end.bytes - after.bytes)


def _count_fitting(piece: _Piece, after: EntryPosition, size: BatchSize) -> int:
    """Return the index of the first entry of the block that does not fit into the size."""
    if size.unit == "items":
        return min(piece.high, after.sequence + 1 + size.count - piece.info.first)
    within = np.searchsorted(piece.entries.reach, after.bytes + size.bytes - piece.info.base, "right")
    return min(piece.high, int(within))


def _before_statement(piece: _Piece, *, is_first: bool) -> tuple[int, bool]:
    """Return the end of the entries that can share a batch, and whether they are a single statement, which is a batch
    by itself."""
    statements = piece.low + np.flatnonzero(piece.entries.are_statements[piece.low : piece.high])
    if not statements.size:
        return piece.high, False
    is_alone = bool(is_first and statements[0] == piece.low)
    return int(statements[0]) + is_alone, is_alone


def _batch(client: StoreClient, after: EntryPosition, end: EntryPosition, pieces: list[_Piece]) -> Batch:
    blocks: list[Block] = []
    last: tuple[BlockEntries, int] | None = None  # boundary
    for piece in pieces:
        stop = min(piece.high, end.sequence + 1 - piece.info.first)
        if stop <= piece.low:
            break
        blocks.append(client.filter_block(piece.entries.part(piece.low, stop)))
        boundaries = np.flatnonzero(piece.entries.are_boundaries[piece.low : stop])
        if boundaries.size:
            last = piece.entries, piece.low + int(boundaries[-1])
    ack = last[0].boundary_after(last[1]) if last is not None else None
    return Batch(after.position, end.position, after.sequence + 1, end.sequence, ack, tuple(blocks))
