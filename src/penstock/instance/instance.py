"""The life of one instance: a reader thread that follows the log into the store, and reads that the store cannot serve.

A transient error reconnects from the last complete transaction, with back-off; any other stops the instance, and
every consumer gets that error.
"""

import logging
import random
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import Enum

from penstock.binlog.events.block import Block
from penstock.config import InstanceSettings
from penstock.errors import PenstockError, PositionLostError, SourceConnectionError
from penstock.model import Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import BinlogStream, check_source, connect, current_position, oldest_position
from penstock.source.connection import translated
from penstock.store import EventStore, MemoryShelf

log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 15.0
_JOIN_S = 10.0
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
        self._thread: threading.Thread | None = None
        self._streams: set[BinlogStream] = set()
        self._store: EventStore | None = None
        self._reached = Position("none.0", 0)  # how far the source's log is known to go

    @property
    def store(self) -> EventStore:
        if self._store is None:
            raise PenstockError(f"instance '{self.settings.destination}' was not started")
        return self._store

    def start(self) -> None:
        self.state = InstanceState.STARTING
        source = self.settings.source
        with closing(connect(source)) as connection:
            check_source(connection, source)
            now = current_position(connection, source)
        start = Position.parse(self.settings.start) if self.settings.start else now
        self._reached = now
        self._store = EventStore(MemoryShelf(self.settings.store_bytes), start)
        self._store.add_client(_READERS, wants_whole=True)
        name = f"penstock-capture-{self.settings.destination}"
        self._thread = threading.Thread(target=self._run, args=(self._store,), name=name, daemon=True)
        self._thread.start()
        self._settled.wait(source.connect_timeout_s)
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self._stopping.set()
        for stream in list(self._streams):
            stream.stop()
        if self._store is not None and self.state is not InstanceState.FAILED:
            self.state = InstanceState.STOPPED
            self._store.fail(SourceConnectionError(f"instance '{self.settings.destination}' was stopped"))
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    # -- for consumers

    def end_after(self, start: Position, max_bytes: int, timeout_s: float) -> Position:
        """Where a batch from `start` should end. Before what the store holds, the source's own log is measured."""
        self._check_reached(start)
        if start >= self.store.first:
            return self.store.end_after(start, max_bytes, timeout_s)
        target, size, end = self.store.first, 0, start
        for block in self._from_log(start, target):
            boundaries = block.boundaries
            if boundaries.size:
                end = block.end_of(int(boundaries[-1]))
            size += block.size_bytes
            if size >= max_bytes and end > start:
                return end
        return target

    def read(self, start: Position, end: Position) -> Iterator[Block]:
        """Entries of (start, end], from the store where it has them, else from the source's log."""
        self._check_reached(end)
        held = self.store.read(start, end)
        yield from self._from_log(start, end) if held is None else held

    def ack(self, end: Position) -> None:
        """A hint that frees memory: what a consumer needs again is read from the log. Ahead of the store it is
        nothing."""
        if end <= self.store.latest:
            self.store.release(_READERS, end)

    def _check_reached(self, position: Position) -> None:
        """A position that the log has not reached is of another log: to go on from it would skip changes."""
        if position <= max(self._reached, self.store.latest):
            return
        with closing(connect(self.settings.source)) as connection:
            self._reached = current_position(connection, self.settings.source)
        if position > self._reached:
            raise PositionLostError(
                f"{position} is ahead of the log of {self.settings.source.address}, which ends at {self._reached}:"
                " the log was restarted, or this is another server; begin anew with a new checkpoint"
            )

    def describe(self, tables: Sequence[TableName]) -> list[TableSchema]:
        source = self.settings.source
        with closing(connect(source)) as connection, translated(source), connection.cursor() as cursor:
            return [live_schema(cursor, table) for table in tables]

    def oldest(self) -> Position:
        """Where the source's log begins."""
        with closing(connect(self.settings.source)) as connection:
            return oldest_position(connection, self.settings.source)

    def _from_log(self, start: Position, end: Position) -> Iterator[Block]:
        with self._opened(start) as stream:
            for block in stream:
                part = block.between(start, end) if block is not None else ()
                if part:
                    yield part
                if (block.end if block is not None else stream.position) >= end:
                    return
        raise SourceConnectionError(f"instance '{self.settings.destination}' was stopped")

    @contextmanager
    def _opened(self, start: Position) -> Generator[BinlogStream, None, None]:
        """A stream that `stop()` ends, whoever reads from it."""
        stream = BinlogStream(self.settings.source, start, verify=self.settings.verify_checksum)
        self._streams.add(stream)
        try:
            with stream:
                if self._stopping.is_set():
                    stream.stop()
                yield stream
        finally:
            self._streams.discard(stream)

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
        with self._opened(start) as stream:
            for block in stream:
                if stream.is_flowing:
                    self.state = InstanceState.RUNNING
                    self._settled.set()
                while block is not None and not store.put(block, timeout_s=1.0):
                    if self._stopping.is_set():
                        return
                yield
