"""The life of one instance: a reader thread that follows the log into the store, and reads that the store cannot serve.

A transient error reconnects from the last complete transaction, with back-off; any other stops the instance, and
every consumer gets that error.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from enum import Enum
from typing import TypeVar

from penstock.binlog.events.block import Block
from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError, FencedError, PenstockError, PositionLostError, SourceConnectionError
from penstock.instance.assembly import Bookkeeping, open_bookkeeping, open_store
from penstock.instance.clients import Clients
from penstock.instance.source_log import SourceLog
from penstock.meta import Cursor, KeptMeta, MemoryMeta
from penstock.model import Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import check_source, connect, current_position
from penstock.source.connection import translated
from penstock.store import EventStore

log = logging.getLogger(__name__)
T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 15.0
_JOIN_S = 10.0
_KEEP_S = 1.0  # how often the place from which capture goes on is kept
_READERS = "readers"  # the client that stands for all who read by position


class InstanceState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    RECONNECTING = "reconnecting"
    FAILED = "failed"
    STOPPED = "stopped"


class Instance:
    """`start()` returns when the log flows, or raises why it cannot; `stop()` ends it. Readable from any thread."""

    def __init__(self, settings: InstanceSettings, jitter: Callable[[], float] = random.random) -> None:
        self.settings = settings
        self.state = InstanceState.STOPPED
        self._jitter = jitter
        self.failure: PenstockError | None = None  # why the state is FAILED
        self._stopping = threading.Event()
        self._settled = threading.Event()  # the log flows, or never will
        self._threads: list[threading.Thread] = []
        self._log = SourceLog(settings)
        self._books: Bookkeeping | None = None
        self._store: EventStore | None = None
        self._clients: Clients | None = None

    @property
    def store(self) -> EventStore:
        return self._started(self._store)

    @property
    def clients(self) -> Clients:
        return self._started(self._clients)

    def _started(self, part: T | None) -> T:
        if part is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return part

    def start(self) -> None:
        self.state = InstanceState.STARTING
        try:
            self._open()
        except BaseException as error:
            failure = error if isinstance(error, PenstockError) else PenstockError(f"it cannot start: {error!r}")
            self.state, self.failure = InstanceState.FAILED, failure
            self._close()
            raise
        name = self.settings.destination
        for target, what in ((self._run, "capture"), (self._keep_place, "place")):
            thread = threading.Thread(target=target, args=(self.store,), name=f"penstock-{what}-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._settled.wait(self.settings.source.connect_timeout_s)
        if self.failure is not None:
            self.stop()
            raise self.failure

    def _open(self) -> None:
        settings, source = self.settings, self.settings.source
        with closing(connect(source)) as connection:
            check_source(connection, source)
            now = replace(current_position(connection, source), epoch=settings.epoch)
        self._books = open_bookkeeping(settings)
        meta = self._books.meta
        meta.start()
        if isinstance(meta, KeptMeta):
            meta.on_fenced = self._replaced
        place = self._place(self._books, now)
        start = place or (Position.parse(settings.start, settings.epoch) if settings.start else now)
        self._store = open_store(settings, start, self._log)
        if self._store.latest.epoch < settings.epoch:
            self._store.restart_at(start)  # it is of another log, and of no use
        self._log.check_reached(self._store.latest)
        if place is not None and self._store.latest < place:
            self._store.restart_at(place)  # a crash has left it behind all clients
        self._check_purged(self._store, meta)
        self._clients = Clients(
            self._store,
            meta,
            source=(source.host, source.port),
            check_cursor=self._check_cursor,
        )
        self._clients.start()

    def _place(self, books: Bookkeeping, now: Position) -> Position | None:
        """From where capture goes on; cursors of another epoch, or ahead of the log, are places in another log."""
        own, cursors = self.settings.epoch, books.meta.cursors()
        self._log.check_reached(now, now)
        for client_id, cursor in cursors.items():
            if cursor.position.epoch != own:
                raise ConfigurationError(
                    f"the cursor of client {client_id} of '{self.settings.destination}' is at {cursor}, and this log is"
                    f" of epoch {own}: with `penstock position set` or `reset` say where it is to go on"
                )
            self._check_cursor(client_id, cursor.position)
        found = books.positions.load()
        if found is None or found.position.epoch != own:
            return None
        self._log.check_reached(found.position, now)
        return found.position

    def _check_purged(self, store: EventStore, meta: MemoryMeta) -> None:
        """What the source no longer has stops the clients that need it, and nobody else."""
        oldest, source = self._log.oldest(), self.settings.source.address
        if store.latest >= oldest:
            return
        cursors = meta.cursors()
        later = [cursor.position for cursor in cursors.values() if cursor.position >= oldest]
        lost = ", ".join(str(client_id) for client_id, cursor in cursors.items() if cursor.position < oldest)
        problem = f"the log of {source} begins at {oldest} and no longer has what follows {store.latest}"
        if not later:
            remedy = "choose a later start, or remove the store's files if there are any"
            if lost:
                remedy = f"say with `penstock position set` where client {lost} goes on"
            raise PositionLostError(f"{problem}: {remedy}; SHOW BINARY LOGS lists what it has")
        log.error("%s: lost client(s)=%s destination=%s", problem, lost, self.settings.destination)
        store.restart_at(min(later))

    def _check_cursor(self, client_id: int, position: Position) -> None:
        self._log.check_reached(position, whose=f"the cursor of client {client_id}, ")

    def stop(self) -> None:
        self._stopping.set()
        self._log.stop()
        if self._store is not None and self.state is not InstanceState.FAILED:
            self.state = InstanceState.STOPPED
            self._store.fail(SourceConnectionError(f"instance '{self.settings.destination}' was stopped"))
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
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the others are to be done all the same
                log.warning("not all was kept destination=%s reason=%s", self.settings.destination, error)

    # -- for consumers

    def end_after(self, start: Position, max_bytes: int, timeout_s: float) -> Position:
        """Where a batch from `start` should end. Before what the store holds, the source's own log is measured."""
        store = self._store_for_readers()
        self._log.check_reached(start, store.latest)
        if start >= store.first:
            return store.end_after(start, max_bytes, timeout_s)
        target, size, end = store.first, 0, start
        for block in self._log.read_log(start, target):
            boundaries = block.boundaries
            if boundaries.size:
                end = block.end_of(int(boundaries[-1]))
            size += block.size_bytes
            if size >= max_bytes and end > start:
                return end
        return target

    def read(self, start: Position, end: Position) -> Iterator[Block]:
        """Entries of (start, end], from the store where it has them, else from the source's log."""
        store = self._store_for_readers()
        self._log.check_reached(end, store.latest)
        held = store.read(start, end)
        yield from self._log.read_log(start, end) if held is None else held

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
        source = self.settings.source
        with closing(connect(source)) as connection, translated(source), connection.cursor() as cursor:
            return [live_schema(cursor, table) for table in tables]

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return self._log.oldest()

    # -- capture

    def _run(self, store: EventStore) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            try:
                for _ in self._follow(store):
                    pause_s = _FIRST_PAUSE_S
            except PenstockError as error:
                if self._stopping.is_set():
                    return
                if not error.transient:
                    self._fail(store, error)
                    return
                self.state = InstanceState.RECONNECTING
                log.warning(
                    "reconnecting destination=%s in_s=%.1f reason=%s", self.settings.destination, pause_s, error
                )
                self._stopping.wait(pause_s * (0.5 + self._jitter()))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            except Exception as error:
                log.debug("capture died", exc_info=error)
                self._fail(store, PenstockError(f"capture of '{self.settings.destination}' died: {error!r}"))
                return

    def _fail(self, store: EventStore, error: PenstockError) -> None:
        self.state, self.failure = InstanceState.FAILED, error
        store.fail(error)
        if self._settled.is_set():  # before that, start() raises it
            log.error("capture stopped destination=%s reason=%s", self.settings.destination, error)
        self._settled.set()

    def _follow(self, store: EventStore) -> Iterator[None]:
        start = store.discard_incomplete()
        with self._log.followed(start) as stream:
            for block in stream:
                if stream.is_flowing:
                    self.state = InstanceState.RUNNING
                    self._settled.set()
                while block is not None and not store.put(block, timeout_s=1.0):
                    if self._stopping.is_set():
                        return
                yield

    def _replaced(self, error: PenstockError) -> None:
        """Another server has this destination now."""
        if self._store is not None and self.state is not InstanceState.FAILED:
            self._fail(self._store, error)
            self._log.stop()

    def _keep_place(self, store: EventStore) -> None:
        kept = None
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
        source = self.settings.source
        books.positions.save(Cursor(store.acked, source=(source.host, source.port)))
