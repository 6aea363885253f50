"""A batch that takes longer than the server remembers a query that asks for nothing."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.instance import range_reader
from penstock.server import Server
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import BatchPlanner
from penstock.store import EventStore
from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import Collected, caught_up, run, stream
from tests.support.capture import execute, poll, source_of

FORGOTTEN_AFTER_S = 5.0
WAIT_S = 90.0


@pytest.fixture
def served(mariadb: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that forgets readers after seconds instead of ten minutes."""
    monkeypatch.setattr(range_reader, "_FORGET_READERS_AFTER_S", FORGOTTEN_AFTER_S)
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    server.start()
    yield server
    server.stop()


def idle_s(store: EventStore) -> list[float]:
    """For how long each query has asked for nothing."""
    return [client.idle_s for client in store.stats().clients if client.name.startswith("readers/")]


def test_a_query_keeps_its_cursor_between_two_triggers(
    served: Server, mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    """Also when nothing was there for its first batch."""
    table, store = f"{database(mariadb)}.item", served.instances["default"].store
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    caught_up(served, mariadb)
    options = {"server": served.address, "table": table, "startingPosition": str(store.latest), "pollMs": "1"}
    planner = BatchPlanner(ReadOptions.of(options))
    start = planner.initial()
    assert planner.next(start) == start
    assert poll(lambda: max(idle_s(store), default=0) > 1.5 * FORGOTTEN_AFTER_S, WAIT_S), "it was forgotten"


def test_a_query_keeps_its_cursor_during_a_long_batch_and_not_after_its_end(
    spark: SparkSession,
    served: Server,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    table, store = f"{database(mariadb)}.item", served.instances["default"].store
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    caught_up(served, mariadb)
    start, got, may_end = store.latest, Collected(), threading.Event()

    def work_long(batch: DataFrame, number: int) -> None:
        assert may_end.wait(WAIT_S)
        got(batch, number)

    query = run(stream(spark, served, table=table, startingPosition=str(start)), work_long, tmp_path)
    try:
        execute(mariadb, f"INSERT INTO {table} VALUES (1)")
        assert poll(lambda: max(idle_s(store), default=0) > 2 * FORGOTTEN_AFTER_S, WAIT_S), "it was forgotten"
        assert store.first <= start
        assert query.isActive
        may_end.set()
        assert poll(lambda: len(got.rows) == 1, WAIT_S), query.exception()
    finally:
        may_end.set()
        query.stop()
    assert poll(lambda: not idle_s(store), WAIT_S)
