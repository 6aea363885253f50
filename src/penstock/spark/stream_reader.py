"""`spark.readStream.format("penstock")`: batches are ranges of the log, planned in the driver, read by the executors.

Where a query begins is not in its checkpoint before its first batch is done, and `latest` is another position each
time: so that a crash then loses nothing, the first batch of such a query is empty. One that begins with a snapshot
needs no such batch: before its first chunks nothing was delivered, and no change is.

The reader that plans lives in one driver-side process; what reads travels to the executors, so everything it needs is
in itself or in its partition.
"""

import logging
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark

from penstock.errors import PenstockError, SchemaError
from penstock.model import Position, TableName
from penstock.spark.batch_reader import LogPart, SnapshotChunkPart, read_part
from penstock.spark.change_log import ChangeLog, Offset
from penstock.spark.layout import ChangeLayout
from penstock.spark.options import ReadOptions
from penstock.spark.snapshot_state import SnapshotState, known_tables

log = logging.getLogger(__name__)

_CHUNK_ROWS = 100_000
_MOST_CHUNKS = 8  # in one batch
_MOST_ROWS = _CHUNK_ROWS * _MOST_CHUNKS
_FAR_BYTES = 16 << 20  # of the log that other tables have filled: a store in memory has room for 64 MiB by default
_BEHIND_BYTES = 128 << 20  # of the log: each chunk would be read with all of it, so the query catches up first
_LOW_LATENCY_ROWS = 20_000  # of a chunk that is read in the driver
_REQUESTS_S = 1.0  # how often the server is asked whether tables are to be read again
_PAUSE_S = 0.02  # between two looks at what others write
_HAS_READ_LIMITS = hasattr(spark, "ReadLimit")  # pyspark 4.2 and later


