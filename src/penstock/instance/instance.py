"""One capture pipeline: it finds its place, follows a source's log into a store, and serves clients from there."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, TypeVar

from penstock.binlog.events.block import Block
from penstock.config import DirectorySettings, FilterSettings, InstanceSettings
from penstock.errors import (
    ConfigurationError,
    FencedError,
    MetaError,
    PenstockError,
    PositionLostError,
    SourceConnectionError,
)
from penstock.filter import BlockFilter
from penstock.inspect.place import parse_place
from penstock.instance.assembly import Bookkeeping, open_bookkeeping, open_store
from penstock.instance.capture import Capture, Parts, Repair
from penstock.instance.clients import Clients
from penstock.instance.counters import Counters
from penstock.instance.gap import gap_of
from penstock.instance.lineage import Kinship, Lineage
from penstock.instance.schema_import import import_patiently, open_tables, record_between
from penstock.instance.source_log import SourceLog
from penstock.instance.state import InstanceState, StateBook
from penstock.instance.tables import Tables
from penstock.instance.watchdog import Watchdog
from penstock.meta import Cursor, KeptMeta, MemoryMeta
from penstock.model import Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import Seen, connect, origin_of
from penstock.source.connection import translated
from penstock.store import EventStore

log = logging.getLogger(__name__)
T = TypeVar("T")

_JOIN_S = 10.0
_KEEP_S = 1.0  # how often the place from which capture goes on is kept
_READERS = "readers"  # the client that stands for all who read by position


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
        self._books: Bookkeeping | None = None
        self._log: SourceLog | None = None
        self._lineage: Lineage | None = None
        self._store: EventStore | None = None
        self._clients: Clients | None = None
        self._capture: Capture | None = None
        self._watchdog: Watchdog | None = None
        self._tables: Tables | None = None
        self._filter: BlockFilter | None = None

    @property
    def state(self) -> InstanceState:
        return self.states.present.state

    @property
    def failure(self) -> PenstockError | None:
        """Why the state is FAILED."""
        return self._refused or (self._capture.failure if self._capture is not None else None)

    @property
    def store(self) -> EventStore:
        return self._started(self._store)

    @property
    def clients(self) -> Clients:
        return self._started(self._clients)

    @property
    def source_log(self) -> SourceLog:
        return self._started(self._log)

    def _started(self, part: T | None) -> T:
        if part is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return part

    # -- life

    def start(self) -> None:
        """Also again, after a stop."""
        self.states.enter(InstanceState.STARTING)
        self._stopping.clear()
        self._refused, self._threads = None, []
        self._forget_parts()
        try:
            self._open()
        except BaseException as error:
            failure = error if isinstance(error, PenstockError) else PenstockError(f"it cannot start: {error!r}")
            self._refused = failure
            self.states.enter(InstanceState.FAILED, str(failure))
            self._close()
            raise
        capture, name = self._started(self._capture), self.settings.destination
        for target, what in ((capture.run, "capture"), (self._keep_place, "place")):
            thread = threading.Thread(target=target, name=f"penstock-{what}-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._started(self._watchdog).start()
        capture.settled.wait(self.source_log.origin.patience_s)
        if self.failure is not None:
            self.stop()
            raise self.failure

    def _forget_parts(self) -> None:
        """Of what ran before nothing counts: a start that fails must not keep its places."""
        self._books = self._store = self._clients = self._capture = None
        self._log = self._lineage = self._watchdog = self._tables = self._filter = None

    def pause(self, reason: str = "by hand") -> None:
        """The log is not read; what the store has is served."""
        self._started(self._capture).pause(reason)

    def resume(self) -> None:
        self._started(self._capture).resume()

    def reload_filter(self, settings: FilterSettings) -> None:
        """Counts for what is captured from now on. Settings that are wrong raise, and change nothing."""
        self._started(self._filter).reload(settings)
        self.settings = self.settings.model_copy(update={"filter": settings})
        self.source_log.refilter(self.settings)

    def stop(self) -> None:
        self._stopping.set()
        if self._capture is not None:
            self._capture.stop()
        if self._store is not None:
            self.states.enter(InstanceState.STOPPED, unless=frozenset({InstanceState.FAILED}))
            self._store.fail(SourceConnectionError(f"instance '{self.settings.destination}' was stopped"))
        if self._watchdog is not None:
            self._watchdog.stop()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._close()

    def _close(self) -> None:
        """Keep what is to be kept, and let go of files and connections."""
        books, self._books = self._books, None
        store = self._store
        steps: list[Callable[[], None]] = []
        if books is not None and store is not None:
            steps.append(lambda: self._save_place(books, store))
        steps += [books.close] if books is not None else []
        steps += [store.stop] if store is not None else []
        steps += [self._tables.close] if self._tables is not None else []
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the others are to be done all the same
                log.warning("not all was kept destination=%s reason=%s", self.settings.destination, error)

    # -- finding its place

    def _open(self) -> None:
        settings = self.settings
        if settings.start not in {None, "first", "latest"}:
            parse_place(settings.start or "", datetime.now(UTC))  # a mistake is said also where cursors count
        if settings.on_purged == "repair" and self._repair is None:
            raise ConfigurationError(f"on_purged: repair of '{settings.destination}' has nothing that could repair")
        alive = self._answering()
        self._books = open_bookkeeping(settings)
        meta = self._books.meta
        meta.start()
        if isinstance(meta, KeptMeta):
            meta.on_fenced = self._replaced
        self._lineage = lineage = Lineage(self._books.records, settings.epoch)
        self._log = source_log = SourceLog(settings, lineage)
        if source_log.source.address not in alive:
            source_log.source = next(one for one in settings.sources if one.address in alive)
        seen = source_log.look()
        place = self._place(self._books)
        kinship = lineage.judge(seen, place or seen.end, source_log.origin.mark_of)
        if kinship is not Kinship.SAME and place is None:
            lineage.rise(source_log.source.address, seen.server, by_gtids=False)  # there is nothing to go on from
            kinship = Kinship.SAME
        start = place or source_log.places.configured(settings.start, datetime.now(UTC))
        is_here = kinship is Kinship.SAME and start.epoch == lineage.epoch
        self._store = store = open_store(settings, self._settled(start) if is_here else start, source_log)
        if place is not None and store.latest < place:
            store.restart_at(place)  # a crash has left it behind all clients
        if is_here and store.latest.epoch == lineage.epoch:
            self._check_reached(store, meta, seen)
            if settings.on_purged == "stop":
                self._check_purged(store, meta, seen)
        if kinship is Kinship.SAME and store.latest.epoch < lineage.epoch:
            # The source was switched before, and nothing of the new log has come into the store yet.
            store.go_on_at(source_log.translated(store.discard_incomplete()))
        self._clients = Clients(store, meta, source=self._address, check_cursor=self._check_cursor)
        self._clients.start()
        self._tables = open_tables(settings, source_log.source, store.latest)
        source_log.complete = self._tables.complete
        self._check_tables(store.latest, seen)
        self._filter = BlockFilter(settings.filter)
        stages = (("tables", self._tables.follow), ("filter", self._filter.apply))
        parts = Parts(settings, source_log, lineage, store, self.states, self.counters, stages, self._go_on_with_tables)
        self._capture = Capture(parts, jitter=self._jitter, repair=self._repair)
        places = (lambda: store.acked), (lambda: store.latest)
        self._watchdog = Watchdog(settings, source_log, *places, self._capture.give_up_on, self._tables.compact)

    def _check_tables(self, start: Position, seen: Seen) -> None:
        """What is known of them must lead up to where capture goes on."""
        tables, lineage, source = self._started(self._tables), self._started(self._lineage), self.source_log.source
        followed = [file for file in lineage.record.marks if file in seen.sizes]
        is_unknown = bool(lineage.record.marks) and not followed and tables.continues(start)
        if tables.epoch < start.epoch or is_unknown:
            self._go_on_with_tables(None, start)
        elif followed and start.epoch == lineage.epoch:
            begin = Position(followed[-1], 4, epoch=start.epoch)
            record_between(tables, source, begin, start, verify=self.settings.verify_checksum)

    def _go_on_with_tables(self, after: Position | None, place: Position) -> None:
        """In another log: with those that there were `after` a place, or read anew from the source."""
        tables = self._started(self._tables)
        if after is not None and tables.continues(after):
            tables.go_on_at(place)
            return
        found = import_patiently(self.source_log.source, place, verify=self.settings.verify_checksum)
        tables.restart(found.begin, found.first, found.later)

    def _answering(self) -> set[str]:
        """Addresses of the sources that can be captured; raises what is wrong with the first when none can."""
        alive: set[str] = set()
        problem: PenstockError | None = None
        for source in self.settings.sources:
            try:
                origin_of(source).check(is_standby=source is self.settings.standby)
                alive.add(source.address)
            except SourceConnectionError as error:
                problem = problem or error
        if problem is not None and not alive:
            raise problem
        return alive

    def _place(self, books: Bookkeeping) -> Position | None:
        """From where capture goes on: the lowest cursor, or what stands in for it."""
        for client_id, cursor in books.meta.cursors().items():
            self._check_epoch(client_id, cursor.position)
        found = books.positions.load()
        return found.position if found is not None and found.position.epoch <= self.source_log.epoch else None

    def _settled(self, start: Position) -> Position:
        """Between two transactions, and with its GTIDs; what the log lacks is refused later, with the reason."""
        try:
            return start if start.gtids is not None else self.source_log.places.settled(start)
        except PositionLostError:
            return start

    def _check_reached(self, store: EventStore, meta: MemoryMeta, seen: Seen) -> None:
        source_log = self.source_log
        source_log.check_reached(store.latest, source_log.places.placed(seen.end))
        for client_id, cursor in meta.cursors().items():
            self._check_cursor(client_id, cursor.position)

    def _check_cursor(self, client_id: int, position: Position) -> None:
        self._check_epoch(client_id, position)
        if position.epoch == self.source_log.epoch:
            self.source_log.check_reached(position, whose=f"the cursor of client {client_id}, ")

    def _check_epoch(self, client_id: int, position: Position) -> None:
        if position.epoch > self.source_log.epoch:
            raise MetaError(
                f"the cursor of client {client_id} is at {position}, and this log is of epoch {self.source_log.epoch}:"
                " with `penstock position set` or `reset` say where it is to go on"
            )

    def _check_purged(self, store: EventStore, meta: MemoryMeta, seen: Seen) -> None:
        """What the source no longer has stops the clients that need it, and nobody else."""
        oldest = self.source_log.places.placed(seen.oldest)
        if store.latest >= oldest:
            return
        cursors = meta.cursors()
        later = [cursor.position for cursor in cursors.values() if cursor.position >= oldest]
        lost = ", ".join(str(client_id) for client_id, cursor in cursors.items() if cursor.position < oldest)
        problem = gap_of(self.source_log.origin, store.latest, seen)
        if problem.is_empty:
            return  # capture gets over it
        if not later:
            remedy = "choose a later start, or remove the store's files if there are any"
            if lost:
                remedy = f"say with `penstock position set` where client {lost} goes on"
            raise PositionLostError(f"{problem}: {remedy}; SHOW BINARY LOGS lists what it has")
        log.error("%s: lost client(s)=%s destination=%s", problem, lost, self.settings.destination)
        store.restart_at(min(later))

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
        store = self._store_for_readers()
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
        self.store.add_client(_READERS, wants_whole=True, reads_log=True)
        return self.store

    def describe(self, tables: Sequence[TableName]) -> list[TableSchema]:
        source = self.source_log.source
        if isinstance(source, DirectorySettings):
            return [self._started(self._tables).describe(table) for table in tables]
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
        if self._store is not None and self._log is not None:
            latest = self._store.latest
            about |= {
                "source": self._log.source.address,
                "epoch": self._log.epoch,
                "first": self._store.first.to_json(),
                "latest": latest.to_json(),
                "acked": self._store.acked.to_json(),
                "behind_s": max(0.0, round(time.time() - latest.timestamp, 3)) if latest.timestamp else None,
                "store_bytes": self._store.size_bytes,
            }
        if self._tables is not None:
            about["stopped_tables"] = {str(name): why for name, why in self._tables.stopped.items()}
            about["changes_as_statements"] = {"count": self._tables.unseen, "last": self._tables.last_unseen}
            about["differences"] = {str(name): what for name, what in self._tables.differences.items()}
        if self._watchdog is not None:
            about["retention_hours_left"] = self._watchdog.hours_left
        return about

    # -- keeping the place

    def _address(self) -> tuple[str, int]:
        return self.source_log.source.endpoint

    def _replaced(self, error: PenstockError) -> None:
        """Another server has this destination now."""
        if self._capture is not None and self.state is not InstanceState.FAILED:
            self._capture.fail(error)
            self._capture.stop()

    def _keep_place(self) -> None:
        kept, store = None, self.store
        while not self._stopping.wait(_KEEP_S):
            books, place = self._books, store.acked
            if books is None or place == kept:
                continue
            try:
                self._save_place(books, store)
                kept = place
            except FencedError as error:
                self._replaced(error)
                return
            except PenstockError as error:
                log.warning("place not kept destination=%s reason=%s", self.settings.destination, error)

    def _save_place(self, books: Bookkeeping, store: EventStore) -> None:
        books.positions.save(Cursor(store.acked, source=self._address()))
