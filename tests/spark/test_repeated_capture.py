"""`Trigger.AvailableNow` while capture reads the same transaction again: once it is waited for, for ever it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.instance import InstanceState
from penstock.server import Server
from penstock.testing import DatabaseServer, free_port
from tests.spark.test_stream_source import Collected, caught_up, run, stream
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.scenario.proxy import Network

ROWS = 6
WAIT_S = 90.0


def begun(settings: ServerSettings) -> Server:
    server = Server(settings)
    server.start()
    return server


def is_inside_transaction(server: Server) -> bool:
    instance = server.instances["default"]
    return instance.counters.read_to is not None and instance.counters.read_to > instance.store.latest


@pytest.mark.campaign  # the connection that resolves the start may break, too: the query then ends with that error
def test_available_now_ends_when_a_transaction_is_read_again_and_again_but_not_after_one_restart(
    spark: SparkSession, mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], tmp_path: Path
) -> None:
    table, got = f"{database(mariadb)}.item", Collected()
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY, v MEDIUMTEXT)")
    start = end_of(mariadb)
    with Network(mariadb.port, 1) as way:
        source = source_of(mariadb).model_copy(update={"port": way.port})
        settings = ServerSettings.with_flight_only(InstanceSettings(source=source, start=str(start)))
        flight = settings.flight.model_copy(update={"port": free_port()})
        settings = settings.model_copy(update={"flight": flight})
        server = begun(settings)
        try:
            instance = server.instances["default"]
            caught_up(server, mariadb)
            instance.pause()
            assert poll(lambda: instance.state is InstanceState.PAUSED)
            rows = ", ".join(f"({i}, REPEAT('x', 500000))" for i in range(ROWS))
            execute(mariadb, f"INSERT INTO {table} VALUES {rows}")
            options = {"table": table, "startingPosition": str(start)}
            frame = stream(spark, server, **options, waitForServer="5")
            way.trouble = lambda _: 3 << 19  # each connection breaks in the middle of the transaction
            instance.resume()
            query = run(frame, got, tmp_path / "checkpoint", drain=True)
            with pytest.raises(StreamingQueryException, match="has captured nothing new"):
                query.awaitTermination(WAIT_S)
            assert way.happened >= 2
            # Now it breaks no more, but the server is restarted in the middle.
            way.trouble, way.delay_s = None, 0.2
            query = run(stream(spark, server, **options), got, tmp_path / "checkpoint", drain=True)
            assert poll(lambda: is_inside_transaction(server), WAIT_S)
            server.stop()
            assert query.isActive
            server = begun(settings)
            assert poll(lambda: is_inside_transaction(server), WAIT_S)
            way.delay_s = 0.0
            assert query.awaitTermination(WAIT_S)
        finally:
            server.stop()
    assert [row["id"] for row in got.rows] == list(range(ROWS))
