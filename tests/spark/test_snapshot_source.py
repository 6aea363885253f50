"""`format("penstock_snapshot")`: a table as a DataFrame, in chunks, on every server."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute

_SERVERS = ["mariadb", "mysql57", "mysql80", "mysql9", "mariadb11"]
_ROWS = 4000
NewDatabase = Callable[[Any], str]


@pytest.fixture(params=_SERVERS)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def options_of(server: DatabaseServer, table: str, **changes: str) -> dict[str, str]:
    source = {"host": server.host, "port": str(server.port), "user": server.user, "password": server.password}
    return {**source, "table": table, **changes}


def _fill(server: DatabaseServer, schema: str) -> str:
    values = ", ".join(f"({i}, 'row {i}', {i} / 4, '2024-02-29 12:00:00.{i % 1000:03}')" for i in range(_ROWS))
    execute(
        server,
        f"CREATE TABLE {schema}.t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2),"
        " made DATETIME(3))",
        f"INSERT INTO {schema}.t VALUES {values}",
        f"ANALYZE TABLE {schema}.t",
    )
    return f"{schema}.t"


def test_a_table_is_a_dataframe_in_parts(spark: SparkSession, server: DatabaseServer, database: NewDatabase) -> None:
    table = _fill(server, database(server))
    options = options_of(server, table, chunkRows="500", includePosition="true")
    frame = spark.read.format("penstock_snapshot").options(**options).load()
    types = dict(frame.dtypes)
    assert types == {
        "id": "decimal(20,0)", "name": "string", "price": "decimal(10,2)", "made": "timestamp_ntz",
        "_low_file": "string", "_low_offset": "bigint", "_high_file": "string", "_high_offset": "bigint",
    }  # fmt: skip
    assert frame.rdd.getNumPartitions() > 4
    assert frame.count() == _ROWS
    row = frame.agg(f.countDistinct("id"), f.sum("price"), f.min("name"), f.max("made").cast("string")).first()
    assert row is not None
    assert [str(value) for value in row] == [
        str(_ROWS), f"{sum(i / 4 for i in range(_ROWS)):.2f}", "row 0", "2024-02-29 12:00:00.999",
    ]  # fmt: skip
    end = end_of(server)
    assert {tuple(row) for row in frame.select("_low_file", "_low_offset").distinct().collect()} == {
        (end.file, end.offset)
    }


def test_connections_and_columns_can_be_limited(
    spark: SparkSession, mariadb: DatabaseServer, database: NewDatabase
) -> None:
    table = _fill(mariadb, database(mariadb))
    options = options_of(mariadb, table, chunkRows="500", maxConnections="2", columns="name", maxRowsPerSecond="100000")
    frame = spark.read.format("penstock_snapshot").options(**options).load()
    assert frame.columns == ["name"]
    assert frame.rdd.getNumPartitions() == 2
    assert frame.distinct().count() == _ROWS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tabel": "x"}, "did you mean table"),
        ({"table": "nothing.there"}, "there is no table nothing.there"),
        ({"table": ""}, "the option `table` is missing"),
        ({"password": "wrong"}, "refused user"),
        ({"columns": "id,nam"}, "has no column nam"),
        ({"chunkRows": "0"}, "must be a positive whole number"),
        ({"dates": "never"}, "is one of null, error, text"),
        ({"tlsCa": "/ca.pem"}, "goes with tls verify-ca"),
    ],
)
def test_bad_options_are_refused_with_words(
    spark: SparkSession, mariadb: DatabaseServer, database: NewDatabase, changes: dict[str, str], words: str
) -> None:
    table = _fill(mariadb, database(mariadb)) if "columns" in changes else "mysql.innodb_table_stats"
    options = {**options_of(mariadb, table), **changes}
    with pytest.raises(Exception, match=words) as raised:
        spark.read.format("penstock_snapshot").options(**options).load().count()
    assert "wrong" not in str(raised.value)
