"""`format("penstock")`: ranges of the log, limits, starts and ends, on a real Spark."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ByteSize
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings, StoreSettings
from penstock.instance import InstanceState
from penstock.model import Position
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import Collected, caught_up, run, stream
from tests.support.capture import execute, poll, source_of
from tests.support.scenario.proxy import Network


@pytest.fixture
def served(mariadb: DatabaseServer) -> Iterator[Server]:
    """A server whose store is so small that much comes from the source's log."""
    instance = InstanceSettings(source=source_of(mariadb), store=StoreSettings(memory=ByteSize(1 << 20)))
    server = Server(ServerSettings.with_flight_only(instance))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.item"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v MEDIUMTEXT) DEFAULT CHARSET utf8mb4")
    return name


def end_of(server: DatabaseServer) -> Position:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
    return Position(file, int(offset))


def between(spark: SparkSession, served: Server, **options: str) -> DataFrame:
    return spark.read.format("penstock").option("server", served.address).options(**options).load()


def test_a_range_of_the_log_is_a_dataframe_in_parts(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str
) -> None:
    """The store has room for none of it, and it is read by more than one task all the same."""
    first = end_of(mariadb)
    for low in range(0, 60, 10):
        rows = ", ".join(f"({low + i}, REPEAT('x', 500000))" for i in range(10))
        execute(mariadb, f"INSERT INTO {table} VALUES {rows}")
    last = end_of(mariadb)
    execute(mariadb, f"DELETE FROM {table} WHERE id < 2")
    frame = between(spark, served, table=table, startingPosition=str(first), endingPosition=str(last))
    assert frame.rdd.getNumPartitions() >= 3
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(60))
    whole = between(spark, served, table=table)  # from the beginning of the log to its end
    kinds = {row["_change_type"]: row["count"] for row in whole.groupBy("_change_type").count().collect()}
    assert kinds == {"insert": 60, "delete": 2}
    with pytest.raises(Exception, match="is before startingPosition"):
        between(spark, served, table=table, startingPosition=str(last), endingPosition=str(first)).collect()


def test_available_now_reads_to_the_end_of_the_source_not_of_the_capture(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    start, instance = end_of(mariadb), served.instances["default"]
    caught_up(served, mariadb)
    instance.pause()
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'x')" for i in range(20)))
    got = Collected()
    query = run(stream(spark, served, table=table, startingPosition=str(start)), got, tmp_path, drain=True)
    time.sleep(2)  # it waits for the capture, which is not resumed yet
    assert query.isActive
    assert got.rows == []
    instance.resume()
    assert query.awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(20))


