"""One capture pipeline: it finds its place, follows a source's log into a store, and serves clients from there."""

import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any

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
from penstock.source import connect
from penstock.source.connection import translate_errors
from penstock.store import EventStore

log = logging.getLogger(__name__)

_JOIN_S = 10.0
_KEEP_S = 1.0  # how often the place from which capture goes on is kept
_READERS = "readers"  # the client that stands for all who read by position
_SILENT_S = 60.0  # so long capture waits for them


class Instance:
    """`start()` returns when the log flows, or raises why it cannot; `stop()` ends it. Readable from any thread.

    What `repair` is given, with on_purged: repair, is a gap in the log: it is to compare the data.
    """

    def __init__(
        self,
        settings: InstanceSettings,
        *,
        jitter: Callable[[], float] = random.random,
        repair: Repair | None = None,
    ) -> None:
        self.settings = settings
        self.states = StateTracker(settings.destination)
        self.counters = CaptureCounters()
        self._jitter, self._repair = jitter, repair
        self._refused: PenstockError | None = None  # why it could not even start
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._components: Components | None = None  # also after a stop, for who asks
        self._plans = RecentPlans()

    @property
    def state(self) -> InstanceState:
        return self.states.current.state

    @property
    def failure(self) -> PenstockError | None:
        """Why the state is FAILED."""
        return self._refused or (self._components.capture.failure if self._components is not None else None)

    @property
    def store(self) -> EventStore:
        return self.components.store

    @property
    def clients(self) -> Clients:
        return self.components.clients

    @property
    def source_log(self) -> SourceLog:
        return self.components.log

    @property
    def components(self) -> Components:
        if self._components is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return self._components

    # -- life

    def start(self, fence: Fence | None = None) -> None:
        """Also again, after a stop, or a failure. Without the fence of an election it claims one of its own."""
        if self.state is InstanceState.FAILED:
            self.stop()
        if self._components is not None and not self._stopping.is_set():
            raise PenstockError(f"instance '{self.settings.destination}' runs already: stop it before it is started")
        self.states.enter(InstanceState.STARTING)
        self._stopping.clear()
        self._refused, self._threads, self._components = None, [], None
        how: dict[str, Any] = {
            "jitter": self._jitter,
            "repair": self._repair,
            "on_fenced": self._replaced,
            "fence": fence,
        }
        try:
            self._components = components = open_components(self.settings, self.states, self.counters, **how)
        except BaseException as error:
            failure = error if isinstance(error, PenstockError) else PenstockError(f"it cannot start: {error!r}")
            self._refused = failure
            self.states.enter(InstanceState.FAILED, str(failure))
            raise
        for target, what in ((components.capture.run, "capture"), (self._keep_place, "place")):
            thread = threading.Thread(target=target, name=f"penstock-{what}-{self.settings.destination}", daemon=True)
            self._threads.append(thread)
            thread.start()
        components.watchdog.start()
        components.capture.settled.wait(components.log.binlog_source.start_timeout_s)
        if self.failure is not None:
            self.stop()
            raise self.failure

    def pause(self, reason: str = "by hand") -> None:
        """The log is not read; what the store has is served."""
        self.components.capture.pause(reason)

    def resume(self) -> None:
        self.components.capture.resume()

    def reload_filter(self, settings: FilterSettings) -> None:
        """Counts for what is captured from now on. Settings that are wrong raise, and change nothing."""
        self.components.filter.reload(settings)
        self.settings = self.settings.model_copy(update={"filter": settings})
        self.source_log.reload_filter(self.settings)

    def stop(self) -> None:
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

    def end_after(self, start: Position, max_bytes: int, timeout_s: float) -> Position:
        """Return where a batch from `start` should end; `start` itself when nothing came in time."""
        return self.plan_batch(start, BatchLimit(max_bytes), timeout_s)

    def plan_batch(self, start: Position, limit: BatchLimit, timeout_s: float) -> Position:
        """Return where a batch from `start` should end; `start` itself when nothing came in time.

        What the store does not have any more is measured in the source's own log.
        """
        store, source_log = self._store_for_readers(), self.source_log
        source_log.check_reached(start, store.latest)
        asked = start
        if start < store.first_for(start):
            start = source_log.translate(start)
        target = store.first_for(start)
        blocks = None
        if start >= target:
            target = store.end_after(start, limit.max_bytes, timeout_s)
            if target <= start:
                return start
            blocks = store.read(start, target)

        def read_log() -> Iterable[Block]:
            return source_log.read_log(start, source_log.translate(target))

        try:
            plan = plan_batch(start, read_log() if blocks is None else blocks, limit, target)
        except BlocksFreedError:
            plan = plan_batch(start, read_log(), limit, target)
        self._plans.remember(asked, plan)
        return plan.end

    def parts(self, start: Position, end: Position) -> list[tuple[Position, Position]]:
        """Cut a range between transactions into parts that can be read apart, in any order, any number of times."""
        if start == end:
            return []
        plan = self._plans.find(start, end) or self._plan_parts(start, end)
        return plan.parts(start)

    def _plan_parts(self, start: Position, end: Position) -> BatchPlan:
        stored = self.store.read(start, end)
        if stored is not None:
            with suppress(BlocksFreedError):
                return plan_batch(start, stored, BatchLimit(sys.maxsize), end)
        log_parts = self.source_log.split_at_files(start, end, MANY_FILES)
        if log_parts:
            return BatchPlan(end, log_parts)  # the files alone keep many tasks busy, and need not be read for it
        return plan_batch(start, self.read(start, end), BatchLimit(sys.maxsize), end)

    def read(self, start: Position, end: Position) -> Iterator[Block]:
        """Entries of (start, end], from the store where it has them, else from the source's log."""
        store = self.store
        self.source_log.check_reached(end, store.latest)
        held = store.read(start, end)
        if held is None and end.epoch < self.source_log.epoch and end > store.first_for(end):
            raise PositionLostError(
                f"what lies between {start} and {end} is of the log before the source was switched, and only a part of"
                " it is still here: a Spark query begins anew with a new checkpoint"
            )
        if held is None:
            found = self.source_log
            held = found.read_log(found.translate(start), found.translate(end))
        yield from held

    def ack(self, end: Position) -> None:
        """A hint that frees memory: what a consumer needs again is read from the log. Ahead of the store it is
        nothing."""
        store, end = self._store_for_readers(), end.boundary
        if end <= store.latest:
            store.release(_READERS, end)

    def _store_for_readers(self) -> EventStore:
        """From the first of them on, what they have not acked is kept."""
        self.store.add_client(_READERS, wants_whole=True, reads_log=True, evict_after_s=_SILENT_S)
        return self.store

    def describe(self, tables: Sequence[TableName]) -> list[TableSchema]:
        source = self.source_log.source
        if isinstance(source, DirectorySettings):
            return [self.components.tables.describe(table) for table in tables]
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
            has_labels = "FULL" in (cursor.fetchone() or ())
            found = [read_live_schema(cursor, table) for table in tables]
            return found if has_labels else [table.with_exact_labels() for table in found]

    def resolve(self, text: str) -> Position:
        """Return the position between two transactions that a text means now, see `penstock.model.start_point`."""
        now, resolver = datetime.now(UTC), self.source_log.resolver
        if parse_start(text, now) is StartWord.STORED:
            return self.store.first
        position = resolver.resolve(text, now)
        self.source_log.check_reached(position)
        return resolver.align(position) if isinstance(parse_start(text, now), Position) else position

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return self.source_log.oldest()

    def status(self) -> dict[str, Any]:
        """What an operator wants to know, as plain data."""
        step, seconds = self.states.current, self.states.seconds
        about: dict[str, Any] = {
            "destination": self.settings.destination,
            "state": step.state.value,
            "reason": step.reason,
            "since": step.since,
            "seconds": {state.value: round(spent, 3) for state, spent in seconds.items() if spent},
            "counters": self.counters.to_json(),
        }
        components = self._components
        if components is not None:
            latest, tables = components.store.latest, components.tables
            about |= {
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
                "differences": {str(name): what for name, what in tables.differences.items()},
                "retention_hours_left": components.watchdog.hours_left,
            }
        return about

    def _behind_s(self, components: Components) -> float | None:
        """How old what is captured last is, while there is more."""
        if components.capture.is_caught_up and self.state is InstanceState.FOLLOWING:
            return 0.0
        seconds = components.store.latest.timestamp
        return max(0.0, round(time.time() - seconds, 3)) if seconds else None

    # -- keeping the place

    def _replaced(self, error: PenstockError) -> None:
        """Another server has this destination now."""
        if self._components is not None and self.state is not InstanceState.FAILED:
            self._components.capture.fail(error)
            self._components.capture.stop()

    def _keep_place(self) -> None:
        kept, components, name = None, self.components, self.settings.destination
        warnings = WriteWarnings(log, f"place not kept destination={name}", f"place kept again destination={name}")
        while not self._stopping.wait(_KEEP_S):
            place = components.store.acked
            if place == kept:
                continue
            try:
                components.save_position()
                kept = place
                warnings.report_success()
            except FencedError as error:
                self._replaced(error)
                return
            except PenstockError as error:
                warnings.report_failure(error)
