"""One capture pipeline: it finds its place, follows a source's log into a store, and serves clients from there."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from penstock.binlog.events.block import Block
from penstock.config import DirectorySettings, FilterSettings, InstanceSettings
from penstock.coordinate import Fence
from penstock.disk import WriteWarnings
from penstock.errors import (
    FencedError,
    PenstockError,
    PositionLostError,
    SourceConnectionError,
)
from penstock.instance.capture import Repair
from penstock.instance.clients import Clients
from penstock.instance.counters import Counters
from penstock.instance.opening import open_parts
from penstock.instance.running import Running
from penstock.instance.source_log import SourceLog
from penstock.instance.state import InstanceState, StateBook
from penstock.model import Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import connect
from penstock.source.connection import translated
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
        self.states = StateBook(settings.destination)
        self.counters = Counters()
        self._jitter, self._repair = jitter, repair
        self._refused: PenstockError | None = None  # why it could not even start
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._parts: Running | None = None  # also after a stop, for who asks

    @property
    def state(self) -> InstanceState:
        return self.states.present.state

    @property
    def failure(self) -> PenstockError | None:
        """Why the state is FAILED."""
        return self._refused or (self._parts.capture.failure if self._parts is not None else None)

    @property
    def store(self) -> EventStore:
        return self.parts.store

    @property
    def clients(self) -> Clients:
        return self.parts.clients

    @property
    def source_log(self) -> SourceLog:
        return self.parts.log

    @property
    def parts(self) -> Running:
        if self._parts is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return self._parts

    # -- life

    def start(self, fence: Fence | None = None) -> None:
        """Also again, after a stop, or a failure. Without the fence of an election it claims one of its own."""
        if self.state is InstanceState.FAILED:
            self.stop()
        if self._parts is not None and not self._stopping.is_set():
            raise PenstockError(f"instance '{self.settings.destination}' runs already: stop it before it is started")
        self.states.enter(InstanceState.STARTING)
        self._stopping.clear()
        self._refused, self._threads, self._parts = None, [], None
        how: dict[str, Any] = {
            "jitter": self._jitter,
            "repair": self._repair,
            "on_fenced": self._replaced,
            "fence": fence,
        }
        try:
            self._parts = parts = open_parts(self.settings, self.states, self.counters, **how)
        except BaseException as error:
            failure = error if isinstance(error, PenstockError) else PenstockError(f"it cannot start: {error!r}")
            self._refused = failure
            self.states.enter(InstanceState.FAILED, str(failure))
            raise
        for target, what in ((parts.capture.run, "capture"), (self._keep_place, "place")):
            thread = threading.Thread(target=target, name=f"penstock-{what}-{self.settings.destination}", daemon=True)
            self._threads.append(thread)
            thread.start()
        parts.watchdog.start()
        parts.capture.settled.wait(parts.log.origin.patience_s)
        if self.failure is not None:
            self.stop()
            raise self.failure

    def pause(self, reason: str = "by hand") -> None:
        """The log is not read; what the store has is served."""
        self.parts.capture.pause(reason)

    def resume(self) -> None:
        self.parts.capture.resume()

    def reload_filter(self, settings: FilterSettings) -> None:
        """Counts for what is captured from now on. Settings that are wrong raise, and change nothing."""
        self.parts.filter.reload(settings)
        self.settings = self.settings.model_copy(update={"filter": settings})
        self.source_log.refilter(self.settings)

    def stop(self) -> None:
        if self._stopping.is_set() or self._parts is None:
            return
        self._stopping.set()
        parts = self._parts
        parts.capture.stop()
        self.states.enter(InstanceState.STOPPED, unless=frozenset({InstanceState.FAILED}))
        parts.store.fail(SourceConnectionError(f"instance '{self.settings.destination}' was stopped"))
        parts.watchdog.stop()
        for thread in self._threads:
            thread.join(_JOIN_S)
        parts.close()

    # -- for consumers

    def end_after(self, start: Position, max_bytes: int, timeout_s: float) -> Position:
        """Where a batch from `start` should end. Before what the store holds, the source's own log is measured."""
        store = self._store_for_readers()
        self.source_log.check_reached(start, store.latest)
        if start < store.first_for(start):
            start = self.source_log.translated(start)
        target = store.first_for(start)
        if start >= target:
            return store.end_after(start, max_bytes, timeout_s)
        size, end = 0, start
        for block in self.source_log.read_log(start, target):
            boundaries = block.boundaries
            if boundaries.size:
                end = block.boundary_after(int(boundaries[-1]))
            size += block.size_bytes
            if size >= max_bytes and end > start:
                return end
        return target

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
            held = found.read_log(found.translated(start), found.translated(end))
        yield from held

    def ack(self, end: Position) -> None:
        """A hint that frees memory: what a consumer needs again is read from the log. Ahead of the store it is
        nothing."""
        store = self._store_for_readers()
        if end <= store.latest:
            store.release(_READERS, end)

    def _store_for_readers(self) -> EventStore:
        """From the first of them on, what they have not acked is kept."""
        self.store.add_client(_READERS, wants_whole=True, reads_log=True, gives_way_s=_SILENT_S)
        return self.store

    def describe(self, tables: Sequence[TableName]) -> list[TableSchema]:
        source = self.source_log.source
        if isinstance(source, DirectorySettings):
            return [self.parts.tables.describe(table) for table in tables]
        with closing(connect(source)) as connection, translated(source), connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
            has_labels = "FULL" in (cursor.fetchone() or ())
            found = [live_schema(cursor, table) for table in tables]
            return found if has_labels else [table.with_exact_labels() for table in found]

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return self.source_log.oldest()

    def status(self) -> dict[str, Any]:
        """What an operator wants to know, as plain data."""
        step, seconds = self.states.present, self.states.seconds
        about: dict[str, Any] = {
            "destination": self.settings.destination,
            "state": step.state.value,
            "reason": step.reason,
            "since": step.since,
            "seconds": {state.value: round(spent, 3) for state, spent in seconds.items() if spent},
            "counters": self.counters.to_json(),
        }
        parts = self._parts
        if parts is not None:
            latest, tables = parts.store.latest, parts.tables
            about |= {
                "source": parts.log.source.address,
                "epoch": parts.log.epoch,
                "began": parts.begin.to_json(),
                "first": parts.store.first.to_json(),
                "latest": latest.to_json(),
                "acked": parts.store.acked.to_json(),
                "behind_s": self._behind_s(parts),
                "store_bytes": parts.store.size_bytes,
                "stopped_tables": {str(name): why for name, why in tables.stopped.items()},
                "changes_as_statements": {"count": tables.unseen, "last": tables.last_unseen},
                "differences": {str(name): what for name, what in tables.differences.items()},
                "retention_hours_left": parts.watchdog.hours_left,
            }
        return about

    def _behind_s(self, parts: Running) -> float | None:
        """How old what is captured last is, while there is more."""
        if parts.capture.is_caught_up and self.state is InstanceState.FOLLOWING:
            return 0.0
        seconds = parts.store.latest.timestamp
        return max(0.0, round(time.time() - seconds, 3)) if seconds else None

    # -- keeping the place

    def _replaced(self, error: PenstockError) -> None:
        """Another server has this destination now."""
        if self._parts is not None and self.state is not InstanceState.FAILED:
            self._parts.capture.fail(error)
            self._parts.capture.stop()

    def _keep_place(self) -> None:
        kept, parts, name = None, self.parts, self.settings.destination
        warnings = WriteWarnings(log, f"place not kept destination={name}", f"place kept again destination={name}")
        while not self._stopping.wait(_KEEP_S):
            place = parts.store.acked
            if place == kept:
                continue
            try:
                parts.save_place()
                kept = place
                warnings.succeeded()
            except FencedError as error:
                self._replaced(error)
                return
            except PenstockError as error:
                warnings.failed(error)
