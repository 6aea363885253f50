"""`format("penstock")` on a real Spark: found by name, typed, restartable, exact."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ByteSize
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.binlog.rows.changes import decode_changes
from penstock.client import FlightClient
from penstock.config import InstanceSettings, ServerSettings, StoreSettings
from penstock.model import Position, TableName
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.capture import execute, is_purged, poll, source_of


class Collected:
    """A foreachBatch target that keeps what it got: a batch that is redelivered, after a stop in between, counts
    once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[int, pa.Table] = {}  # by the number that Spark gives them

    def __call__(self, batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        with self._lock:
            self._batches[number] = table

    @property
    def batches(self) -> list[pa.Table]:
        with self._lock:
            return list(self._batches.values())

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for table in self.batches for row in table.to_pylist()]


@pytest.fixture
def served(mariadb: DatabaseServer) -> Iterator[Server]:
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def shop(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {name}.item (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2),"
        " at DATETIME(3), kind ENUM('a','b')) DEFAULT CHARSET utf8mb4",
        f"CREATE TABLE {name}.owner (id INT PRIMARY KEY, name VARCHAR(20)) DEFAULT CHARSET utf8mb4",
    )
    return name


def stream(spark: SparkSession, served: Server, **options: str) -> DataFrame:
    return spark.readStream.format("penstock").option("server", served.address).options(**options).load()


def run(frame: DataFrame, target: Any, checkpoint: Path, *, drain: bool = False) -> Any:
    writer = frame.writeStream.foreachBatch(target).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(availableNow=True) if drain else writer.trigger(processingTime="0 seconds")).start()


def caught_up(served: Server, mariadb: DatabaseServer) -> None:
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
    assert poll(lambda: served.instances["default"].store.latest >= Position(file, int(offset)))