def test_available_now_waits_for_a_transaction_that_takes_long_to_capture(
    spark: SparkSession, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    """For longer than `waitForServer`, as long as capture makes progress."""
    with Network(mariadb.port, 1) as way:
        source = source_of(mariadb).model_copy(update={"port": way.port})
        server, got = Server(ServerSettings.with_flight_only(InstanceSettings(source=source))), Collected()
        server.start()
        try:
            start, instance = end_of(mariadb), server.instances["default"]
            caught_up(server, mariadb)
            instance.pause()
            assert poll(lambda: instance.state is InstanceState.PAUSED)
            rows = ", ".join(f"({i}, REPEAT('x', 500000))" for i in range(10))
            execute(mariadb, f"INSERT INTO {table} VALUES {rows}")
            options = {"table": table, "startingPosition": str(start), "waitForServer": "2"}
            query = run(stream(spark, server, **options), got, tmp_path, drain=True)
            assert poll(lambda: bool(instance.store.states()), 60)  # the query waits
            way.delay_s = 0.15  # for each piece of 64 KiB
            instance.resume()
            began = time.monotonic()
            assert query.awaitTermination(120)
            assert time.monotonic() - began > 2
        finally:
            server.stop()
    assert [row["id"] for row in got.rows] == list(range(10))


def test_batches_are_bounded_by_rows_and_a_transaction_that_is_too_large_is_split(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    start = end_of(mariadb)
    with mariadb.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for transaction in range(10):
            for row in range(3):
                cursor.execute(f"INSERT INTO {table} VALUES ({transaction * 3 + row}, 'x')")
            connection.commit()
        for row in range(30, 130):  # 100 rows in one transaction: more than a batch takes
            cursor.execute(f"INSERT INTO {table} VALUES ({row}, 'x')")
        connection.commit()
    execute(mariadb, f"UPDATE {table} SET v = 'y' WHERE id < 4")  # eight images in one event
    caught_up(served, mariadb)
    got, limits = Collected(), {"maxRowsPerTrigger": "8", "maxBytesPerTrigger": "100000"}
    frame = stream(spark, served, table=table, startingPosition=str(start), **limits)
    query = run(frame, got, tmp_path / "one", drain=True)
    assert query.awaitTermination(200)
    assert [row["id"] for row in got.rows] == [*range(130), 0, 0, 1, 1, 2, 2, 3, 3]
    sizes = [batch.num_rows for batch in got.batches]
    assert max(sizes) <= 8
    assert sizes[:5] == [6] * 5  # two whole transactions each
    assert {row["_commit_version"] for row in got.rows[30:130]} == {got.rows[30]["_commit_version"]}
    assert {row["_gtid"] for row in got.rows[30:130]} == {got.rows[30]["_gtid"]}
    ends = [progress["sources"][0]["endOffset"] for progress in progress_of(query)]
    assert any("transaction" in end for end in ends)
    # A batch that began inside of the transaction is the same when it is read again from the log.
    inside = next(end for end in ends if "transaction" in end)
    served.instances["default"].ack(served.instances["default"].store.latest)
    rest = between(spark, served, table=table, startingPosition=json.dumps(inside), endingPosition=json.dumps(ends[-1]))
    offset = inside["offset"]
    expected = [(row["id"], row["_seq"], row["_row"]) for row in got.rows if row["_offset"] >= offset]
    read_rows = [(row.id, row._seq, row._row) for row in rest.orderBy("_seq", "_row").collect()]
    assert [row for row in read_rows if row[1] <= expected[-1][1]] == sorted(expected, key=lambda row: row[1:])


def test_a_batch_ends_at_whichever_of_two_limits_comes_first(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    start, small, large, most_bytes = end_of(mariadb), 20, 8, 100_000
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'x')" for i in range(small)))
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({small + i}, REPEAT('x', 30000))" for i in range(large)))
    caught_up(served, mariadb)
    got, limits = Collected(), {"maxRowsPerTrigger": "8", "maxBytesPerTrigger": str(most_bytes)}
    query = run(stream(spark, served, table=table, startingPosition=str(start), **limits), got, tmp_path, drain=True)
    assert query.awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(small + large))
    # Two times eight rows, then the rest of the small ones and what fits of the large ones, then what fits of these.
    assert [batch.num_rows for batch in got.batches] == [8, 8, 7, 3, 2]
    offsets = [start.offset, *(progress["sources"][0]["endOffset"]["offset"] for progress in progress_of(query))]
    assert max(np.diff(offsets)) <= most_bytes


def progress_of(query: Any) -> list[dict[str, Any]]:
    """Spark's own progress of the last batches, as people see it."""
    return [json.loads(progress.json) for progress in query.recentProgress]


@pytest.mark.parametrize("is_by_gtid", [True, False])
def test_a_query_begins_after_a_transaction_or_at_a_time(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path, is_by_gtid: bool
) -> None:
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'before')")
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@last_gtid, @@gtid_binlog_pos, UNIX_TIMESTAMP()")
        _, gtid, second = cursor.fetchone()
        if not is_by_gtid:
            poll(lambda: time.time() > second + 1.2)
    execute(mariadb, f"INSERT INTO {table} VALUES (2, 'after')")
    caught_up(served, mariadb)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(second) + 1))
    where = f"gtid:{gtid}" if is_by_gtid else f"time:{moment}"
    got = Collected()
    assert run(stream(spark, served, table=table, startingPosition=where), got, tmp_path, drain=True).awaitTermination(
        120
    )
    assert [row["id"] for row in got.rows] == [2]


