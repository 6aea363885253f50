"""Queries that are started before their server, or while it is away: they wait for it as long as their option says."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer, free_port
from tests.spark.test_stream_source import Collected, run
from tests.support.capture import execute, poll, source_of

WAIT_S = 90.0


@pytest.fixture
def late(mariadb: DatabaseServer) -> ServerSettings:
    """The settings of a server that is not there yet."""
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb)))
    return settings.model_copy(update={"flight": settings.flight.model_copy(update={"port": free_port()})})


@contextmanager
def started(settings: ServerSettings) -> Iterator[Server]:
    server = Server(settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_a_query_waits_for_a_server_that_is_started_later(
    spark: SparkSession,
    late: ServerSettings,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    table, port = f"{database(mariadb)}.item", late.flight.port
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)")
    options = {"server": f"127.0.0.1:{port}", "table": table, "startingPosition": "earliest"}
    asked, got = list[str](), Collected()

    def load() -> DataFrame:
        asked.append("load")
        return spark.readStream.format("penstock").options(**options).load()

    with pytest.raises(Exception, match=rf"no Penstock server answers at 127\.0\.0\.1:{port}"):
        spark.readStream.format("penstock").options(**options, waitForServer="1").load()
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load)  # its columns are asked for before there is a server
        assert poll(lambda: bool(asked), WAIT_S)
        assert not loading.done()
        with started(late):
            frame = loading.result(WAIT_S)
            query = run(frame, got, tmp_path)
            assert poll(lambda: len(got.rows) == 1, WAIT_S), query.exception()
            query.stop()
    query = run(frame, got, tmp_path)  # it resumes, and there is no server again
    try:
        execute(mariadb, f"INSERT INTO {table} VALUES (2)")
        assert poll(lambda: query.status["isTriggerActive"], WAIT_S)
        assert query.isActive
        with started(late):
            assert poll(lambda: len(got.rows) == 2 or not query.isActive, WAIT_S)
            assert [row["id"] for row in got.rows] == [1, 2], query.exception()
            query.stop()
    finally:
        query.stop()
