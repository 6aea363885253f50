"""Where a batch of a reader that keeps its own position ends, and how its range is cut into parts.

A batch ends between two transactions. Only a transaction that passes the limit all by itself is split: the batch ends
inside of it then, and the position says where the transaction begins, so that the rest can be read from the log again.
An XA transaction is never split.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.count import count_by_event
from penstock.binlog.xa.xa_events import find_xa_events
from penstock.model import Position, TableName

PART_BYTES = 8 << 20  # a range is cut into parts of about this size, each read by one task
MANY_FILES = 32  # a range of at least this many files is cut between them
LOG_BYTES_PER_CALL = 512 << 20  # of the log that one call reads to plan: some seconds of work
_REMEMBERED = 64  # plans of each kind; with one for each call, those of a range of 32 GiB
_UPDATES = (24, 31, 39)  # kinds of rows events of which each row has two images
_ROWS, _STATEMENT = int(Entry.ROWS), int(Entry.DDL)


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The limit of one batch: how much of the log it reads at most.

    >>> BatchLimit(64 << 20, max_rows=10_000)
    """

    max_bytes: int
    max_rows: int | None = None  # of tables that `is_counted` names
    rows_per_update: int = 2  # a reader of row images gets two for an update, a reader of changes one
    is_counted: Callable[[TableName], bool] | None = None  # None for all tables
    counts_statements: bool = False  # a statement that is a transaction of its own counts as a row
    max_log_bytes: int = sys.maxsize  # of the log, whatever the filter of the instance leaves of it


@dataclass(slots=True)
class BatchPlan:
    """The end of a batch, and the positions between its transactions at which it can be cut into parts."""

    end: Position
    cuts: list[Position] = field(default_factory=list[Position])
    is_limited: bool = False  # it ends there because of the limit
    has_rows: bool = True  # False when it is known to have no rows of the tables that the limit counts

    def parts(self, start: Position) -> list[tuple[Position, Position]]:
        """Return the parts of the batch that begins at `start`, in their order."""
        bounds = [start, *(cut for cut in self.cuts if start < cut < self.end), self.end]
        return list(pairwise(bounds))