class BatchPlanner:
    """Plans the micro-batches of one Spark query: where each begins and ends. It lives in the driver-side Python
    process."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.log = ChangeLog(options)
        self._last: Position | None = None  # of Trigger.AvailableNow: no batch goes past it
        self._first: Position | None = None  # where the first batch begins and ends
        self._initial: Offset | None = None
        self._has_cursor = False  # on the server, at the begin of the batch
        self._scanned: tuple[Position, Position] | None = None  # a range without rows for this query
        self._asked_at = -math.inf  # when the server was last asked what people want of its snapshots
        self._heard: dict[str, int] = {}  # requests to read tables again
        self._are_snapshots_paused = False
        self._has_warned = False  # of a query that ends while snapshots are paused
        self._is_catching_up = False  # no chunks are planned meanwhile

    def initial(self) -> Offset:
        """Return the offset at which a new query begins."""
        if self._initial is None:  # Spark asks twice
            if self._options.begins_with_snapshot:
                state = SnapshotState.begin(self._options.tables, self._requests())
                self._initial = self.log.offset_of(self.log.resolve("latest")) | state.to_json()
                return self._initial
            position = self.log.resolve_start(self._options.starting_position or "latest")
            if self._options.starts_elsewhere_each_time:
                self._first = position
            self._initial = self.log.offset_of(position)
        return self._initial

    def next(self, start: Offset) -> Offset:
        """Return where the batch from `start` ends, or `start` itself when there is nothing new.

        It waits a moment for changes: that is cheaper and faster than Spark's own polling.
        """
        end = self._plan_next(start)
        self.log.keep_cursor()  # the next question may come hours later, by the trigger of the query
        return end

    def _plan_next(self, start: Offset) -> Offset:
        self._has_cursor = True  # planning moves it
        position = self.log.position_of(start)
        if self._has_snapshot(start):
            return self._next_with_snapshot(start, position)
        if position == self._first:
            self._first = None
            return start
        end = self._find_log_end(position)
        return start if end == position else self.log.offset_of(end)

    def _find_log_end(self, start: Position) -> Position:
        """Return where the changes of a batch from `start` end."""
        if self._last is None:
            return self._find_end(start)
        return start if start >= self._last else self.log.end_before(start, self._last)

    def _next_with_snapshot(self, start: Offset, position: Position) -> Offset:
        """Return where a batch ends that may have chunks of tables beside the changes: these are read at its end."""
        tables, state = self._options.tables, SnapshotState.from_offset(start)
        state = state.advance(tables, self._known_tables(start), self._requests())
        is_read = bool(state.tables) and not self._are_snapshots_paused
        if is_read and not self._must_catch_up(position, state):
            state = self._plan_chunks(state)
        if state.has_chunks:
            end = self.log.end_after(position, 0)
            end = end if self._last is None else max(position, min(end, self._last))
        else:
            end = self._find_log_end(position)
            state = state.mark_catching_up() if is_read and self._is_catching_up else state.mark_paused()
            if end == position and not self._must_tell_pause(start, state):
                return start
        return self.log.offset_of(end) | state.to_json()

    def _must_catch_up(self, position: Position, state: SnapshotState) -> bool:
        """Return whether a query is so far behind the source's log that it delivers changes alone for now: a chunk is
        read now, and brought to the end of its batch by all of the log in between, and so is the next one.

        A query of Trigger.AvailableNow that has reached its end gets no nearer, however much is written meanwhile.
        """
        is_at_end = self._last is not None and position >= self._last
        behind_bytes = 0 if is_at_end else self.log.client.bytes_behind(position)
        is_far = behind_bytes > _BEHIND_BYTES
        if is_far != self._is_catching_up:
            self._is_catching_up = is_far
            context = self._options.destination, ",".join(map(str, state.tables)), position, behind_bytes
            if is_far:
                log.info(
                    "snapshot waits until the query has caught up destination=%s tables=%s position=%s behind_bytes=%d",
                    *context,
                )
            else:
                log.info("snapshot resumes destination=%s tables=%s position=%s behind_bytes=%d", *context)
        return is_far

    def _must_tell_pause(self, start: Offset, state: SnapshotState) -> bool:
        """Return whether a query of Trigger.AvailableNow is about to end with tables that are not complete, and its
        progress does not say so yet: a batch without rows then says it."""
        if self._last is None or not state.tables:
            return False
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "query ends with an incomplete snapshot destination=%s tables=%s reason=snapshots are paused: run"
                " `penstock snapshot resume`, then the query again",
                *(self._options.destination, ",".join(map(str, state.tables))),
            )
        return SnapshotState.from_offset(start).tables != state.tables

    def _plan_chunks(self, state: SnapshotState) -> SnapshotState:
        """Return the state after the next chunks, of as many tables as there is room for in a batch."""
        room, tables = self._options.max_rows or _MOST_ROWS, dict(state.tables)
        for table, progress in state.tables.items():
            rows = min(room, _CHUNK_ROWS)
            count = min(_MOST_CHUNKS, max(1, room // rows))
            if self._options.is_low_latency:
                rows, count = min(rows, _LOW_LATENCY_ROWS), 1
            plan = self.log.client.plan_chunks(table, progress.done, rows_before=progress.rows, count=count, rows=rows)
            if progress.key_description not in {"", plan["key_description"]}:
                raise SchemaError(
                    f"the key of {table} was changed while it was delivered (it was {progress.key_description}, and is"
                    f" {plan['key_description']}): start the query with a new checkpoint"
                )
            tables[table] = progress.with_chunks(plan)
            room -= sum(chunk["rows"] for chunk in plan["chunks"])
            if plan["chunks"]:
                state_now = tables[table]
                log.info(
                    "snapshot progress destination=%s table=%s rows=%d estimated_rows=%d percent=%.1f",
                    *(self._options.destination, table, state_now.rows, state_now.estimated_rows),
                    state_now.to_json()["percent"],
                )
            if room <= 0 or not tables[table].is_complete:
                break
        return replace(state, tables=tables)

    def _requests(self) -> dict[str, int]:
        """Return the requests to read tables again, at most a second old."""
        if self._options.begins_with_snapshot and time.monotonic() - self._asked_at > _REQUESTS_S:
            report = self.log.client.control_snapshots()
            self._asked_at, self._heard = time.monotonic(), report["again"]
            self._are_snapshots_paused = report["paused"]
        return self._heard

    def _find_end(self, start: Position) -> Position:
        """Return where a batch from `start` ends; `start` itself when nothing came for the tables of the query.

        What others write makes no batch, until it is so much that a batch without rows brings the checkpoint forward,
        or the store is full of it. Until then nothing behind `start` is acked: it is a part of the coming batch.
        """
        deadline = time.monotonic() + self._options.poll_ms / 1000
        begin = self._scanned[1] if self._scanned is not None and self._scanned[0] == start else start
        while True:
            wait_ms = max(0, int((deadline - time.monotonic()) * 1000))
            skip_bytes = max(0, self._far_bytes - (begin.offset - start.offset))  # both are in one file: see _is_far
            plan = self.log.plan_batch(begin, wait_ms, start, skip_bytes)
            end = plan.position
            if end == begin and not plan.is_store_full:
                return start
            if plan.has_rows or plan.is_store_full or self._is_far(start, end):
                self._scanned = None
                return end
            begin, self._scanned = end, (start, end)
            if time.monotonic() > deadline:
                return start
            time.sleep(_PAUSE_S)

    def _is_far(self, start: Position, end: Position) -> bool:
        """Return whether a range without rows for the query is so large that it is worth a batch."""
        return end.file != start.file or end.offset - start.offset > self._far_bytes

    @property
    def _far_bytes(self) -> int:
        """Return how many bytes of other tables' log make a batch without rows."""
        return min(self._options.max_bytes, _FAR_BYTES)

    def stop_at_present_end(self) -> None:
        """Let no batch go past the end that the source's log has now, captured or not."""
        self._last = self.log.source_end()

    def parts(self, start: Offset, end: Offset) -> list[LogPart | SnapshotChunkPart]:
        """Return the parts of a batch: of the log, and chunks of tables as they were at the end of the batch."""
        first, last = self.bounds(start, end)
        if not self._has_cursor:  # of a query that was started again: its last batch is read before the next is planned
            self._has_cursor = True
            with suppress(PenstockError):  # the cursor only keeps the store from freeing what the batch needs
                self.log.ack(first)
        self.log.keep_cursor()
        if not self._has_snapshot(start) and not self._has_snapshot(end):
            return [LogPart(ticket) for ticket in self.log.tickets(first, last)]
        pending = SnapshotState.from_offset(start).pending(self._options.tables, self._known_tables(start))
        parts: list[LogPart | SnapshotChunkPart] = []
        if first < last and (len(pending) < len(self._options.tables) or any(table.done for table in pending.values())):
            parts += [LogPart(ticket, pending) for ticket in self.log.tickets(first, last)]
        for table, state in SnapshotState.from_offset(end).tables.items():
            if table in self._options.tables:  # it may have been taken out of them
                parts += [SnapshotChunkPart(table, bounds, last, state.key_description) for bounds in state.bounds]
        return parts

    def _has_snapshot(self, offset: Offset) -> bool:
        """Return whether tables may be read at an offset: also without the option, when it is not complete there."""
        return self._options.begins_with_snapshot or bool(offset.get("snapshot"))

    def _known_tables(self, offset: Offset) -> set[TableName]:
        """Return the tables of which an offset has at least begun the snapshot, or that need none."""
        return known_tables(offset) if self._options.begins_with_snapshot else set(self._options.tables)

    def bounds(self, start: Offset, end: Offset) -> tuple[Position, Position]:
        """Return the positions at which a batch begins and ends, from its offsets."""
        first, last = self.log.position_of(start), self.log.position_of(end)
        # Of a query whose first batch was not done: that one ends where it began, and was empty.
        return (min(first, last), last) if self._options.starts_elsewhere_each_time else (first, last)


