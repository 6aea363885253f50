"""An instance that captures while something happens to its source, and what its client got of the log.

The client acks every batch. What it gets is one log without gap and without duplicate, but for one thing: when the
connection breaks inside a transaction of which the client has a part, the transaction is redelivered from its
beginning, and replaces that part.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.errors import MetaError, NotRunningError, SourceConnectionError, StoreError
from penstock.instance import Instance
from penstock.model import Position
from penstock.store import Batch, BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, instance_of, poll
from tests.support.scenario.server_log import Event, events_between, events_of, keep_all
from tests.support.scenario.workload import Workload

CLIENT = 1001
_BATCH = BatchSize(256, "memory")
_ENOUGH = 1000  # events, for a comparison that shows something


class Reading:
    """What one client got, over all runs of the instance."""

    def __init__(self) -> None:
        self.start: Position | None = None
        self.end: Position | None = None
        self.boundary: Position | None = None  # the last one that was acked
        self.events: list[Event] = []
        self.begun_again = 0  # transactions of which a part was there
        self.parts = 0  # batches inside of one

    def take(self, batch: Batch) -> None:
        self.parts += batch.ack is None
        if self.end is None or self.boundary is None:
            self.start = self.end = self.boundary = batch.start
        if batch.start != self.end:
            assert batch.start == self.boundary, f"got {batch.start} after {self.end}; acked was {self.boundary}"
            self.begun_again += 1
            key = (self.boundary.file_number, self.boundary.offset)
            while self.events and self.events[-1][:2] >= key:
                self.events.pop()
        for block in batch.blocks:
            self.events += events_of(block)
        self.end = batch.end

    def acked(self, batch: Batch) -> None:
        self.boundary = batch.ack or self.boundary


class Taker:
    """The thread of the client; `pause` keeps it from getting."""

    def __init__(self, instance: Instance, reading: Reading) -> None:
        self._instance, self._reading = instance, reading
        self._stopping, self._may_get = threading.Event(), threading.Event()
        self._may_get.set()
        self._thread = threading.Thread(target=self._run, name="taker", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._instance.clients.subscribe(CLIENT, "", Start.stored())
        self._thread.start()

    def end(self) -> None:
        """That its instance stops is no failure from now on."""
        self._stopping.set()
        self._may_get.set()

    def stop(self) -> None:
        self.end()
        self._thread.join(30)
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._may_get.clear()
        yield
        self._may_get.set()

    def _run(self) -> None:
        clients = self._instance.clients
        try:
            while not self._stopping.is_set():
                self._may_get.wait()
                got = clients.get(CLIENT, _BATCH, 0.1)
                if got is not None:
                    batch_id, batch = got
                    self._reading.take(batch)
                    clients.ack(CLIENT, batch_id)
                    self._reading.acked(batch)
        except (MetaError, NotRunningError, StoreError, SourceConnectionError) as error:
            if not self._stopping.is_set():
                self.failure = error
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error


class Connections(logging.Handler):
    """Counts how often capture asked for the log; who looks after the source now and then asks too."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        is_capture = str(record.threadName).startswith("penstock-capture")
        self.count += is_capture and record.msg.startswith("following the binlog")

    @contextmanager
    def listening(self) -> Iterator[None]:
        logger = logging.getLogger("penstock.source.stream")
        before = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        yield
        logger.removeHandler(self)
        logger.setLevel(before)


class Scenario:
    """A source that is written to, captured and compared. Made by `captured`."""

    def __init__(self, server: DatabaseServer, folder: Path, seed: int, settings: dict[str, Any]) -> None:
        self.server, self.kept = server, folder
        self.workload, self.reading = Workload(server, seed), Reading()
        self._settings, self._connections = settings, Connections()
        self._runs: list[tuple[Instance, Taker]] = []

    @property
    def instance(self) -> Instance:
        return self._runs[-1][0]

    @property
    def taker(self) -> Taker:
        return self._runs[-1][1]

    @property
    def connections(self) -> int:
        return self._connections.count

    def start_instance(self) -> None:
        instance = instance_of(self.server, **self._settings)
        instance.start()
        taker = Taker(instance, self.reading)
        self._runs.append((instance, taker))
        taker.start()

    def stop_instance(self) -> None:
        """The client may be in the middle of something."""
        self.taker.end()
        self.instance.stop()
        self.taker.stop()

    def has(self, position: Position) -> bool:
        """What the client has acked."""
        if self.taker.failure is not None:
            raise self.taker.failure
        if self.instance.failure is not None:
            raise self.instance.failure
        return self.reading.boundary is not None and self.reading.boundary >= position

    def catch_up(self, seconds: float = 60) -> None:
        end = end_of(self.server)
        assert poll(lambda: self.has(end), seconds), f"the client is at {self.reading.boundary}, the log at {end}"

    def _write_enough(self) -> None:
        """Whatever the test needed, continue to write until a comparison shows something."""
        deadline = time.monotonic() + 60
        while len(self.reading.events) <= 2 * _ENOUGH and time.monotonic() < deadline:
            self.workload.write(50)

    def check(self) -> None:
        """What the client got is what the server has in its files, up to the last position that it acked."""
        start, end = self.reading.start, self.reading.boundary
        assert start is not None
        assert end is not None
        keep_all(self.server, self.kept)
        expected = events_between(self.kept, start, end)
        events = self.reading.events
        event = next(
            (i for i, (ours, theirs) in enumerate(zip(events, expected, strict=False)) if ours != theirs), None
        )
        if event is not None:
            raise AssertionError(f"event {event}: got {events[event][:2]}, the server has {expected[event][:2]}")
        assert len(events) == len(expected)
        assert len(expected) > _ENOUGH, "too little was written to show anything"

    @contextmanager
    def run(self) -> Iterator["Scenario"]:
        with self._connections.listening():
            self.start_instance()
            self.workload.start()
            try:
                yield self
                self._write_enough()
                self.workload.stop()
                execute(self.server, "FLUSH BINARY LOGS")
                self.catch_up()
                self.taker.stop()
                self.check()
            finally:
                self.workload.stop()
                self.stop_instance()