class RecentPlans:
    """Remembers how the last batches were planned, so that cutting one into parts need not read it again; and of large
    ranges, which are cut piece by piece, the pieces, so that who is interrupted need not begin again.

    Any thread may call it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of these:
        self._plans: dict[tuple[Position, Position], BatchPlan] = {}
        self._pieces: dict[Position, BatchPlan] = {}

    def remember(self, start: Position, plan: BatchPlan) -> None:
        """Store a plan for the range from `start` to its end, and drop the oldest one when there are too many."""
        with self._lock:
            self._plans[start, plan.end] = plan
            if len(self._plans) > _REMEMBERED:
                del self._plans[next(iter(self._plans))]

    def find(self, start: Position, end: Position) -> BatchPlan | None:
        """Return the plan of exactly this range, or None."""
        with self._lock:
            return self._plans.get((start, end))

    def remember_piece(self, start: Position, plan: BatchPlan) -> None:
        """Store the plan of the first piece of a large range that begins at `start`."""
        with self._lock:
            self._pieces[start] = plan
            if len(self._pieces) > _REMEMBERED:
                del self._pieces[next(iter(self._pieces))]

    def find_piece(self, start: Position, end: Position) -> BatchPlan | None:
        """Return the plan of a piece from `start` on that does not go past `end`, or None."""
        with self._lock:
            plan = self._pieces.get(start)
        return plan if plan is not None and plan.end <= end else None


def plan_batch(
    start: Position, blocks: Iterable[Block], limit: BatchLimit, end: Position, part_bytes: int = PART_BYTES
) -> BatchPlan:
    """Return the plan of a batch that begins at `start`, of the blocks that follow; at most up to `end`."""
    plan = BatchPlan(end, has_rows=limit.is_counted is None)
    best: Position | None = None
    size, rows, since_cut, is_xa = 0, 0, 0, False
    last_rows: Position | None = None  # where the last rows event of the block before ends
    before = start.boundary  # the last position between two transactions
    measure = _LogMeasure(start)
    for block in blocks:
        plan.has_rows = plan.has_rows or _has_counted_rows(block, limit)
        sizes = np.diff(block.index.bounds).astype(np.int64)
        reach = size + np.cumsum(sizes)
        fits = reach <= limit.max_bytes
        if limit.max_rows is not None:
            row_reach = rows + np.cumsum(_rows_by_event(block, limit))
            fits &= row_reach <= limit.max_rows
            rows = int(row_reach[-1]) if row_reach.size else rows
        ends = block.boundaries
        fitting = ends[fits[ends]]
        if fitting.size:
            best = block.boundary_after(int(fitting[-1]))
        splits: _Splits | None = None
        if best is None:
            is_xa = is_xa or _begins_xa(block, ends)
            splits = None if is_xa else _Splits.find(block, ends, before, start, last_rows)
            last_rows = splits and splits.last
        if not fits.all():
            chosen = best or (splits and splits.choose(fits)) or _first_end(block, ends, None)
            if chosen is not None:
                plan.end, plan.is_limited = chosen, True
                return plan
        if ends.size:
            before = block.boundary_after(int(ends[-1]))
        since_cut += int(sizes.sum())
        if since_cut >= part_bytes and ends.size:
            plan.cuts.append(before)
            since_cut = 0
        size = int(reach[-1]) if reach.size else size
        if measure.advance(block) >= limit.max_log_bytes and start < before < end:
            plan.end, plan.is_limited = before, True
            return plan
    plan.end = end
    return plan


class _LogMeasure:
    """Measures how much of the log lies before the blocks of a range, also where the filter has left little of it. It
    knows no sizes of files: the end of a file behind its last block does not count."""

    def __init__(self, start: Position) -> None:
        self._file, self._offset, self._bytes = start.file, start.offset, 0

    def advance(self, block: Block) -> int:
        """Return how many bytes of the log lie before the end of a block."""
        if not len(block):
            return self._bytes
        end = block.end
        self._bytes += max(0, end.offset - self._offset) if end.file == self._file else end.offset
        self._file, self._offset = end.file, end.offset
        return self._bytes


def _has_counted_rows(block: Block, limit: BatchLimit) -> bool:
    """Return whether a block has rows of a table that the limit counts."""
    if limit.counts_statements and (block.column("entry") == _STATEMENT).any():
        return True
    ids = _counted_ids(block, limit)
    are_rows = block.column("entry") == _ROWS
    return bool(are_rows.any()) if ids is None else bool(np.isin(block.column("table_id")[are_rows], ids).any())


def _counted_ids(block: Block, limit: BatchLimit) -> list[int] | None:
    """Return the table ids in a block that the limit counts; None for all."""
    if limit.is_counted is None:
        return None
    return [number for number, body in block.tables.items() if limit.is_counted(table_name(body))]


def _rows_by_event(block: Block, limit: BatchLimit) -> NDArray[np.int64]:
    """Return how many rows of a batch each event makes."""
    rows = np.zeros(len(block), np.int64)
    events = np.flatnonzero(block.column("entry") == _ROWS)
    if (ids := _counted_ids(block, limit)) is not None:
        events = events[np.isin(block.column("table_id")[events], ids)]
    counts = count_by_event(block, events)
    if limit.rows_per_update != 1:
        counts[np.isin(block.column("kind")[events], _UPDATES)] *= limit.rows_per_update
    rows[events] = counts
    if limit.counts_statements:
        rows[block.column("entry") == _STATEMENT] = 1
    return rows


def _first_end(block: Block, ends: NDArray[np.int64], end: Position | None) -> Position | None:
    """Return where the first transaction of a block ends, whatever the limit is; `end` when it ends in a later
    block."""
    return block.boundary_after(int(ends[0])) if ends.size else end


def _begins_xa(block: Block, ends: NDArray[np.int64]) -> bool:
    """Return whether the first transaction of a block is one of XA.

    Its rows are delivered when it is committed, so that a position inside of it means nothing in the log itself.
    """
    marks = find_xa_events(block)
    return bool(marks.size) and bool(marks[0] <= (ends[0] if ends.size else len(block)))


@dataclass(frozen=True, slots=True, eq=False)
class _Splits:
    """Says where the first transaction of a block can be split: after each of its rows events that the next event
    follows.

    What follows the last event of a block is only known with the next block.
    """

    block: Block
    events: NDArray[np.int64]  # after which it can be split
    before: Position  # the last position between two transactions
    carried: Position | None  # the end of the last rows event of the block before, where this block follows it
    last: Position | None  # the end of the last rows event of this block, if no other event comes after it

    @classmethod
    def find(
        cls, block: Block, ends: NDArray[np.int64], before: Position, start: Position, last_rows: Position | None
    ) -> "_Splits":
        """Find the positions at which the first transaction of a block can be split."""
        position, span = block.column("position"), block.column("span")
        stop = int(ends[0]) if ends.size else len(block)  # the event that ends the transaction stays with the rest
        events = np.flatnonzero(block.column("entry")[:stop] == _ROWS)
        after = position[events] + span[events]
        is_later = (span[events] > 0) & ((after > start.offset) if block.file == start.file else True)
        events, after = events[is_later], after[is_later]
        is_last = events == len(block) - 1
        following = position[np.minimum(events + 1, len(block) - 1)]
        is_followed = ~is_last & (following >= after)
        splits = cls(block, events[is_followed], before, None, None)
        last = splits.position_after(int(events[-1])) if is_last.any() else None
        is_next = last_rows is not None and last_rows.file == block.file and int(position[0]) >= last_rows.offset
        return replace(splits, carried=last_rows if is_next else None, last=last)

    def choose(self, fits: NDArray[np.bool_]) -> Position | None:
        """Return the last position that fits, or else the first there is; None where the transaction ends in a later
        block."""
        fitting = self.events[fits[self.events]]
        if fitting.size:
            return self.position_after(int(fitting[-1]))
        if self.carried is not None:
            return self.carried
        return self.position_after(int(self.events[0])) if self.events.size else None

    def position_after(self, event: int) -> Position:
        """Return the position after a rows event, which says where its transaction begins."""
        begin = int(self.block.column("transaction")[event])
        return replace(self.block.end_of_event(event), gtids=self.before.gtids, transaction=begin)
