"""`startingPosition=snapshot` while others write at the worst moments: at every seam of every chunk, with commits that
are in the log before they can be seen, and with a source that fails over in the middle."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.model import TableName
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import run, stream
from tests.support.capture import execute, poll, source_of
from tests.support.chunk_seams import SEAMS, SeamWriter, watch_seams
from tests.support.following import QUICK
from tests.support.held_commits import HeldCommits
from tests.support.micro_batches import serving
from tests.support.random_writers import create_table, written
from tests.support.replication import has, pair
from tests.support.strict_mirror import StrictMirror, equals

NewDatabase = Callable[[Any], str]
_SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_OPTIONS = {"startingPosition": "snapshot", "maxRowsPerTrigger": "100", "pollMs": "100"}


_SEEDED = [
    pytest.param(server, seed, marks=[] if seed == 0 and server == "mariadb" else [pytest.mark.campaign])
    for server in _SERVERS
    for seed in range(4)
]
# Their short forms are without a JVM: tests/integration/test_snapshot_then_stream.py.
_EACH = [pytest.param(server, marks=pytest.mark.campaign) for server in _SERVERS]


def _wait_complete(server: Server, query: Any, name: TableName) -> None:
    """Wait until the server has read all of a table."""
    snapshots = server.instances["default"].snapshots

    def is_complete() -> bool:
        return snapshots.progress().get(str(name), {}).get("state") == "complete"

    assert poll(lambda: is_complete() or query.exception() is not None, 120), snapshots.progress()
    assert query.exception() is None, query.exception()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("flavour", "seed"), _SEEDED)
def test_changes_at_every_seam_of_every_chunk(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    database: NewDatabase,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flavour: str,
    seed: int,
) -> None:
    source: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(source), "t")
    create_table(source, name, "integer")
    mirror, writer = StrictMirror(), SeamWriter(source, name, seed)
    watch_seams(monkeypatch, writer)
    with serving(source) as server:
        query = run(stream(spark, server, table=str(name), **_OPTIONS), mirror, tmp_path)
        _wait_complete(server, query, name)
        writer.finish()
        equals(query, mirror, source, name)
        query.stop()
    assert min(writer.used[seam] for seam in SEAMS) >= 5, writer.used
    assert mirror.snapshot_rows > 300


@pytest.mark.timeout(240)
@pytest.mark.parametrize("flavour", _EACH)
def test_commits_that_are_in_the_log_and_cannot_be_seen_yet(
    spark: SparkSession,
    private_server: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flavour: str,
) -> None:
    source = private_server(flavour)
    name = TableName("d", "t")
    execute(source, "CREATE DATABASE d")
    create_table(source, name, "integer")
    mirror, held = StrictMirror(), HeldCommits(source, name, monkeypatch)
    try:
        with serving(source) as server:
            query = run(stream(spark, server, table=str(name), **_OPTIONS), mirror, tmp_path)
            _wait_complete(server, query, name)
            held.release()
            equals(query, mirror, source, name)
            query.stop()
    finally:
        held.release()
    assert held.traps >= 4, "commits were held back too rarely"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("flavour", _EACH)
def test_a_source_fails_over_in_the_middle_of_a_snapshot(
    spark: SparkSession,
    private_server: Callable[..., Any],
    tmp_path: Path,
    flavour: str,
) -> None:
    first, second = pair(private_server, flavour)
    name = TableName("replicated", "t")
    create_table(first, name, "integer")
    mirror = StrictMirror()
    changes = {
        "source": source_of(first, heartbeat_s=0.5, connect_timeout_s=3),
        "standby": source_of(second, heartbeat_s=0.5, connect_timeout_s=3),
        "failover": QUICK,
    }
    with serving(first, **changes) as server:
        instance = server.instances["default"]
        is_paused = threading.Event()

        def apply(batch: DataFrame, number: int) -> None:
            """Let snapshots be paused in the middle, so that there is something left to read."""
            mirror(batch, number)
            if mirror.snapshot_rows >= 100 and not is_paused.is_set():
                instance.snapshots.pause()
                is_paused.set()

        query = run(stream(spark, server, table=str(name), **_OPTIONS), apply, tmp_path)
        with written(first, name, "integer", pause_s=0.005):
            assert poll(lambda: is_paused.is_set() or query.exception() is not None, 60)
        execute(first, f"REPLACE INTO {name} VALUES (0, 'last of the first')")
        assert poll(lambda: has(second, f"SELECT 1 FROM {name} WHERE name = 'last of the first'"), 60)
        end = instance.source_log.end()
        assert poll(lambda: instance.store.latest >= end, 60)
        before = mirror.snapshot_rows
        assert before < 500
        first.kill()
        stop = ("STOP REPLICA", "RESET REPLICA ALL") if flavour == "mysql9" else ("STOP SLAVE", "RESET SLAVE ALL")
        execute(second, *stop)
        assert poll(lambda: instance.store.latest.epoch == 1, 60)
        with written(second, name, "integer", pause_s=0.005) as writers:
            instance.snapshots.resume()
            assert poll(lambda: mirror.snapshot_rows > before or query.exception() is not None, 60)
            assert poll(lambda: all(writer.commits > 20 for writer in writers), 60)
        equals(query, mirror, second, name)
        query.stop()
    assert mirror.snapshot_rows > before
