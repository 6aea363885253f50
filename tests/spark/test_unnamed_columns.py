"""A log that does not name its columns, and tables whose DDL is not known: a query with a filter gets their rows."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.config import FilterSettings, InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_embedded import nameless as nameless  # noqa: PLC0414 - a fixture
from tests.spark.test_stream_source import Collected, run, stream
from tests.support.capture import end_of, execute, source_of

UNKNOWN = "what the tables were at .* is not known"


@pytest.fixture
def name(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> Iterator[str]:
    yield database(mariadb)
    execute(mariadb, "FLUSH BINARY LOGS")


def serve(mariadb: DatabaseServer, **rules: object) -> Server:
    settings = FilterSettings.model_validate(rules)
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb), filter=settings)))
    server.start()
    return server


@pytest.mark.usefixtures("nameless")
def test_rows_of_tables_that_are_not_known_are_delivered_with_the_names_there_are(
    spark: SparkSession, mariadb: DatabaseServer, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server was started after the DDL, which it has never seen."""
    start = end_of(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {name}.same (id INT UNSIGNED PRIMARY KEY, v VARCHAR(10)) DEFAULT CHARSET utf8mb4",
        f"CREATE TABLE {name}.altered (id INT PRIMARY KEY, v VARCHAR(10)) DEFAULT CHARSET utf8mb4",
        f"CREATE TABLE {name}.dropped (id INT PRIMARY KEY, n BIGINT)",
        f"INSERT INTO {name}.same VALUES (4000000000, 'ä')",
        f"INSERT INTO {name}.altered VALUES (2, 'b')",
        f"INSERT INTO {name}.dropped VALUES (3, 4)",
        f"ALTER TABLE {name}.altered ADD COLUMN n INT FIRST",
        f"INSERT INTO {name}.altered VALUES (1, 5, 'c')",
        f"DROP TABLE {name}.dropped",
    )
    options = {"filter": rf"{name}\..*", "startingPosition": str(start)}
    server, got = serve(mariadb), Collected()
    try:
        with caplog.at_level(logging.WARNING):
            frame = stream(spark, server, **options)
            assert run(frame, got, tmp_path / "checkpoint", drain=True).awaitTermination(120)
        assert [(row["_table"].partition(".")[2], json.loads(row["after"])) for row in got.rows] == [
            ("same", {"id": 4000000000, "v": "ä"}),
            ("altered", {"@1": 2, "@2": "Yg=="}),  # base64: its charset is not known either
            ("dropped", {"@1": 3, "@2": 4}),
            ("altered", {"n": 1, "id": 5, "v": "c"}),
        ]
        for table in ("same", "altered", "dropped"):
            said = f"rows delivered with substitute names destination=default table={name}.{table}"
            assert said in caplog.text
        typed = stream(spark, server, table=f"{name}.same", startingPosition=str(start))
        with pytest.raises(Exception, match=UNKNOWN):  # whoever reads columns by name must be sure of them
            run(typed, Collected(), tmp_path / "typed", drain=True).awaitTermination(120)
    finally:
        server.stop()
    server = serve(mariadb, columns=[{"table": rf"{name}\.altered", "drop": ["v"]}])
    try:
        frame = stream(spark, server, **options)
        with pytest.raises(Exception, match=UNKNOWN):  # it would show what the settings leave out
            run(frame, Collected(), tmp_path / "secret", drain=True).awaitTermination(120)
    finally:
        server.stop()
