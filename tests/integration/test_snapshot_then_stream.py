"""A stream that begins with a snapshot, batch by batch and without a JVM, while others write at the worst moments: a
table that is built from it equals the source, strictly. tests/spark has one run of each kind with Spark itself."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.config.settings import SnapshotSettings
from penstock.model import TableName
from penstock.testing import DatabaseServer, poll_until
from tests.support.campaign import short_and_long
from tests.support.capture import execute, source_of
from tests.support.chunk_seams import SEAMS, SeamWriter, watch_seams
from tests.support.following import QUICK
from tests.support.held_commits import HeldCommits
from tests.support.micro_batches import MicroBatches, serving
from tests.support.random_writers import create_table, select_rows, written
from tests.support.replication import has, pair
from tests.support.strict_mirror import StrictMirror

_SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_KINDS = ("integer", "text", "composite", "unicode", "decimal")
_OPTIONS = {"startingPosition": "snapshot", "maxRowsPerTrigger": "100", "pollMs": "50"}
NewDatabase = Callable[[Any], str]


def _seeds(each: int) -> Iterator[Any]:
    """Yield so many seeds for each server, of which the first is for `make test`, too."""
    for number, flavour in enumerate(_SERVERS):
        for seed in range(number, each * len(_SERVERS), len(_SERVERS)):
            yield pytest.param(flavour, seed, marks=[] if seed < len(_SERVERS) else [pytest.mark.campaign])


def _follow(query: MicroBatches, mirror: StrictMirror, source: DatabaseServer, name: TableName, columns: str) -> None:
    """Run batches until a mirror equals its table, of which nobody writes."""
    wanted = select_rows(source, name, columns)
    query.run_until(lambda: mirror.content == wanted)


@pytest.mark.parametrize(("flavour", "seed"), list(_seeds(10)))
def test_changes_at_every_seam_of_every_chunk(
    request: pytest.FixtureRequest, database: NewDatabase, monkeypatch: pytest.MonkeyPatch, flavour: str, seed: int
) -> None:
    source: DatabaseServer = request.getfixturevalue(flavour)
    name, chooser = TableName(database(source), "t"), random.Random(seed)
    create_table(source, name, "integer")
    mirror, writer = StrictMirror(), SeamWriter(source, name, seed, adds_column=seed % 2 == 1)
    with serving(source) as server:
        query = MicroBatches(server.address, mirror.apply, table=str(name), **_OPTIONS)
        watch_seams(monkeypatch, writer)
        while not query.is_complete:
            query.run_batch()
            if chooser.random() < 0.2:
                query.restart()
        writer.finish()
        _follow(query, mirror, source, name, "id, name")
    assert min(writer.used[seam] for seam in SEAMS) >= 5, writer.used
    assert mirror.snapshot_rows > 300


@pytest.mark.parametrize(("flavour", "seed"), list(_seeds(10)))
def test_heavy_writes_and_restarts(
    request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path, flavour: str, seed: int
) -> None:
    source: DatabaseServer = request.getfixturevalue(flavour)
    name, kind, chooser = TableName(database(source), "t"), _KINDS[seed % len(_KINDS)], random.Random(seed)
    create_table(source, name, kind)
    mirror = StrictMirror()
    with serving(source, data_dir=tmp_path) as server, written(source, name, kind, 0.003, seed=seed) as writers:
        assert poll_until(lambda: all(writer.commits > 5 for writer in writers), 60)
        query = MicroBatches(server.address, mirror.apply, table=str(name), **_OPTIONS)
        while not query.is_complete:
            query.run_batch()
            if chooser.random() < 0.2:
                query.restart()
        before = sum(writer.commits for writer in writers)
        query.run_until(lambda: sum(writer.commits for writer in writers) > before + 20)
        for writer in writers:
            writer.stop()
        _follow(query, mirror, source, name, "*")
    assert mirror.batches > 3
    assert mirror.snapshot_rows > 300


_EACH = [pytest.param(flavour, marks=[] if flavour == "mariadb" else [pytest.mark.campaign]) for flavour in _SERVERS]


@pytest.mark.parametrize("flavour", _EACH)
def test_commits_that_are_in_the_log_and_cannot_be_seen_yet(
    private_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, flavour: str
) -> None:
    source = private_server(flavour)
    name, mirror = TableName("d", "t"), StrictMirror()
    execute(source, "CREATE DATABASE d")
    create_table(source, name, "integer")
    held = HeldCommits(source, name, monkeypatch)
    try:
        with serving(source, snapshot=SnapshotSettings(chunk_rows=100, connections=1)) as server:
            query = MicroBatches(server.address, mirror.apply, table=str(name), **_OPTIONS)
            query.run_until(lambda: query.is_complete)
            held.release()
            _follow(query, mirror, source, name, "*")
    finally:
        held.release()
    assert held.traps >= 4, "commits were held back too rarely"


@pytest.mark.parametrize("flavour", _EACH)
@pytest.mark.parametrize("seed", short_and_long(0, 1))
def test_a_source_fails_over_in_the_middle_of_a_snapshot(
    private_server: Callable[..., Any], flavour: str, seed: int
) -> None:
    first, second = pair(private_server, flavour)
    name, mirror = TableName("replicated", "t"), StrictMirror()
    create_table(first, name, "integer")
    sources = [source_of(server, heartbeat_s=0.5, connect_timeout_s=3) for server in (first, second)]
    with serving(first, source=sources[0], standby=sources[1], failover=QUICK) as server:
        instance = server.instances["default"]
        query = MicroBatches(server.address, mirror.apply, table=str(name), **_OPTIONS)
        with written(first, name, "integer", 0.005, seed=seed):
            query.run_until(lambda: mirror.snapshot_rows >= 100)
        execute(first, f"REPLACE INTO {name} VALUES (0, 'last of the first')")
        assert poll_until(lambda: has(second, f"SELECT 1 FROM {name} WHERE name = 'last of the first'"), 60)
        end = instance.source_log.end()
        assert poll_until(lambda: instance.store.latest >= end, 60)
        before = mirror.snapshot_rows
        first.kill()
        stop = ("STOP REPLICA", "RESET REPLICA ALL") if flavour == "mysql9" else ("STOP SLAVE", "RESET SLAVE ALL")
        execute(second, *stop)
        query.run_batch()  # while the first one is gone, and maybe nobody is followed yet
        assert poll_until(lambda: instance.store.latest.epoch == 1, 60)
        with written(second, name, "integer", 0.005, seed=seed + 100) as writers:
            query.run_until(lambda: query.is_complete)
            query.restart()
            query.run_until(lambda: all(writer.commits > 20 for writer in writers))
            for writer in writers:
                writer.stop()
            _follow(query, mirror, second, name, "*")
    assert mirror.snapshot_rows > before
