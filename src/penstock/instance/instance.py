"""One capture pipeline: it finds the position to resume at, follows a source's log into a store, and serves clients
from there."""

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
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
from penstock.errors import FencedError, NotRunningError, PenstockError
from penstock.instance.batch_plan import BatchLimit, BatchPlan, RecentPlans
from penstock.instance.clients import Clients
from penstock.instance.components import Components
from penstock.instance.instance_status import describe_instance
from penstock.instance.opening import open_components
from penstock.instance.range_reader import RangeReader, forget_idle_readers
from penstock.model import Position, TableName, TableSchema
from penstock.model.start_point import StartWord, parse_start
from penstock.schema import read_live_schema
from penstock.schema.live import are_in_lower_case, check_letter_case, logs_column_names
from penstock.source import connect
from penstock.source.connection import translate_errors
from penstock.store import EventStore

if TYPE_CHECKING:
    from penstock.instance.snapshots import InstanceSnapshots

log = logging.getLogger(__name__)

_JOIN_S = 10.0
_SAVE_POSITION_S = 1.0  # how often the position from which capture would resume is saved


class Instance:
    """One capture pipeline, from source to store to clients; its name is called its destination. `start()` returns when
    the binlog is being read, or raises why it cannot be; `stop()` ends it. Any thread may read from it.

        instance = Instance(InstanceSettings(destination="shop", source=SourceSettings(host="db1", user="penstock")))
        instance.start()

    With `on_purged: repair`, a gap in the binlog is passed to the callback `repair`, which compares the target with the
    source and closes it. Without a `repair`, as in `penstock serve`, that policy is refused.
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
        """Return what the started instance is built of: event store, capture, clients, cursors, filter, schema tracker.
        Raises PenstockError before the first start."""
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

    def pause(self, reason: str = "manually") -> None:
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

    def plan_batch(
        self, start: Position, limit: BatchLimit, timeout_s: float, reader: str = "", *, skip_bytes: int = 0
    ) -> BatchPlan:
        """Return the plan of a batch from `start`, by bytes and rows; it ends at `start` when nothing was captured in
        time. Over ranges without rows it looks further in that time, until they have more than `skip_bytes`. The store
        keeps what `reader` has not acked."""
        return self._ranges.plan_batch(start, limit, timeout_s, reader, skip_bytes=skip_bytes)

    def split_range(self, start: Position, end: Position) -> list[tuple[Position, Position]]:
        """Split a range of the log at transaction boundaries into parts that can be read in parallel, and
        repeatedly."""
        return self._ranges.split_range(start, end)

    def split_piece(
        self, start: Position, end: Position
    ) -> tuple[list[tuple[Position, Position]], tuple[Position, Position] | None]:
        """Split the first piece of a range, as much of it as one call may read, and return its parts and the rest of
        the range, or None."""
        return self._ranges.split_piece(start, end)

    def read(self, start: Position, end: Position, *, is_part: bool = False) -> Iterator[Block]:
        """Yield the blocks of the range (start, end], from the store if it has all of it, else from the source's log.
        `is_part` says that the range comes from `split_range`."""
        return self._ranges.read(start, end, is_part=is_part)

    def ack(self, end: Position, reader: str = "") -> None:
        """Note that a reader by position needs nothing before `end`, so that the store can free it."""
        self._ranges.ack(end, reader)

    @property
    def _ranges(self) -> RangeReader:
        """Return the reader of ranges, over the components as they are now."""
        return RangeReader(self.store, self.source_log, self._plans)

    def renew_reader(self, reader: str) -> float:
        """Keep the cursor of a reader by position that asks for nothing because it is in the middle of a long batch;
        return after how many seconds it is forgotten unless it is renewed again."""
        return self._ranges.renew_reader(reader)

    def describe_tables(self, tables: Sequence[TableName]) -> list[TableSchema]:
        """Return the schemas of tables as they are at the source now."""
        source = self.source_log.source
        if isinstance(source, DirectorySettings):
            return [self.components.tables.describe(table) for table in tables]
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            check_letter_case(cursor, tables)
            has_labels = logs_column_names(cursor)
            schemas = [read_live_schema(cursor, table) for table in tables]
            return schemas if has_labels else [schema.with_exact_labels() for schema in schemas]

    def check_letter_case(self, tables: Sequence[TableName]) -> None:
        """Raise SchemaError for a table that is written in other letters than the log has: a stream of it would stay
        empty. The source is asked only about names with capital letters."""
        source = self.source_log.source
        if isinstance(source, DirectorySettings) or are_in_lower_case(tables):
            return
        with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
            check_letter_case(cursor, tables)

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
        return describe_instance(self.settings.destination, self.states, self.counters, self._components)

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
            forget_idle_readers(components.store)
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
