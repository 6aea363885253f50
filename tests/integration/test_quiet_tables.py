"""A Spark query whose table is quiet while others are written: what it has not committed stays in the server's store,
and does not stop capture. Planning is done without Spark."""

from collections.abc import Callable

from penstock.config import InstanceSettings, ServerSettings, StoreSettings
from penstock.server import Server
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import BatchPlanner
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of

SMALL_BYTES = 256 << 10


def test_a_query_of_a_quiet_table_keeps_its_range_until_the_store_is_full(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    schema = database(mariadb)
    execute(mariadb, *(f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v TEXT)" for name in ("quiet", "busy")))
    settings = InstanceSettings(source=source_of(mariadb), store=StoreSettings(memory=SMALL_BYTES))
    server = Server(ServerSettings.with_flight_only(settings))
    server.start()
    try:
        store = server.instances["default"].store
        options = {"server": server.address, "table": f"{schema}.quiet", "startingPosition": str(end_of(mariadb))}
        planner = BatchPlanner(ReadOptions.of(options | {"pollMs": "100"}))
        start = offset = planner.initial()
        position = planner.log.position_of(start)
        for number in range(5):
            execute(mariadb, f"INSERT INTO {schema}.busy VALUES ({number}, 'a')")
            end = end_of(mariadb)
            assert poll(lambda end=end: store.latest >= end)
            assert planner.next(start) == start
            assert store.first <= position, "a part of the coming batch was freed"
        for number in range(100, 200):
            execute(mariadb, f"INSERT INTO {schema}.busy VALUES ({number}, REPEAT('x', 8000))")
        end = end_of(mariadb)

        def has_captured() -> bool:
            nonlocal offset
            offset = planner.next(offset)  # as Spark does when the batch before is committed
            return store.latest >= end

        assert poll(has_captured, 60), "capture waits for the query, and the query for capture"
        assert planner.log.position_of(offset) > position
    finally:
        server.stop()
