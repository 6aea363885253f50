"""One capture pipeline: it finds the position to resume at, follows a source's log into a store, and serves clients
from there."""

import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.binlog.events.block import Block
from penstock.capture.context import Repair
from penstock.capture.counters import CaptureCounters
from penstock.capture.source_log import SourceLog
from penstock.capture.state import InstanceState, StateTracker
from penstock.config import DirectorySettings, FilterSettings, InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import WriteWarnings
from penstock.errors import (
    BlocksFreedError,
    FencedError,
    NotRunningError,
    PenstockError,
    PositionLostError,
)
from penstock.instance.batch_plan import MANY_FILES, BatchLimit, BatchPlan, RecentPlans, plan_batch
from penstock.instance.clients import Clients
from penstock.instance.components import Components
from penstock.instance.opening import open_components
from penstock.model import Position, TableName, TableSchema
from penstock.model.start_point import StartWord, parse_start
from penstock.schema import read_live_schema
from penstock.schema.live import logs_column_names
from penstock.source import connect
from penstock.source.connection import translate_errors
from penstock.store import EventStore

if TYPE_CHECKING:
    from penstock.instance.snapshots import InstanceSnapshots

log = logging.getLogger(__name__)

_JOIN_S = 10.0
_SAVE_POSITION_S = 1.0  # how often the position from which capture would resume is saved
_READERS = "readers"  # the client of the store for readers by position that do not say who they are
_FORGET_READERS_AFTER_S = 600.0  # a query that is restarted within that time finds what it had planned in the store
_EVICT_READERS_AFTER_S = 60.0  # capture waits this long for readers that do not come back