def test_a_time_that_is_still_to_come_is_refused(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    """Until a query has a checkpoint: one that resumes does not ask for its start again."""
    later, words = datetime.now(UTC) + timedelta(hours=1), "is still to come .*Start the query then"
    future = f"time:{later:%Y-%m-%dT%H:%M:%SZ}"
    for mode in ({}, {"lowLatency": "true"}):
        frame = stream(spark, served, table=table, startingPosition=future, **mode)
        with pytest.raises(Exception, match=words):
            run(frame, Collected(), tmp_path / f"refused-{len(mode)}").awaitTermination(120)
    with pytest.raises(Exception, match=words):
        between(spark, served, table=table, startingPosition=future).collect()
    got, start = Collected(), str(end_of(mariadb))
    for number, begin in enumerate((start, future)):
        execute(mariadb, f"INSERT INTO {table} VALUES ({number}, 'x')")
        frame = stream(spark, served, table=table, startingPosition=begin)
        assert run(frame, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    assert [row["id"] for row in got.rows] == [0, 1]
    until_now = between(spark, served, table=table, startingPosition=start, endingPosition=future)
    assert sorted(row.id for row in until_now.collect()) == [0, 1]


def test_low_latency_reads_in_the_driver_and_resumes(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    got, options = Collected(), {"table": table, "startingPosition": str(end_of(mariadb)), "lowLatency": "true"}
    for low in (0, 5):
        execute(mariadb, *(f"INSERT INTO {table} VALUES ({low + i}, 'x')" for i in range(3)))
        query = run(stream(spark, served, **options), got, tmp_path)
        try:
            execute(mariadb, *(f"INSERT INTO {table} VALUES ({low + i}, 'x')" for i in range(3, 5)))
            assert poll(lambda low=low: len(got.rows) >= low + 5, 60)
        finally:
            query.stop()
    assert [row["id"] for row in got.rows] == list(range(10))
    # More than one batch takes, and no more after the end that the source has now.
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, REPEAT('x', 1000000))" for i in range(10, 16)))
    assert run(stream(spark, served, **options), got, tmp_path, drain=True).awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(16))
    assert got.batches[-1].num_rows < 6


def test_spark_shows_the_lag_behind_the_source(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    got = Collected()
    limits = {"startingPosition": str(end_of(mariadb)), "maxRowsPerTrigger": "1"}
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'x')" for i in range(4)))
    end = end_of(mariadb)
    query = run(stream(spark, served, table=table, **limits), got, tmp_path, drain=True)
    assert query.awaitTermination(120)
    first = progress_of(query)[0]["sources"][0]
    latest = first["latestOffset"]
    assert (latest["file"], latest["offset"]) == (end.file, end.offset)
    assert first["endOffset"]["offset"] < end.offset
    assert len(got.batches) == 4


def test_a_checkpoint_of_another_table_or_server_is_refused(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    other = f"{table}_2"
    execute(mariadb, f"CREATE TABLE {other} (id INT PRIMARY KEY)")
    frame = stream(spark, served, table=table, startingPosition=str(end_of(mariadb)))
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'x')", f"INSERT INTO {table} VALUES (2, 'x')")
    assert run(frame, Collected(), tmp_path, drain=True).awaitTermination(120)
    execute(mariadb, f"INSERT INTO {table} VALUES (3, 'x')")
    with pytest.raises(Exception, match=f"made for {table}, not for {other}"):
        run(stream(spark, served, table=other), Collected(), tmp_path, drain=True).awaitTermination(120)
    (newest,) = sorted((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))[-1:]
    lines = newest.read_text().splitlines()
    offset = json.loads(lines[-1])
    newest.write_text("\n".join([*lines[:-1], json.dumps(offset | {"log": "999-1"})]))
    with pytest.raises(Exception, match="the log of another server, or before the log was reset"):
        run(stream(spark, served, table=table), Collected(), tmp_path, drain=True).awaitTermination(120)


def test_an_idle_stream_makes_no_batches(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    """Neither a source at rest nor changes of other tables make a batch; more of these than a batch takes make one."""
    got, other = Collected(), f"{table}_2"
    execute(mariadb, f"CREATE TABLE {other} LIKE {table}")
    options = {"table": table, "startingPosition": str(end_of(mariadb)), "maxBytesPerTrigger": "500000"}
    query = run(stream(spark, served, **options), got, tmp_path)
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'x')")
    assert poll(lambda: len(got.rows) == 1, 60)
    before = len(got.batches)
    for number in range(60):
        execute(mariadb, f"INSERT INTO {other} VALUES ({number}, 'of no concern')")
        time.sleep(0.05)
    assert len(got.batches) == before
    execute(mariadb, f"INSERT INTO {table} VALUES (2, 'y')")
    assert poll(lambda: len(got.rows) == 2 or query.exception() is not None, 60), query.exception()
    execute(mariadb, f"INSERT INTO {other} VALUES (100, REPEAT('x', 600000))")
    assert poll(lambda: len(got.batches) == before + 2 or query.exception() is not None, 60), query.exception()
    assert got.batches[-1].num_rows == 0
    query.stop()


def test_a_checkpoint_of_another_filter_is_refused(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    start, wanted = str(end_of(mariadb)), {"filter": table.replace(".", "\\.")}
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'x')")
    caught_up(served, mariadb)
    got = Collected()
    assert run(stream(spark, served, startingPosition=start, **wanted), got, tmp_path, drain=True).awaitTermination(120)
    assert len(got.rows) == 1
    for other in ({"filter": ".*"}, {"table": table}):
        with pytest.raises(Exception, match=r"this checkpoint was made for .*a checkpoint of its own"):
            run(stream(spark, served, **other), got, tmp_path, drain=True).awaitTermination(120)
    after = between(
        spark, served, table=table, startingPosition=last_offset(tmp_path)
    )  # a position is good for any query
    assert after.collect() == []


def last_offset(checkpoint: Path) -> str:
    """Return the offset at which the last batch of a checkpoint ended."""
    last = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return last.read_text(encoding="utf-8").splitlines()[-1]


def test_options_of_the_other_kind_of_read_are_refused(
    spark: SparkSession, served: Server, table: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="endingPosition is for a batch, not for a stream"):
        run(stream(spark, served, table=table, endingPosition="latest"), Collected(), tmp_path).awaitTermination(120)
    with pytest.raises(Exception, match="maxRowsPerTrigger is for a stream, not for a batch"):
        between(spark, served, table=table, maxRowsPerTrigger="1").collect()


def test_the_statement_that_stops_a_query_is_named_among_others_of_its_table(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str
) -> None:
    """Others come before it, between it and the row, and after the row: all are captured when the row is read."""
    start, other = end_of(mariadb), f"{table}_2"
    frame = between(spark, served, table=table, startingPosition=str(start))
    execute(
        mariadb,
        f"ALTER TABLE {table} ADD COLUMN early INT",
        f"INSERT INTO {table} VALUES (1, 'a', 1)",
        f"ALTER TABLE {table} MODIFY id BIGINT",
        f"CREATE TABLE {other} (id INT PRIMARY KEY)",
        f"ALTER TABLE {table} ADD COLUMN late INT",
        f"INSERT INTO {table} VALUES (2, 'b', 2, 2)",
        f"ALTER TABLE {table} DROP COLUMN late",
        f"INSERT INTO {table} VALUES (3, 'c', 3)",
    )
    caught_up(served, mariadb)
    message = rf"column {table}\.id is int64 at .* It was altered at \S+ by: ALTER TABLE {table} MODIFY id BIGINT\. "
    with pytest.raises(Exception, match=message):
        frame.collect()


def test_all_tables_of_a_filter_are_rows_of_json_also_after_ddl(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    schema, other = table.partition(".")[0], f"{table}_2"
    start = end_of(mariadb)
    execute(
        mariadb,
        f"INSERT INTO {table} VALUES (1, 'x')",
        f"CREATE TABLE {other} (a INT, b VARCHAR(9), n DECIMAL(5,2), PRIMARY KEY (a, b)) DEFAULT CHARSET utf8mb4",
        f"INSERT INTO {other} VALUES (7, 'k', 1.50)",
        f"ALTER TABLE {table} DROP COLUMN v",
        f"UPDATE {table} SET id = 2",
        f"DELETE FROM {other}",
    )
    caught_up(served, mariadb)
    got, options = Collected(), {"filter": f"{schema}\\..*", "startingPosition": str(start)}
    frame = stream(spark, served, includeDdl="true", **options)
    assert frame.schema["_key"].dataType.simpleString() == "map<string,string>"
    assert run(frame, got, tmp_path, drain=True).awaitTermination(120)
    read_rows = [
        (row["_change_type"], row["_table"], dict(row["_key"] or {}), row["before"], row["after"]) for row in got.rows
    ]
    changes = [row for row in read_rows if row[0] != "ddl"]
    assert changes == [
        ("insert", table, {"id": "1"}, None, '{"id":1,"v":"x"}'),
        ("insert", other, {"a": "7", "b": "k"}, None, '{"a":7,"b":"k","n":"1.50"}'),
        ("update", table, {"id": "2"}, '{"id":1}', '{"id":2}'),
        ("delete", other, {"a": "7", "b": "k"}, '{"a":7,"b":"k","n":"1.50"}', None),
    ]
    assert [(row["_table"], row["ddl"].split(" (")[0]) for row in got.rows if row["_change_type"] == "ddl"] == [
        (other, f"CREATE TABLE {other}"),
        (table, f"ALTER TABLE {table} DROP COLUMN v"),
    ]
    without = between(spark, served, **options)
    assert "ddl" not in without.columns
    assert without.count() == 4


def test_a_query_lives_through_changes_of_its_table(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    """An added column is there after a restart, a dropped one is null, and another type stops the query with words."""
    start, got = end_of(mariadb), Collected()

    def drain() -> None:
        caught_up(served, mariadb)
        frame = stream(spark, served, table=table, startingPosition=str(start))
        assert run(frame, got, tmp_path, drain=True).awaitTermination(120)

    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'x')")
    drain()
    running = stream(spark, served, table=table, startingPosition=str(start))
    execute(mariadb, f"ALTER TABLE {table} ADD COLUMN n INT, DROP COLUMN v", f"INSERT INTO {table} VALUES (2, 7)")
    caught_up(served, mariadb)
    assert run(running, got, tmp_path, drain=True).awaitTermination(120)
    assert [(row["id"], row["v"]) for row in got.rows] == [(1, "x"), (2, None)]
    execute(mariadb, f"INSERT INTO {table} VALUES (3, 8)")
    drain()
    assert [(row["id"], row.get("n")) for row in got.rows] == [(1, None), (2, None), (3, 8)]
    assert "v" not in got.rows[-1]
    again = between(spark, served, table=table, startingPosition=str(start))
    assert [(row.id, row.n) for row in again.orderBy("_seq").collect()] == [(1, None), (2, 7), (3, 8)]
    running = stream(spark, served, table=table, startingPosition=str(start))
    execute(mariadb, f"ALTER TABLE {table} MODIFY n BIGINT", f"INSERT INTO {table} VALUES (4, 9000000000)")
    caught_up(served, mariadb)
    message = (
        rf"column {table}\.n is int64 at .*, but the reader was started with int32.* It was altered at \S+ by: ALTER"
        rf" TABLE {table} MODIFY n BIGINT\. Start the query again with its checkpoint"
    )
    with pytest.raises(Exception, match=message):
        run(running, got, tmp_path, drain=True).awaitTermination(120)
    drain()
    assert [(row["id"], row.get("n")) for row in got.rows][-1:] == [(4, 9000000000)]
    whole = between(spark, served, table=table, startingPosition=str(start))
    assert [row.n for row in whole.orderBy("_seq").collect()] == [None, 7, 8, 9000000000]