def test_one_table_is_a_typed_stream(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    start = served.instances["default"].store.latest
    frame = stream(spark, served, table=f"{shop}.item", startingPosition=str(start))
    assert dict(frame.dtypes) == {
        "id": "decimal(20,0)",
        "name": "string",
        "price": "decimal(8,2)",
        "at": "timestamp_ntz",
        "kind": "string",
        "_change_type": "string",
        "_commit_version": "bigint",
        "_commit_timestamp": "timestamp",
        "_seq": "bigint",
        "_row": "bigint",
        "_gtid": "string",
        "_file": "string",
        "_offset": "bigint",
        "_changed": "array<string>",
        "_absent": "array<string>",
        "_partial": "array<struct<column:string,op:string,path:string,value:string>>",
    }
    got = Collected()
    query = run(frame, got, tmp_path / "checkpoint")
    execute(
        mariadb,
        f"INSERT INTO {shop}.item VALUES (18446744073709551615, 'lämp', 1.50, '2024-02-29 01:02:03.456', 'b')",
        f"UPDATE {shop}.item SET price = 2.50",
        f"DELETE FROM {shop}.item",
    )
    assert poll(lambda: len(got.rows) >= 4 or query.exception() is not None, 60)
    query.stop()
    assert [(row["_change_type"], str(row["id"]), row["name"], str(row["price"])) for row in got.rows] == [
        ("insert", "18446744073709551615", "lämp", "1.50"),
        ("update_preimage", "18446744073709551615", "lämp", "1.50"),
        ("update_postimage", "18446744073709551615", "lämp", "2.50"),
        ("delete", "18446744073709551615", "lämp", "2.50"),
    ]


def test_several_tables_are_structs_in_one_order(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    start = served.instances["default"].store.latest
    for i in range(10):
        execute(mariadb, f"INSERT INTO {shop}.owner VALUES ({i}, 'o')", f"INSERT INTO {shop}.item (id) VALUES ({i})")
    caught_up(served, mariadb)
    options = {
        "tables": f"{shop}.item,{shop}.owner",
        "columns": "item.id,owner.id,owner.name",
        "startingPosition": str(start),
    }
    got = Collected()
    assert run(stream(spark, served, **options), got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    assert [row["_table"] for row in got.rows] == [f"{shop}.owner", f"{shop}.item"] * 10
    assert [row["owner"] for row in got.rows[:2]] == [{"id": 0, "name": "o"}, None]
    assert [row["_seq"] for row in got.rows] == sorted(row["_seq"] for row in got.rows)


def test_a_restart_neither_loses_nor_repeats(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    frame = stream(spark, served, table=f"{shop}.owner", startingPosition=str(served.instances["default"].store.latest))
    got = Collected()
    for part in range(4):
        execute(mariadb, *(f"INSERT INTO {shop}.owner VALUES ({part * 10 + i}, 'x')" for i in range(10)))
        caught_up(served, mariadb)
        assert run(frame, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(40))


def test_a_failed_batch_is_read_again_even_from_a_new_server(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    """The server's memory is gone and its store begins later: the batch comes from the source's own log."""
    start = served.instances["default"].store.latest
    execute(mariadb, *(f"INSERT INTO {shop}.owner VALUES ({i}, 'x')" for i in range(10)))
    caught_up(served, mariadb)

    def fail(batch: DataFrame, number: int) -> None:
        raise ValueError("the sink is down")

    frame = stream(spark, served, table=f"{shop}.owner", startingPosition=str(start))
    query = run(frame, fail, tmp_path / "checkpoint", drain=True)
    with pytest.raises(Exception, match="the sink is down"):
        query.awaitTermination(120)
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (10, 'x')")
    other = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    other.start()
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (11, 'x')")
    caught_up(other, mariadb)
    got = Collected()
    again = stream(spark, other, table=f"{shop}.owner", startingPosition=str(start))
    assert run(again, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    other.stop()
    assert [row["id"] for row in got.rows] == list(range(12))


@pytest.mark.mariadb
def test_a_planned_batch_is_kept_for_its_query_while_others_continue(
    spark: SparkSession, private_server: Callable[..., DatabaseServer], tmp_path: Path
) -> None:
    """The source has purged its log, and another query has committed everything: the store still has the batch."""
    source = private_server("mariadb")
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.owner (id INT PRIMARY KEY)")
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(source))))
    server.start()
    try:
        store = server.instances["default"].store
        options = {"table": "shop.owner", "startingPosition": str(store.latest), "pollMs": "100"}
        frame, other, got = stream(spark, server, **options), Collected(), Collected()

        def fail_later(batch: DataFrame, number: int) -> None:
            if got.rows:
                raise ValueError("the sink is down")
            got(batch, number)

        failing = run(frame, fail_later, tmp_path / "failed")
        execute(source, "INSERT INTO shop.owner VALUES (0)")
        assert poll(lambda: len(got.rows) == 1, 60), failing.exception()
        execute(source, *(f"INSERT INTO shop.owner VALUES ({i})" for i in range(1, 5)))
        with pytest.raises(StreamingQueryException, match="the sink is down"):
            failing.awaitTermination(120)
        query = run(frame, other, tmp_path / "other")
        execute(source, "FLUSH BINARY LOGS", *(f"INSERT INTO shop.owner VALUES ({i})" for i in range(5, 10)))
        assert poll(lambda: len(other.rows) == 10, 60), query.exception()
        execute(source, "INSERT INTO shop.owner VALUES (10)")  # with which Spark commits what came before
        assert poll(lambda: len(other.rows) == 11, 60), query.exception()
        assert poll(lambda: is_purged(source))
        again = run(frame, got, tmp_path / "failed")
        assert poll(lambda: len(got.rows) >= 11 or again.exception() is not None, 60)
        assert again.exception() is None, str(again.exception())[:2000]
        again.stop()
        query.stop()
        assert [row["id"] for row in got.rows] == list(range(11))
        assert {row["_seq"] for row in got.rows} == {row["_seq"] for row in other.rows}
    finally:
        server.stop()


def test_batches_are_bounded_and_end_between_transactions(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    start = served.instances["default"].store.latest
    with mariadb.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for transaction in range(30):
            for row in range(3):
                cursor.execute(f"INSERT INTO {shop}.owner VALUES (%s, %s)", (transaction * 3 + row, "y" * 20))
            connection.commit()
    caught_up(served, mariadb)
    got = Collected()
    frame = stream(spark, served, table=f"{shop}.owner", startingPosition=str(start), maxBytesPerTrigger="2000")
    assert run(frame, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(90))
    assert len(got.batches) > 3
    assert all(table.num_rows % 3 == 0 for table in got.batches)


def test_a_transaction_larger_than_the_ring_passes_through(
    spark: SparkSession, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    """Spark acknowledges a batch only with the next one; a ring that waited for that would wait for ever."""
    instance = InstanceSettings(source=source_of(mariadb), store=StoreSettings(memory=ByteSize(1 << 20)))
    server = Server(ServerSettings.with_flight_only(instance))
    server.start()
    execute(mariadb, f"ALTER TABLE {shop}.owner MODIFY name LONGTEXT")
    caught_up(server, mariadb)
    got = Collected()
    start = str(server.instances["default"].store.latest)
    query = run(stream(spark, server, table=f"{shop}.owner", startingPosition=start), got, tmp_path / "checkpoint")
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (0, 'small')")
    assert poll(lambda: len(got.rows) == 1, 60)
    rows = ", ".join(f"({i}, REPEAT('x', 500000))" for i in range(1, 11))
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES {rows}", f"INSERT INTO {shop}.owner VALUES (11, 'small')")
    assert poll(lambda: len(got.rows) == 12 or query.exception() is not None, 60)
    query.stop()
    server.stop()
    assert [row["id"] for row in got.rows] == list(range(12))


def test_parts_of_a_range_are_whole_transactions(served: Server, mariadb: DatabaseServer, shop: str) -> None:
    """Each part gives the same rows from the store and, when the store has let go, from the log."""
    execute(mariadb, f"ALTER TABLE {shop}.owner MODIFY name LONGTEXT")
    caught_up(served, mariadb)
    store = served.instances["default"].store
    start, table = store.latest, TableName.parse(f"{shop}.owner")
    for first in (0, 100, 200):
        rows = ", ".join(f"({first + i}, REPEAT('x', 200000))" for i in range(50))
        execute(mariadb, f"INSERT INTO {shop}.owner VALUES {rows}")
    caught_up(served, mariadb)

    def read(tickets: list[bytes]) -> list[list[tuple[Any, ...]]]:
        fields = pa.schema([("id", pa.int32())])
        return [
            [
                tuple(row.values())
                for block in client.read_part(ticket)
                for batch in decode_changes(block, table, fields)
                for row in batch.to_pylist()
            ]
            for ticket in tickets
        ]

    with closing(FlightClient(served.address)) as client:
        tickets = client.plan_parts([table], start, store.latest)
        assert len(tickets) == 3
        from_store = read(tickets)
        client.ack(store.latest)
        assert store.first > start
        assert read(tickets) == from_store
    assert [len(part) for part in from_store] == [50, 50, 50]


def test_transactions_that_came_one_by_one_are_read_in_few_blocks(
    served: Server, mariadb: DatabaseServer, shop: str
) -> None:
    """Each block costs a message and a decoding. Rows from before and after an ALTER TABLE may be in one block."""
    caught_up(served, mariadb)
    store = served.instances["default"].store
    start, table = store.latest, TableName.parse(f"{shop}.owner")
    for i in range(30):
        if i == 20:
            execute(mariadb, f"ALTER TABLE {shop}.owner DROP COLUMN name")
        values = f"({i}, 'o')" if i < 20 else f"({i})"
        execute(mariadb, f"INSERT INTO {shop}.owner VALUES {values}")
        caught_up(served, mariadb)
    assert len(store.read(start, store.latest) or ()) > 20
    with closing(FlightClient(served.address)) as client:
        blocks = [
            block for ticket in client.plan_parts([table], start, store.latest) for block in client.read_part(ticket)
        ]
    assert len(blocks) == 1
    fields = pa.schema([("id", pa.int32()), ("name", pa.string())])
    batches = [batch for block in blocks for batch in decode_changes(block, table, fields)]
    assert [number for batch in batches for number in batch["id"].to_pylist()] == list(range(30))
    assert {name for batch in batches for name in batch["name"].to_pylist()} == {"o", None}


def test_earliest_reads_what_the_source_still_has(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (1, 'x')", "FLUSH BINARY LOGS", f"DELETE FROM {shop}.owner")
    caught_up(served, mariadb)
    got = Collected()
    frame = stream(spark, served, table=f"{shop}.owner", startingPosition="earliest")
    assert run(frame, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
    assert [row["_change_type"] for row in got.rows] == ["insert", "delete"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "shop"}, "database.table"),
        ({"tabel": "shop.item", "table": "shop.item"}, "unknown option tabel"),
        ({}, "one of the options `table`, `tables` and `filter`"),
        ({"table": "no.such_table"}, "no table no.such_table"),
        ({"table": "mysql.user", "columns": "nonsense"}, "no column nonsense"),
        ({"table": "a.b", "startingPosition": "yesterday"}, "earliest and latest"),
        ({"table": "a.b", "maxBytesPerTrigger": "-1"}, "positive"),
        ({"table": "a.b", "destination": "elsewhere"}, "no destination 'elsewhere'"),
    ],
)
def test_a_wrong_option_is_explained(
    spark: SparkSession, served: Server, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        stream(spark, served, **options)


def test_a_table_that_is_dropped_or_has_no_key_is_read_to_its_end(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    """A key is only needed by whoever merges; what was written before a DROP is still in the log."""
    table, start = f"{shop}.keyless", served.instances["default"].store.latest
    execute(mariadb, f"CREATE TABLE {table} (id INT, v INT)", f"INSERT INTO {table} VALUES (1, 1), (1, 1)")
    frame, got = stream(spark, served, table=table, startingPosition=str(start)), Collected()
    execute(mariadb, f"DELETE FROM {table} LIMIT 1", f"DROP TABLE {table}")
    caught_up(served, mariadb)
    assert run(frame, got, tmp_path, drain=True).awaitTermination(120)
    assert [row["_change_type"] for row in got.rows] == ["insert", "insert", "delete"]
    with pytest.raises(Exception, match=f"there is no table {table}"):
        stream(spark, served, table=table)


def test_no_server_is_explained(spark: SparkSession) -> None:
    frame = spark.readStream.format("penstock").options(server="127.0.0.1:1", table="a.b", waitForServer="0")
    with pytest.raises(Exception, match=r"no Penstock server answers at 127\.0\.0\.1:1"):
        frame.load()


def test_the_first_batch_of_a_query_that_begins_now_is_empty(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    """Spark asks again where a query begins until its first batch is done: what came since then must not be left
    out."""
    seen = Collected()
    frame = stream(spark, served, table=f"{shop}.owner")

    def fails(batch: DataFrame, number: int) -> None:
        execute(mariadb, f"INSERT INTO {shop}.owner VALUES (1, 'meanwhile')")
        seen(batch, number)
        raise RuntimeError("the first batch fails")

    with pytest.raises(StreamingQueryException):
        run(frame, fails, tmp_path).awaitTermination(120)
    assert seen.rows == []
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (2, 'before')")
    caught_up(served, mariadb)
    query = run(frame, seen, tmp_path)
    try:
        assert poll(lambda: len(seen.rows) == 2, 90)
        execute(mariadb, f"INSERT INTO {shop}.owner VALUES (3, 'after')")
        assert poll(lambda: len(seen.rows) >= 3, 90)
    finally:
        query.stop()
    assert [row["id"] for row in seen.rows] == [1, 2, 3]


def test_a_token_lets_a_query_in(spark: SparkSession, mariadb: DatabaseServer, shop: str, tmp_path: Path) -> None:
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb)))
    flight = settings.flight.model_validate({"port": 0, "tokens": {"lake": "s3cret"}})
    server, seen = Server(settings.model_copy(update={"flight": flight})), Collected()
    server.start()
    try:
        with pytest.raises(AnalysisException, match="this server wants a token"):
            stream(spark, server, table=f"{shop}.owner")
        with pytest.raises(AnalysisException, match="token") as refused:
            stream(spark, server, table=f"{shop}.owner", token="wr0ng")
        assert "wr0ng" not in str(refused.value)
        query = run(stream(spark, server, table=f"{shop}.owner", token="s3cret"), seen, tmp_path)
        try:
            assert poll(lambda: query.lastProgress is not None, 90)
            execute(mariadb, f"INSERT INTO {shop}.owner VALUES (1, 'a')")
            assert poll(lambda: len(seen.rows) == 1, 90)
        finally:
            query.stop()
    finally:
        server.stop()