class ChangeStreamReader(spark.DataSourceStreamReader):
    """Spark's reader of a change stream: batches are planned in the driver, and read by the executors."""

    def __init__(self, options: ReadOptions, layout: ChangeLayout) -> None:
        self._options, self._layout = options, layout
        self._planner = BatchPlanner(options)

    # -- in the driver-side process

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names
        """Return the offset at which a new query begins."""
        return self._planner.initial()

    def partitions(self, start: Offset, end: Offset) -> list[spark.InputPartition]:
        """Return the parts of a batch; the same batch has the same rows whenever it is read."""
        return list(self._planner.parts(start, end))

    def commit(self, end: Offset) -> None:
        """Tell the server that everything before an offset is done. Spark says it of a batch when it plans the next
        one."""
        self._planner.log.ack(Position.from_json(end))

    # -- on the executors

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Return the changes of one part, in the order of the log."""
        return read_part(self._options, self._layout, partition)


if _HAS_READ_LIMITS:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

    class _LimitedReader(ChangeStreamReader, SupportsTriggerAvailableNow):
        """pyspark 4.2 and later: Spark says where it stands, and asks for one batch at a time."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            """Return Spark's word for no limit: Spark knows none of rows and bytes together, so the server keeps it."""
            return ReadAllAvailable()

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802, ARG002
            """Return where the next batch ends."""
            return self._planner.next(start)

        def reportLatestOffset(self) -> Offset | None:  # noqa: N802
            """Return where the source's log ends: Spark shows it beside the end of the batch."""
            return self._planner.log.report()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            """Remember where the source's log ends now."""
            self._planner.stop_at_present_end()

    stream_reader: type[ChangeStreamReader] = _LimitedReader
else:

    class _PlainReader(ChangeStreamReader):
        """pyspark 4.1: Spark only asks for the newest position, and does not say where it stands.

        It asks for that before it asks where a new query begins. Before it asks a query that is restarted, it calls
        `partitions`: with its last batch, or with the end of that batch twice when it was committed.
        """

        _reached: Offset | None = None

        def latestOffset(self) -> Offset:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
            """Return where the next batch ends."""
            self._reached = self._planner.next(self._reached or self.initialOffset())
            return self._reached

        def partitions(self, start: Offset, end: Offset) -> list[spark.InputPartition]:
            """Return the parts of a batch, and remember its end: the next batch begins there."""
            self._reached = end
            return super().partitions(start, end)

    stream_reader = _PlainReader
