"""A destination that is reloaded ends its streams with an error that clients resume after, whatever they were doing."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import penstock
from penstock.binlog.events.block import Block
from penstock.client import FlightClient
from penstock.client.changes import ClientSubscription
from penstock.config import InstanceSettings, ServerSettings
from penstock.errors import PenstockError
from penstock.instance.tail_reader import open_tail
from penstock.model import TableName
from penstock.server import Server
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer, free_port
from tests.support.capture import execute, instance_of, poll, source_of

STREAMS, RELOADS = 4, 6
LAST = 1_000_000_000  # the last row: a number that no writer reaches, however fast it is


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    return f"{name}.t"


def test_an_instance_that_stops_while_its_reader_is_busy_is_no_error_of_the_reader(
    mariadb: DatabaseServer, table: str
) -> None:
    instance = instance_of(mariadb)
    instance.start()
    try:
        with open_tail(instance, Start.latest()) as follower:
            execute(mariadb, f"INSERT INTO {table} VALUES (1)")
            batches = follower.batches(lambda: False)
            assert any(batch is not None for batch in batches)
            instance.stop()
            with pytest.raises(PenstockError) as told:
                next(batches)
            assert told.value.transient, told.value
    finally:
        instance.stop()


def test_a_client_of_an_instance_that_was_stopped_is_told_so(mariadb: DatabaseServer) -> None:
    instance = instance_of(mariadb)
    instance.start()
    clients = instance.clients
    clients.subscribe(7, "", Start.latest())
    instance.stop()
    calls: list[Callable[[], Any]] = [
        lambda: clients.wait(7, BatchSize(1), 0),
        lambda: clients.get(7, BatchSize(1)),
        lambda: clients.rollback(7),
    ]
    for call in calls:
        with pytest.raises(PenstockError) as told:
            call()
        assert told.value.transient, told.value


class Reader(threading.Thread):
    def __init__(self, changes: Any) -> None:
        super().__init__(daemon=True)
        self.changes, self.ids = changes, list[int]()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for batch in self.changes:
                self.ids += batch.column("id").to_pylist()
                if isinstance(self.changes, ClientSubscription):
                    self.changes.ack()
                if self.ids and self.ids[-1] == LAST:
                    return
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


def test_streams_resume_after_reloads(mariadb: DatabaseServer, table: str) -> None:
    settings = InstanceSettings(source=source_of(mariadb))
    running = Server(ServerSettings.with_flight_only(settings))
    running.start()
    connections = [penstock.connect(f"grpc://{running.address}") for _ in range(STREAMS + 1)]
    streams: list[Any] = [connection.changes(table) for connection in connections[:-1]]
    subscription = connections[-1].subscribe(7, tables=[table])
    readers = [Reader(stream) for stream in (*streams, subscription)]
    written = 0
    try:
        for reader in readers:
            reader.start()
        stopping = threading.Event()

        def write() -> None:
            nonlocal written
            with mariadb.connect() as connection, connection.cursor() as cursor:
                while not stopping.wait(0.001):
                    written += 1
                    cursor.execute(f"INSERT INTO {table} VALUES ({written})")
                    connection.commit()
                cursor.execute(f"INSERT INTO {table} VALUES ({LAST})")
                connection.commit()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        for number in range(RELOADS):
            seen = [len(reader.ids) for reader in readers]
            changed = settings.source.model_copy(update={"heartbeat_s": 6.0 + number})  # type: ignore[union-attr]
            running.destinations.reload(settings.model_copy(update={"source": changed}))
            assert poll(lambda seen=seen: _are_ahead(readers, seen)), [reader.error for reader in readers]
        stopping.set()
        writer.join(30)
        for reader in readers:
            reader.join(60)
            assert reader.error is None
        wanted = [*range(1, written + 1), LAST]
        assert [reader.ids == wanted for reader in readers[:-1]] == [True] * STREAMS
        # What a subscription had got and not acked when the instance was stopped is redelivered.
        assert sorted(set(readers[-1].ids)) == wanted
    finally:
        for reader in readers:
            reader.changes.close()
        running.stop()
        for connection in connections:
            connection.close()


def test_a_part_is_read_to_its_end_although_the_server_is_restarted(mariadb: DatabaseServer, table: str) -> None:
    """Read as Spark's executors do; what the server that comes next has in other blocks is not given twice."""
    execute(mariadb, f"ALTER TABLE {table} ADD v LONGTEXT")
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb)), port=free_port())
    running = Server(settings)
    running.start()
    try:
        store = running.instances["default"].store
        start = store.latest
        execute(mariadb, *(f"INSERT INTO {table} VALUES ({row}, REPEAT('x', 1000000))" for row in range(60)))
        assert poll(lambda: store.latest.offset - start.offset > 60_000_000)
        name = TableName.parse(table)
        with closing(FlightClient(running.address, retry_timeout_s=60)) as client:
            (ticket, *_) = client.plan_parts([name], start, store.latest)
            whole = [_positions(block) for block in client.read_part(ticket)]
            blocks = client.read_part(ticket)
            positions = [_positions(next(blocks))]
            running.stop()
            running = Server(settings)
            running.start()
            positions += [_positions(block) for block in blocks]
        assert sum(positions, []) == sum(whole, [])  # noqa: RUF017 - a few dozen
    finally:
        running.stop()


def _positions(block: Block) -> list[int]:
    return block.column("position").tolist()


def _are_ahead(readers: list[Reader], seen: list[int]) -> bool:
    """Whether each has more than it had, or has failed."""
    return all(len(reader.ids) > count or reader.error for reader, count in zip(readers, seen, strict=True))