class Instance:
    """One capture pipeline, from source to store to clients. `start()` returns when the log flows, or raises why it
    cannot; `stop()` ends it. Any thread may read from it.

        instance = Instance(InstanceSettings(destination="shop", source=SourceSettings(host="db1", user="penstock")))
        instance.start()

    With `on_purged: repair`, a gap in the log is passed to `repair`, which compares the data and closes it. Without a
    `repair`, as in `penstock serve`, that policy is refused.
    """

    def __init__(
        self,
        settings: InstanceSettings,
        *,
        jitter: Callable[[], float] = random.random,
        repair: Repair | None = None,
        counts_rows: bool = False,
    ) -> None:
        """With `counts_rows` the status says how many rows were put, got and acked, as canal's metrics want it; finding
        the rows in the log's bytes costs capture about a tenth of its speed."""
        self.settings = settings
        self.states = StateTracker(settings.destination)
        self.counters = CaptureCounters(kept_rows=0 if counts_rows else None)
        self._jitter, self._repair = jitter, repair
        self._start_failure: PenstockError | None = None  # why it could not start
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._components: Components | None = None  # stays after a stop, for status
        self._plans = RecentPlans()

    @property
    def state(self) -> InstanceState:
        """Return the present state, such as FOLLOWING or RECONNECTING."""
        return self.states.current.state

    @property
    def failure(self) -> PenstockError | None:
        """Return the error because of which the state is FAILED, else None."""
        return self._start_failure or (self._components.capture.failure if self._components is not None else None)

    @property
    def store(self) -> EventStore:
        """Return the event store between capture and the clients."""
        return self.components.store

    @property
    def clients(self) -> Clients:
        """Return the clients of this instance: subscribe, get, ack, roll back."""
        return self.components.clients

    @property
    def source_log(self) -> SourceLog:
        """Return the reader of the source's own log."""
        return self.components.log

    @property
    def components(self) -> Components:
        """Return the components of the instance. Raises PenstockError before the first start."""
        if self._components is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return self._components

    @cached_property
    def snapshots(self) -> "InstanceSnapshots":
        """Return the reader of whole tables, for queries that begin with a snapshot."""
        from penstock.instance.snapshots import InstanceSnapshots  # noqa: PLC0415 - brings kernels that few need

        return InstanceSnapshots(self)

    # -- life

    def start(self, fence: Fence | None = None) -> None:
        """Start capture, also again after a stop or a failure. `fence` is that of a won election; without one the
        instance claims its own."""
        if self.state is InstanceState.FAILED:
            self.stop()
        if self._components is not None and not self._stopping.is_set():
            raise PenstockError(f"instance '{self.settings.destination}' runs already: stop it before it is started")
        self.states.enter(InstanceState.STARTING)
        self._stopping.clear()
        self._start_failure, self._threads, self._components = None, [], None
        options: dict[str, Any] = {
            "jitter": self._jitter,
            "repair": self._repair,
            "on_fenced": self._on_fenced,
            "fence": fence,
        }
        try:
            self._components = components = open_components(self.settings, self.states, self.counters, **options)
        except BaseException as error:
            failure = error if isinstance(error, PenstockError) else PenstockError(f"it cannot start: {error!r}")
            self._start_failure = failure
            self.states.enter(InstanceState.FAILED, str(failure))
            raise
        for target, role in ((components.capture.run, "capture"), (self._save_position_often, "position")):
            thread = threading.Thread(target=target, name=f"penstock-{role}-{self.settings.destination}", daemon=True)
            self._threads.append(thread)
            thread.start()
        components.watchdog.start()
        components.capture.settled.wait(components.log.binlog_source.start_timeout_s)
        if self.failure is not None:
            self.stop()
            raise self.failure

    def pause(self, reason: str = "by hand") -> None:
        """Stop reading the source's log until `resume`; what the store has is still served."""
        self.components.capture.pause(reason)

    def resume(self) -> None:
        """Continue to read the source's log after `pause`."""
        self.components.capture.resume()

    def reload_filter(self, settings: FilterSettings) -> None:
        """Use another filter for everything that is captured from now on. Wrong settings raise, and change nothing."""
        self.components.filter.reload(settings)
        self.settings = self.settings.model_copy(update={"filter": settings})
        self.source_log.reload_filter(self.settings)

    def stop(self) -> None:
        """Stop capture, wake everyone who waits with NotRunningError, persist positions and close all components."""
        if self._stopping.is_set() or self._components is None:
            return
        self._stopping.set()
        components = self._components
        components.capture.stop()
        self.states.enter(InstanceState.STOPPED, unless=frozenset({InstanceState.FAILED}))
        components.store.fail(NotRunningError(f"instance '{self.settings.destination}' was stopped"))
        components.watchdog.stop()
        for thread in self._threads:
            thread.join(_JOIN_S)
        components.close()

    # -- for consumers

    def find_batch_end(self, start: Position, max_bytes: int, timeout_s: float) -> Position:
        """Return where a batch from `start` should end; `start` itself when nothing was captured in time."""
        return self.plan_batch(start, BatchLimit(max_bytes), timeout_s).end

    def plan_batch(self, start: Position, limit: BatchLimit, timeout_s: float, reader: str = "") -> BatchPlan:
        """Return the plan of a batch from `start`, by bytes and rows; it ends at `start` when nothing was captured in
        time.

        What the store does not have any more is measured in the source's own log. The store keeps what `reader` has not
        acked.
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

        def read_log() -> Iterable[Block]:
            return source_log.read_log(start, source_log.translate(target))

        try:
            plan = plan_batch(start, read_log() if blocks is None else blocks, limit, target)
        except BlocksFreedError:
            plan = plan_batch(start, read_log(), limit, target)
        self._plans.remember(requested, plan)
        return plan

    def split_range(self, start: Position, end: Position) -> list[tuple[Position, Position]]:
        """Split a range of the log at transaction boundaries into parts that can be read in parallel, and
        repeatedly.

        A range of the log before the source was switched stays one, with the order (`_seq`) that its rows had, while
        the store has it. When the store has nothing of that log any more, it becomes the same range of the new log; in
        between it is lost, because rows of both logs would not be in order.
        """
        if start == end:
            return []
        if end.epoch < self.source_log.epoch and self.store.read(start, end) is None:
            self._check_old_log_gone(start, end)
            start, end = self.source_log.translate(start), self.source_log.translate(end)
        plan = self._plans.find(start, end) or self._plan_split(start, end)
        return plan.parts(start)

    def _plan_split(self, start: Position, end: Position) -> BatchPlan:
        """Return the plan that splits a range into parts: by the store's blocks, by log files, or by reading the
        log."""
        stored = self.store.read(start, end)
        if stored is not None:
            with suppress(BlocksFreedError):
                return plan_batch(start, stored, BatchLimit(sys.maxsize), end)
        log_parts = self.source_log.split_at_files(start, end, MANY_FILES)
        if log_parts:
            return BatchPlan(end, log_parts)  # the files alone keep many tasks busy, and need not be read for it
        return plan_batch(start, self.read(start, end), BatchLimit(sys.maxsize), end)

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

    def _add_reader(self, reader: str) -> str:
        """Add the client of a reader by position, so that the store keeps what it has not acked; return its name."""
        name = f"{_READERS}/{reader}" if reader else _READERS
        self.store.add_client(name, wants_whole=True, reads_log=True, evict_after_s=_EVICT_READERS_AFTER_S)
        return name

    def describe_tables(self, tables: Sequence[TableName]) -> list[TableSchema]:
        """Return the schemas of tables as they are at the source now."""
        source = self.source_log.source
        if isinstance(source, DirectorySettings):
            return [self.components.tables.describe(table) for table in tables]
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            has_labels = logs_column_names(cursor)
            schemas = [read_live_schema(cursor, table) for table in tables]
            return schemas if has_labels else [schema.with_exact_labels() for schema in schemas]

    def resolve_start(self, text: str) -> Position:
        """Return the transaction boundary that a text such as `latest` or `time:…` means now, in the grammar of
        `parse_start`."""
        now, resolver = datetime.now(UTC), self.source_log.resolver
        if parse_start(text, now) is StartWord.STORED:
            return self.store.first
        position = resolver.resolve(text, now)
        self.source_log.check_reached(position)
        return resolver.align(position) if isinstance(parse_start(text, now), Position) else position

    def oldest_position(self) -> Position:
        """Return the position where the source's log begins."""
        return self.source_log.oldest()

    def status(self) -> dict[str, Any]:
        """Return state, positions, lag and counters as plain data, for operators."""
        change, seconds = self.states.current, self.states.seconds
        status: dict[str, Any] = {
            "destination": self.settings.destination,
            "state": change.state.value,
            "reason": change.reason,
            "since": change.since,
            "seconds": {state.value: round(spent, 3) for state, spent in seconds.items() if spent},
            "counters": self.counters.to_json(),
        }
        components = self._components
        if components is not None:
            latest, tables = components.store.latest, components.tables
            status |= {
                "source": components.log.source.address,
                "epoch": components.log.epoch,
                "began": components.begin.to_json(),
                "first": components.store.first.to_json(),
                "latest": latest.to_json(),
                "acked": components.store.acked.to_json(),
                "behind_s": self._behind_s(components),
                "store_bytes": components.store.size_bytes,
                "stopped_tables": {str(name): why for name, why in tables.stopped_tables.items()},
                "changes_as_statements": {"count": tables.uncaptured_count, "last": tables.last_unseen},
                "differences": {str(name): difference for name, difference in tables.differences.items()},
                "retention_hours_left": components.watchdog.hours_left,
            }
        return status

    def _behind_s(self, components: Components) -> float | None:
        """Return the age in seconds of the newest captured change; 0 when capture has read the whole log, None when
        unknown."""
        if components.capture.is_caught_up and self.state is InstanceState.FOLLOWING:
            return 0.0
        seconds = components.store.latest.timestamp
        return max(0.0, round(time.time() - seconds, 3)) if seconds else None

    # -- saving the position

    def _on_fenced(self, error: PenstockError) -> None:
        """End capture because another server has claimed this destination."""
        if self._components is not None and self.state is not InstanceState.FAILED:
            self._components.capture.fail(error)
            self._components.capture.stop()

    def _save_position_often(self) -> None:
        """Persist the position from which capture would resume, every second, without readers by position that do not
        come back. Runs in a thread of its own."""
        saved, components, name = None, self.components, self.settings.destination
        warnings = WriteWarnings(
            log, f"capture position not saved destination={name}", f"capture position saved again destination={name}"
        )
        while not self._stopping.wait(_SAVE_POSITION_S):
            components.store.forget_idle_clients(f"{_READERS}/", _FORGET_READERS_AFTER_S)
            position = components.store.acked
            if position == saved:
                continue
            try:
                components.save_position()
                saved = position
                warnings.report_success()
            except FencedError as error:
                self._on_fenced(error)
                return
            except PenstockError as error:
                warnings.report_failure(error)
