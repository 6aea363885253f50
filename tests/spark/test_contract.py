"""What every supported pyspark must do with `format("penstock")`; `make compatibility` runs it on the others, too."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import Collected, caught_up, run, served, shop, stream
from tests.support.capture import execute, poll

__all__ = ["served", "shop"]


@pytest.mark.parametrize("mode", [{}, {"lowLatency": "true"}], ids=["partitions", "low latency"])
def test_a_stream_is_typed_and_resumes_from_its_checkpoint(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path, mode: dict[str, str]
) -> None:
    start = str(served.instances["default"].store.latest)
    options = {"table": f"{shop}.owner", "startingPosition": start, **mode}
    execute(mariadb, *(f"INSERT INTO {shop}.owner VALUES ({i}, 'first')" for i in range(3)))
    got = Collected()
    query = run(stream(spark, served, **options), got, tmp_path)
    assert poll(lambda: len(got.rows) == 3 or query.exception() is not None, 90), query.exception()
    execute(mariadb, f"UPDATE {shop}.owner SET name = 'second' WHERE id = 1")
    assert poll(lambda: len(got.rows) == 5 or query.exception() is not None, 90), query.exception()
    query.stop()
    execute(mariadb, f"DELETE FROM {shop}.owner WHERE id = 2", f"INSERT INTO {shop}.owner VALUES (7, 'last')")
    query = run(stream(spark, served, **options), got, tmp_path)
    assert poll(lambda: len(got.rows) == 7 or query.exception() is not None, 90), query.exception()
    query.stop()
    assert [(row["_change_type"], row["id"], row["name"]) for row in got.rows] == [
        *(("insert", i, "first") for i in range(3)),
        ("update_preimage", 1, "first"),
        ("update_postimage", 1, "second"),
        ("delete", 2, "first"),
        ("insert", 7, "last"),
    ]


@pytest.mark.parametrize("mode", [{}, {"lowLatency": "true"}], ids=["partitions", "low latency"])
def test_a_query_resumes_far_behind_its_start(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path, mode: dict[str, str]
) -> None:
    """Its last batch is committed, and more than a batch lies between its start and its checkpoint."""
    table, start = f"{shop}.owner", str(served.instances["default"].store.latest)
    options = {"table": table, "startingPosition": start, "maxRowsPerTrigger": "2", **mode}
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'x')" for i in range(10)))
    got = Collected()
    for count in (10, 13):
        query = run(stream(spark, served, **options), got, tmp_path)

        def is_over(query: Any = query, count: int = count) -> bool:
            return len(got.rows) >= count or query.exception() is not None

        assert poll(is_over, 90), query.exception()
        assert query.exception() is None
        last = max(int(path.name) for path in (tmp_path / "offsets").glob("[0-9]*"))
        assert poll(lambda last=last: (tmp_path / "commits" / str(last)).exists(), 90)
        query.stop()
        execute(mariadb, *(f"INSERT INTO {table} VALUES ({count + i}, 'y')" for i in range(3)))
    assert [row["id"] for row in got.rows] == list(range(13))


def test_available_now_ends_with_all_rows(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str, tmp_path: Path
) -> None:
    start = str(served.instances["default"].store.latest)
    execute(mariadb, *(f"INSERT INTO {shop}.owner VALUES ({i}, 'x')" for i in range(20)))
    caught_up(served, mariadb)
    got = Collected()
    query = run(stream(spark, served, table=f"{shop}.owner", startingPosition=start), got, tmp_path, drain=True)
    assert query.awaitTermination(120)
    assert [row["id"] for row in got.rows] == list(range(20))


def test_a_range_is_a_dataframe_of_changes_of_all_tables(
    spark: SparkSession, served: Server, mariadb: DatabaseServer, shop: str
) -> None:
    start = str(served.instances["default"].store.latest)
    execute(mariadb, f"INSERT INTO {shop}.owner VALUES (1, 'x')", f"UPDATE {shop}.owner SET name = 'y'")
    options = {"server": served.address, "filter": f"{shop}\\..*", "startingPosition": start}
    frame = spark.read.format("penstock").options(**options).load()
    rows = frame.orderBy("_seq").select("_change_type", "_key", "before", "after").collect()
    assert [tuple(row) for row in rows] == [
        ("insert", {"id": "1"}, None, '{"id":1,"name":"x"}'),
        ("update", {"id": "1"}, '{"id":1,"name":"x"}', '{"id":1,"name":"y"}'),
    ]


def test_a_misspelled_option_is_an_error(spark: SparkSession, served: Server) -> None:
    with pytest.raises(Exception, match="did you mean startingPosition"):
        spark.read.format("penstock").options(server=served.address, table="a.b", startPosition="latest").load()
