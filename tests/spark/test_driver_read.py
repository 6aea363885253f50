"""Micro-batches that the driver reads by itself: the same rows as Spark's, also when a batch runs again."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.document import CHANGE_COLUMNS
from penstock.model import TableName
from penstock.server import Server
from penstock.spark.batch_range import read_batch_range
from penstock.spark.driver_read import DriverReader
from penstock.spark.options import ReadOptions
from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll, source_of

NAMES = [*CHANGE_COLUMNS, "_commit_timestamp"]


class Compared:
    """A foreachBatch target that reads each batch itself, and by Spark; a batch may be told to fail once."""

    def __init__(self, reader: DriverReader, checkpoint: Path) -> None:
        self._reader, self._checkpoint = reader, checkpoint
        self._lock = threading.Lock()
        self.batches: dict[int, list[tuple[pa.Table, pa.Table]]] = {}  # by number, each time that it ran
        self.fails_next = False

    def __call__(self, frame: DataFrame, number: int) -> None:
        bounds = read_batch_range(self._checkpoint, number)
        if bounds is None:
            assert number == 0
            return
        own, by_spark = self._reader.read_range(*bounds, None), frame.select(*NAMES).toArrow()
        with self._lock:
            self.batches.setdefault(number, []).append((own.select(NAMES), by_spark))
            fails, self.fails_next = self.fails_next, False
        if fails:
            raise RuntimeError("as told")

    @property
    def rows(self) -> int:
        with self._lock:
            return sum(runs[-1][0].num_rows for runs in self.batches.values())


@pytest.fixture
def served(mariadb: DatabaseServer) -> Iterator[Server]:
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    server.start()
    yield server
    server.stop()


def test_the_driver_reads_the_rows_that_spark_brings_also_when_a_batch_runs_again(
    spark: SparkSession,
    served: Server,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    name, checkpoint = database(mariadb), tmp_path / "checkpoint"
    start = served.instances["default"].store.latest
    options = {"server": served.address, "filter": f"{name}\\..*", "includeDdl": "true", "startingPosition": str(start)}
    compared = Compared(DriverReader(ReadOptions.of(options)), checkpoint)

    def run() -> Any:
        writer = spark.readStream.format("penstock").options(**options).load().writeStream
        writer = writer.foreachBatch(compared).option("checkpointLocation", str(checkpoint))
        return writer.trigger(processingTime="0 seconds").start()

    def change(*statements: str) -> None:
        execute(mariadb, *statements)
        assert poll(lambda: query.exception() is None and query.lastProgress is not None and compared.rows >= expected)

    execute(mariadb, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, name VARCHAR(20), stock INT)")
    query, expected = run(), 0
    change(f"INSERT INTO {name}.item VALUES (0, 'first', 0)")  # it may be in the first batch, whose range nobody knows
    expected = 3
    change(f"INSERT INTO {name}.item VALUES (1, 'ä', 1), (2, NULL, 2), (3, 'c', 3)")
    expected = 7
    change(
        f"UPDATE {name}.item SET stock = stock + 1 WHERE id < 3 AND id > 0",
        f"ALTER TABLE {name}.item ADD COLUMN note TEXT",
        f"DELETE FROM {name}.item WHERE id = 3",
    )
    compared.fails_next = True
    execute(mariadb, f"INSERT INTO {name}.item VALUES (4, 'd', 4, 'n')")
    assert poll(lambda: query.exception() is not None)
    execute(mariadb, f"UPDATE {name}.item SET note = 'later' WHERE id = 4")
    query, expected = run(), 9
    change()
    query.stop()

    (again,) = [runs for runs in compared.batches.values() if len(runs) > 1]
    assert again[0][0] == again[1][0]
    for runs in compared.batches.values():
        for own, by_spark in runs:
            assert own.num_rows > 0
            assert own.to_pylist() == by_spark.to_pylist()
    assert any("ddl" in own.column("_change_type").to_pylist() for runs in compared.batches.values() for own, _ in runs)


def test_images_have_the_columns_that_are_asked_for_and_the_changes_of_those(
    served: Server, mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, name VARCHAR(20), stock INT, photo BLOB)")
    execute(mariadb, f"CREATE TABLE {name}.owner (id INT PRIMARY KEY, name VARCHAR(20))")
    reader = DriverReader(ReadOptions.of({"server": served.address, "filter": f"{name}\\..*"}))
    start = served.instances["default"].store.latest
    execute(
        mariadb,
        f"INSERT INTO {name}.item VALUES (1, 'a', 1, 'xx')",
        f"UPDATE {name}.item SET stock = 2",
        f"UPDATE {name}.item SET stock = 3, name = 'b'",
        f"INSERT INTO {name}.owner VALUES (7, 'ann')",
    )
    assert poll(lambda: served.instances["default"].store.latest > start and _has_rows(reader, start, served, 4))
    end = served.instances["default"].store.latest
    used = {TableName(name, "item"): frozenset({"id", "name"})}
    rows = reader.read_range(start, end, used).to_pylist()
    images = [[None if row[side] is None else orjson.loads(row[side]) for side in ("before", "after")] for row in rows]
    assert images == [
        [None, {"id": 1, "name": "a"}],
        [{"id": 1, "name": "a"}, {"id": 1, "name": "a"}],
        [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}],
        [None, {"id": 7, "name": "ann"}],
    ]
    assert [row["_changed"] for row in rows[1:3]] == [[], ["name"]]
    whole = reader.read_range(start, end, None).to_pylist()
    assert [row["_changed"] for row in whole[1:3]] == [["stock"], ["name", "stock"]]
    assert [row["_seq"] for row in whole] == [row["_seq"] for row in rows]


def _has_rows(reader: DriverReader, start: Any, served: Server, count: int) -> bool:
    return reader.read_range(start, served.instances["default"].store.latest, None).num_rows == count
