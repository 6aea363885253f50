"""Plans and reads ranges of the log for readers by position, such as Spark queries.

A range comes from the store while the store has all of it, else from the source's own log; either way its rows have
the same `_seq`. What a reader acks is a hint that the store may free it, never a promise that it is not read again.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.binlog.events.block import Block
from penstock.capture.source_log import SourceLog
from penstock.errors import BlocksFreedError, PositionLostError
from penstock.instance.batch_plan import (
    LOG_BYTES_PER_CALL,
    MANY_FILES,
    BatchLimit,
    BatchPlan,
    RecentPlans,
    plan_batch,
)
from penstock.model import Position
from penstock.store import EventStore

Range = tuple[Position, Position]
"""Where a range of the log begins, and where it ends."""

_READERS = "readers"  # the client of the store for readers by position that do not say who they are
_FORGET_READERS_AFTER_S = 600.0  # a query that is restarted within that time finds what it had planned in the store
_PAUSE_S = 0.02  # between two looks at what others write
_EVICT_READERS_AFTER_S = 60.0  # capture waits this long for readers that do not come back


def forget_idle_readers(store: EventStore) -> None:
    """Remove the clients of readers by position that have not come back for ten minutes."""
    store.forget_idle_clients(f"{_READERS}/", _FORGET_READERS_AFTER_S)


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads ranges of one instance's log, from its store or from its source.

    reader = RangeReader(instance.store, instance.source_log, RecentPlans())
    plan = reader.plan_batch(start, BatchLimit(1 << 20), timeout_s=1.0)
    """

    store: EventStore
    source_log: SourceLog
    plans: RecentPlans

    def plan_batch(
        self, start: Position, limit: BatchLimit, timeout_s: float, reader: str = "", *, skip_bytes: int = 0
    ) -> BatchPlan:
        """Return the plan of a batch from `start`, by bytes and rows; it ends at `start` when nothing was captured in
        time. Over ranges without rows it looks further in that time, until they have more than `skip_bytes`."""
        deadline, begin = time.monotonic() + timeout_s, start
        while True:
            plan = self._plan_next(begin, limit, max(0.0, deadline - time.monotonic()), reader)
            is_far = plan.end.file != start.file or plan.end.offset - start.offset > skip_bytes
            is_over = plan.end <= begin or time.monotonic() + _PAUSE_S > deadline
            if plan.has_rows or is_far or is_over or self.store.is_full:
                return plan
            begin = plan.end
            time.sleep(_PAUSE_S)

    def _plan_next(self, start: Position, limit: BatchLimit, timeout_s: float, reader: str) -> BatchPlan:
        """Return the plan of a batch from `start`; it ends at `start` when nothing was captured in time.

        What the store does not have any more is measured in the source's own log, as much of it as one call may read.
        The store keeps what `reader` has not acked.
        """
        self._add_reader(reader)
        store, source_log = self.store, self.source_log
        source_log.check_reached(start, store.latest)
        requested = start
        if start < store.first_for(start):
            start = source_log.translate(start)
        target = store.first_for(start)
        blocks = None
        if start >= target:
            target = store.find_batch_end(start, limit.max_bytes, timeout_s)
            if target <= start:
                return BatchPlan(start, has_rows=False)
            blocks = store.read(start, target)

        limit = replace(limit, max_log_bytes=LOG_BYTES_PER_CALL)

        def read_log() -> Iterable[Block]:
            return source_log.read_log(start, source_log.translate(target))

        try:
            plan = plan_batch(start, read_log() if blocks is None else blocks, limit, target)
        except BlocksFreedError:
            plan = plan_batch(start, read_log(), limit, target)
        self.plans.remember(requested, plan)
        return plan

    def split_range(self, start: Position, end: Position) -> list[Range]:
        """Split a range of the log at transaction boundaries into parts that can be read in parallel, and
        repeatedly.

        A range of the log before the source was switched stays one, with the order (`_seq`) that its rows had, while
        the store has it. When the store has nothing of that log any more, it becomes the same range of the new log; in
        between it is lost, because rows of both logs would not be in order.
        """
        parts: list[Range] = []
        rest: Range | None = (start, end)
        while rest is not None:
            piece, rest = self.split_piece(*rest)
            parts += piece
        return parts

    def split_piece(self, start: Position, end: Position) -> tuple[list[Range], Range | None]:
        """Split the first piece of a range, as `split_range` does: as much of it as one call may read. Return its
        parts, and the rest of the range, or None. A piece is remembered: who asks again does not begin again."""
        if start == end:
            return [], None
        if end.epoch < self.source_log.epoch and self.store.read(start, end) is None:
            self._check_old_log_gone(start, end)
            start, end = self.source_log.translate(start), self.source_log.translate(end)
        plan = self.plans.find(start, end) or self.plans.find_piece(start, end)
        if plan is None:
            plan = self._plan_split(start, end)
            if plan.is_limited:
                self.plans.remember_piece(start, plan)
        return plan.parts(start), (plan.end, end) if plan.end < end else None

    def read(self, start: Position, end: Position, *, is_part: bool = False) -> Iterator[Block]:
        """Yield the blocks of the range (start, end], from the store if it has all of it, else from the source's log.

        A part of a range that was split while the store had all of it (`is_part`) is not read from another log.
        """
        store = self.store
        self.source_log.check_reached(end, store.latest)
        blocks = store.read(start, end)
        if blocks is None and end.epoch < self.source_log.epoch:
            self._check_old_log_gone(start, end)
            if is_part:
                raise PositionLostError(
                    f"what lies between {start} and {end} is of the log before the source was switched, and went from"
                    " the store while it was read: start the Spark query again with the same checkpoint"
                )
        if blocks is None:
            source_log = self.source_log
            blocks = source_log.read_log(source_log.translate(start), source_log.translate(end))
        yield from blocks

    def ack(self, end: Position, reader: str = "") -> None:
        """Note that a reader by position needs nothing before `end`, so that the store can free it. This is a hint
        only: what a reader needs again is read from the source's log, and a position after the end of the store has no
        effect."""
        name, end = self._add_reader(reader), end.boundary
        if end <= self.store.latest:
            self.store.release(name, end)

    def renew_reader(self, reader: str) -> float:
        """Keep the cursor of a reader by position that asks for nothing because it is in the middle of a long batch;
        return after how many seconds it is forgotten unless it is renewed again.

        Capture does not wait for it: from a full store it is evicted as before, and reads from the source's log.
        """
        self.store.renew_client(f"{_READERS}/{reader}")
        return _FORGET_READERS_AFTER_S

    def _add_reader(self, reader: str) -> str:
        """Add the client of a reader by position, so that the store keeps what it has not acked; return its name."""
        name = f"{_READERS}/{reader}" if reader else _READERS
        self.store.add_client(name, wants_whole=True, reads_log=True, evict_after_s=_EVICT_READERS_AFTER_S)
        return name

    def _plan_split(self, start: Position, end: Position) -> BatchPlan:
        """Return the plan that splits a range into parts: by the store's blocks, by log files, or by reading the
        log. It ends before the range when that is more than one call may read."""
        limit = BatchLimit(sys.maxsize, max_log_bytes=LOG_BYTES_PER_CALL)
        stored = self.store.read(start, end)
        if stored is not None:
            with suppress(BlocksFreedError):
                return plan_batch(start, stored, limit, end)
        log_parts = self.source_log.split_at_files(start, end, MANY_FILES)
        if log_parts:
            return BatchPlan(end, log_parts)  # the files alone keep many tasks busy, and need not be read for it
        return plan_batch(start, self.read(start, end), limit, end)

    def _check_old_log_gone(self, start: Position, end: Position) -> None:
        """Raise PositionLostError for a range of the log before the source was switched while the store has something
        of that log that the range overlaps, or that follows it at once: it would come with a smaller `_seq`. Behind a
        range that ends before, everything is read from the new log."""
        if end >= self.store.first_for(end) and self.store.first.epoch <= end.epoch:
            known = start.gtids if start.gtids is not None and start.gtids.ranges else None
            begin = f"startingPosition gtid:{known.text}" if known else "a startingPosition at that time"
            raise PositionLostError(
                f"what lies between {start} and {end} is of the log before the source was switched, and the store has"
                f" only a part of that log: its rows cannot be read again in their order. Start the Spark query again"
                f" with a new checkpoint, and with {begin}"
            )
