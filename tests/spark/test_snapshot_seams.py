"""`startingPosition=snapshot` while others write at the worst moments: at every seam of every chunk, with commits that
are in the log before they can be seen, and with a source that fails over in the middle."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.config.settings import SnapshotSettings
from penstock.instance.snapshots import InstanceSnapshots
from penstock.model import TableName
from penstock.server import Server
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkReader
from penstock.source.visibility import LogVisibility
from penstock.testing import DatabaseServer
from tests.spark.test_snapshot_stream import StrictMirror, equals
from tests.spark.test_stream_source import run, stream
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.chunk_seams import SEAMS, SeamWriter, watch_seams
from tests.support.following import QUICK
from tests.support.late_commits import late_commits
from tests.support.random_writers import IDS, create_table, written
from tests.support.replication import has, pair

NewDatabase = Callable[[Any], str]
_SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_SNAPSHOT = SnapshotSettings(chunk_rows=50, connections=1)
_OPTIONS = {"startingPosition": "snapshot", "maxRowsPerTrigger": "100", "pollMs": "100"}


_SEEDED = [
    pytest.param(server, seed, marks=[] if seed == 0 and server in {"mariadb", "mysql80"} else [pytest.mark.campaign])
    for server in _SERVERS
    for seed in range(4)
]
_EACH = [pytest.param(server, marks=[] if server == "mariadb" else [pytest.mark.campaign]) for server in _SERVERS]


@contextmanager
def _serving(captured: DatabaseServer, **changes: Any) -> Iterator[Server]:
    """Capture a source in this process, so that a test can act between the steps of its reads."""
    settings = InstanceSettings(**{"source": source_of(captured), "snapshot": _SNAPSHOT, **changes})
    server = Server(ServerSettings.with_flight_only(settings))
    server.start()
    try:
        yield server
    finally:
        server.stop()


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
    with _serving(source) as server:
        query = run(stream(spark, server, table=str(name), **_OPTIONS), mirror, tmp_path)
        _wait_complete(server, query, name)
        writer.finish()
        equals(query, mirror, source, name)
        query.stop()
    assert min(writer.used[seam] for seam in SEAMS) >= 5, writer.used
    assert mirror.snapshot_rows > 300


class HeldCommits:
    """Lets a change of the next chunk be in the log when a batch is planned, and not be visible when the chunk is read:
    the end of the batch has the change, so the rows of the chunk must have it, too."""

    def __init__(self, source: Any, name: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
        self._source, self._table = source, name
        self._held, self._thread = ExitStack(), threading.Thread()
        self.traps = 0
        plan, read, wait = InstanceSnapshots.plan, ChunkReader.read, LogVisibility.wait

        def watched_plan(snapshots: Any, *arguments: Any, **limits: Any) -> Any:
            planned = plan(snapshots, *arguments, **limits)
            self.release()
            if planned.chunks:
                self._hold(self._statement(planned.chunks[0]), snapshots._instance.store)
            return planned

        def watched_wait(visibility: Any, timeout_s: float) -> None:
            self._release_soon()
            wait(visibility, timeout_s)

        def watched_read(reader: Any, table: Any, chunk: Chunk) -> Any:
            self.traps += self._thread.is_alive()
            try:
                return read(reader, table, chunk)
            finally:
                self.release()

        monkeypatch.setattr(InstanceSnapshots, "plan", watched_plan)
        monkeypatch.setattr(LogVisibility, "wait", watched_wait)
        monkeypatch.setattr(ChunkReader, "read", watched_read)

    def release(self) -> None:
        """Let the commit end."""
        self._held.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _release_soon(self) -> None:
        """Let the commit end a moment later; that of MySQL waits for a second by itself."""
        if not self._source.name.startswith("mysql") and self._thread.is_alive():
            timer = threading.Timer(0.2, execute, (self._source, "SET GLOBAL rpl_semi_sync_master_enabled = OFF"))
            timer.start()
            self._held.callback(timer.join)

    def _hold(self, statement: str, store: Any) -> None:
        """Start a statement whose commit is held back, and wait until it is captured from the log."""
        self._held = ExitStack()
        self._held.enter_context(late_commits(self._source))
        before = end_of(self._source)
        self._thread = threading.Thread(target=execute, args=(self._source, statement), name="held-commit")
        self._thread.start()
        assert poll(lambda: store.latest > before or not self._thread.is_alive())

    def _statement(self, chunk: Chunk) -> str:
        """Return a change of the chunk's first rows; each chunk gets another kind."""
        first = int(chunk.after[0]) + 1 if chunk.after else 0
        first += first % 2
        return (
            f"UPDATE {self._table} SET name = 'held' WHERE id = {first}",
            f"DELETE FROM {self._table} WHERE id = {first}",
            f"INSERT IGNORE INTO {self._table} (id, name) VALUES ({first + 1}, 'held')",
            f"UPDATE IGNORE {self._table} SET id = {(first + IDS // 2) % IDS + 1} WHERE id = {first}",
        )[self.traps % 4]


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
        with _serving(source) as server:
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
    with _serving(first, **changes) as server:
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
