"""`startingPosition=snapshot`: a table, then its changes; what a query builds from them equals the source, strictly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from penstock.cli import app
from penstock.model import TableName
from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import run
from tests.support.capture import execute, poll
from tests.support.random_writers import create_table, select_rows, written
from tests.support.serve_process import ServeProcess
from tests.support.strict_mirror import StrictMirror, equals

_KINDS = ("integer", "text", "composite", "unicode", "decimal")
# Two runs in `make test`, and fifty in a campaign: ten on each server, two with each kind of key.
_CASES = [
    pytest.param("mariadb", "integer", 0),
    pytest.param("mysql80", "text", 0),
    *(
        pytest.param(server, _KINDS[seed % len(_KINDS)], seed, marks=pytest.mark.campaign)
        for server in ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
        for seed in range(1, 11)
    ),
]
NewDatabase = Callable[[Any], str]


def start(
    spark: SparkSession, server: ServeProcess, target: Any, checkpoint: Path, *, drain: bool = False, **options: Any
) -> Any:
    frame = spark.readStream.format("penstock").option("server", server.url).options(pollMs="100", **options).load()
    return run(frame, target, checkpoint, drain=drain)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("flavour", "kind", "seed"), _CASES)
def test_a_table_and_its_changes_equal_the_source_whatever_is_killed(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    database: NewDatabase,
    tmp_path: Path,
    flavour: str,
    kind: str,
    seed: int,
) -> None:
    source: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(source), "t")
    create_table(source, name, kind)
    # With a folder: the log of MySQL 5.7 has no names of columns, and what they were must survive the kill.
    server = ServeProcess(tmp_path, source, snapshot={"chunk_rows": 50}, data_dir=str(tmp_path / "data"))
    server.start()
    mirror, checkpoint = StrictMirror(), tmp_path / "checkpoint"
    options = {"table": str(name), "startingPosition": "snapshot", "maxRowsPerTrigger": "5000"}
    try:
        with written(source, name, kind, pause_s=0.005, seed=seed) as writers:
            assert poll(lambda: all(writer.commits > 20 for writer in writers))
            query = start(spark, server, mirror, checkpoint, **options)
            assert poll(lambda: mirror.snapshot_rows > 50 or query.exception() is not None, 60)
            server.kill()
            server.start()
            before = mirror.snapshot_rows
            assert poll(lambda: mirror.snapshot_rows > before or query.exception() is not None, 60)
            assert query.exception() is None, query.exception()
            query.stop()  # in the middle of whatever it does
            before = mirror.snapshot_rows
            query = start(spark, server, mirror, checkpoint, **options)
            assert poll(lambda: _is_complete(query) or query.exception() is not None, 90), query.lastProgress
            assert mirror.snapshot_rows > before, "the query was stopped when its snapshot was complete"
        equals(query, mirror, source, name)
        query.stop()
    finally:
        server.kill()


def _is_complete(query: Any) -> bool:
    """Return whether the last progress of a query has an offset without a snapshot, or one that is complete."""
    if query.lastProgress is None:
        return False
    offset = _end_offset(query)
    return all(state.get("complete") for state in offset.get("snapshot", {"": {}}).values()) or "snapshot" not in offset


def _end_offset(query: Any) -> dict[str, Any]:
    """Return where the last batch of a query ends, as its progress shows it."""
    offset = query.lastProgress["sources"][0]["endOffset"] or {}
    return json.loads(offset) if isinstance(offset, str) else offset


@pytest.fixture
def server(mariadb: DatabaseServer, tmp_path: Path) -> Any:
    process = ServeProcess(tmp_path, mariadb, snapshot={"chunk_rows": 100}, data_dir=str(tmp_path / "data"))
    process.start()
    yield process
    process.kill()


def test_a_table_is_added_to_a_query_and_one_is_read_again_while_its_stream_continues(
    spark: SparkSession, mariadb: DatabaseServer, server: ServeProcess, database: NewDatabase, tmp_path: Path
) -> None:
    schema = database(mariadb)
    first, second = TableName(schema, "a"), TableName(schema, "b")
    create_table(mariadb, first, "integer")
    create_table(mariadb, second, "text")
    mirror, checkpoint = StrictMirror("a"), tmp_path / "checkpoint"
    both = {"startingPosition": "snapshot", "maxRowsPerTrigger": "100"}
    query = start(spark, server, mirror, checkpoint, tables=str(first), **both)
    equals(query, mirror, mariadb, first)
    query.stop()
    execute(mariadb, f"INSERT INTO {first} VALUES (90001, 'later')", f"INSERT INTO {second} VALUES ('z1', 'later')")
    mirrors, before = [mirror, StrictMirror("b")], mirror.snapshot_rows

    def apply(batch: DataFrame, number: int) -> None:
        rows = batch.cache()
        for mirror in mirrors:
            mirror(rows, number)
        rows.unpersist()

    query = start(spark, server, apply, checkpoint, tables=f"{first},{second}", **both)
    execute(mariadb, f"UPDATE {first} SET name = 'changed' WHERE id < 10", f"DELETE FROM {second} WHERE id > 'k01100'")
    equals(query, mirrors[1], mariadb, second)
    equals(query, mirror, mariadb, first)
    assert mirror.snapshot_rows == before, "a table that was there is not read again"
    mirror.repeats = True
    mirror.rows.pop(100)  # damage
    assert "snapshots are paused" in snapshot_command(server, "pause")
    snapshot_command(server, "again", str(first))
    execute(mariadb, f"UPDATE {first} SET name = 'again' WHERE id < 50", f"INSERT INTO {first} VALUES (90002, 'x')")
    assert poll(lambda: 90002 in mirror.rows, 60), "changes are delivered while snapshots are paused"
    assert mirror.snapshot_rows == before
    server.kill()
    server.start()
    assert "snapshots are paused" in snapshot_command(server, "status"), "also after a restart"
    snapshot_command(server, "resume")
    again = len(select_rows(mariadb, first))
    assert poll(lambda: mirror.snapshot_rows >= before + again, 60), mirror.snapshot_rows
    equals(query, mirror, mariadb, first)
    report = json.loads(snapshot_command(server, "status", "--output", "json"))
    assert not report["paused"]
    assert report["tables"][str(first)]["state"] == "complete"
    assert f"{first}" in snapshot_command(server, "status")
    query.stop()


def snapshot_command(server: ServeProcess, *words: str) -> str:
    """Run `penstock snapshot …` for a server, and return what it prints."""
    result = CliRunner().invoke(app, ["snapshot", *words, "--server", f"127.0.0.1:{server.flight}"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_column_is_added_while_a_table_is_delivered(
    spark: SparkSession, mariadb: DatabaseServer, server: ServeProcess, database: NewDatabase, tmp_path: Path
) -> None:
    name = TableName(database(mariadb), "t")
    create_table(mariadb, name, "integer")
    mirror = StrictMirror()
    options = {"table": str(name), "startingPosition": "snapshot", "maxRowsPerTrigger": "100"}
    query = start(spark, server, mirror, tmp_path / "c", **options)
    assert poll(lambda: mirror.snapshot_rows >= 100 or query.exception() is not None, 60)
    execute(
        mariadb,
        f"UPDATE {name} SET name = 'before' WHERE id > 1000",
        f"ALTER TABLE {name} ADD COLUMN extra INT DEFAULT 5 AFTER id",
        f"UPDATE {name} SET name = 'after', id = id + 1 WHERE id > 1100",
    )
    wanted = {(number, text) for number, _, text in select_rows(mariadb, name)}
    assert poll(lambda: mirror.content == wanted or query.exception() is not None, 60)
    assert query.exception() is None, query.exception()
    query.stop()


@pytest.mark.parametrize("low_latency", ["false", "true"])
def test_available_now_delivers_a_table_and_stops(
    spark: SparkSession,
    mariadb: DatabaseServer,
    server: ServeProcess,
    database: NewDatabase,
    tmp_path: Path,
    low_latency: str,
) -> None:
    name = TableName(database(mariadb), "t")
    create_table(mariadb, name, "integer")
    mirror = StrictMirror()
    options = {"table": str(name), "startingPosition": "snapshot", "lowLatency": low_latency}
    for _ in range(2):
        query = start(spark, server, mirror, tmp_path / "c", drain=True, **options)
        assert query.awaitTermination(60)
        assert mirror.content == select_rows(mariadb, name)
        execute(mariadb, f"UPDATE {name} SET name = 'next' WHERE id < 20")
    assert mirror.snapshot_rows == 600


@pytest.mark.parametrize("low_latency", ["false", "true"])
def test_available_now_says_that_a_snapshot_is_incomplete_because_it_is_paused(
    spark: SparkSession,
    mariadb: DatabaseServer,
    server: ServeProcess,
    database: NewDatabase,
    tmp_path: Path,
    low_latency: str,
) -> None:
    name = TableName(database(mariadb), "t")
    create_table(mariadb, name, "integer")
    mirror = StrictMirror()
    options = {"table": str(name), "startingPosition": "snapshot", "lowLatency": low_latency}
    snapshot_command(server, "pause")
    for _ in range(2):  # also a run that finds nothing new
        query = start(spark, server, mirror, tmp_path / "c", drain=True, **options)
        assert query.awaitTermination(60)
        assert _end_offset(query)["snapshot"][str(name)]["paused"] is True
        assert not mirror.content
    snapshot_command(server, "resume")
    query = start(spark, server, mirror, tmp_path / "c", drain=True, **options)
    assert query.awaitTermination(60)
    assert mirror.content == select_rows(mariadb, name)
    assert "paused" not in _end_offset(query)["snapshot"][str(name)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "{schema}.nokey"}, "has no primary key"),
        ({"table": "{schema}.t", "columns": "name"}, "needs the columns of its key: id"),
    ],
)
def test_what_cannot_begin_with_a_snapshot_says_why(
    spark: SparkSession,
    mariadb: DatabaseServer,
    server: ServeProcess,
    database: NewDatabase,
    tmp_path: Path,
    options: dict[str, str],
    message: str,
) -> None:
    schema = database(mariadb)
    create_table(mariadb, TableName(schema, "t"), "integer")
    execute(mariadb, f"CREATE TABLE {schema}.nokey (id INT)")
    chosen = {name: text.format(schema=schema) for name, text in options.items()}
    query = start(spark, server, StrictMirror(), tmp_path / "c", startingPosition="snapshot", **chosen)
    with pytest.raises(StreamingQueryException, match=message):
        query.awaitTermination(60)
