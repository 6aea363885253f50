"""Semi-sync: commits at the source wait until they are acknowledged, and no longer.

MySQL 8.0 of the tests comes without the plugin.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.binlog.events.layout import Entry
from penstock.instance import InstanceState
from penstock.model import Position
from penstock.source import BinlogStream
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.services import SERVICES
from tests.support.capture import end_of, execute, instance_of, poll, source_of

KINDS = ("mariadb", "mariadb11", "mysql9")
PREFIX = {
    "mariadb": "rpl_semi_sync_master",
    "mariadb11": "rpl_semi_sync_master",
    "mysql9": "rpl_semi_sync_source",
}
ACK_TIMEOUT_MS = 60_000


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, private_server: Callable[..., Any]) -> DatabaseServer:
    """With a table, and semi-sync turned on."""
    kind, prefix = request.param, PREFIX[request.param]
    options: dict[str, Any] = {}
    if kind == "mysql9":
        options = {"plugin_dir": SERVICES[kind].require() / "usr/lib/mysql/plugin"}
    server = private_server(kind, options=options)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB)")
    if kind == "mysql9":
        execute(server, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    execute(server, f"SET GLOBAL {prefix}_timeout = {ACK_TIMEOUT_MS}", f"SET GLOBAL {prefix}_enabled = ON")
    return server


def status(server: DatabaseServer, name: str) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%%_{name}'")
        return str(cursor.fetchall()[0][1])


class Follower:
    """Keeps what comes, and says so while it may."""

    def __init__(self, server: DatabaseServer, *, semi_sync: bool = True) -> None:
        self.stream = BinlogStream(source_of(server, heartbeat_s=0.25), end_of(server), semi_sync=semi_sync)
        self.may_acknowledge = threading.Event()
        self.kept: Position | None = None
        self.rows = 0

    @contextmanager
    def following(self) -> Iterator["Follower"]:
        with self.stream:
            thread = threading.Thread(target=self._follow, name="follower", daemon=True)
            thread.start()
            assert poll(lambda: self.stream.is_flowing)
            yield self
            self.stream.stop()
            thread.join(10)
            assert not thread.is_alive()

    def _follow(self) -> None:
        for block in self.stream:
            if block is not None:
                self.rows += int(np.count_nonzero(block.column("entry") == Entry.ROWS))
                if block.boundaries.size:
                    self.kept = block.end_of_event(int(block.boundaries[-1]))
            if self.kept is not None and self.may_acknowledge.is_set():
                self.stream.acknowledge(self.kept)


@contextmanager
def committing(server: DatabaseServer, *statements: str) -> Iterator[threading.Event]:
    """In a thread of its own; the event says that all have returned."""
    done = threading.Event()

    def run() -> None:
        execute(server, *statements)
        done.set()

    thread = threading.Thread(target=run, name="committer", daemon=True)
    thread.start()
    yield done
    thread.join(30)
    assert done.is_set()


@pytest.mark.parametrize("size", [10, 17_000_000], ids=["small", "more than one packet"])
def test_a_commit_waits_for_the_acknowledgement(server: DatabaseServer, size: int) -> None:
    execute(server, "SET GLOBAL max_allowed_packet = 67108864")
    with Follower(server).following() as follower:
        assert follower.stream.semi_sync
        assert poll(lambda: status(server, "clients") == "1")
        with committing(server, f"INSERT INTO d.t VALUES (1, REPEAT('x', {size}))") as done:
            assert poll(lambda: follower.kept is not None and follower.rows == 1)
            assert not done.wait(1.5), "the commit returned before it was acknowledged"
            assert follower.stream.wants_ack
            follower.may_acknowledge.set()
        assert poll(lambda: not follower.stream.wants_ack)
        assert (status(server, "yes_tx"), status(server, "no_tx")) == ("1", "0")


def test_commits_of_several_are_acknowledged_together(server: DatabaseServer) -> None:
    with Follower(server).following() as follower:
        follower.may_acknowledge.set()
        inserts = [[f"INSERT INTO d.t (id) VALUES ({100 * writer + row})" for row in range(100)] for writer in range(4)]
        with (
            committing(server, *inserts[0]),
            committing(server, *inserts[1]),
            committing(server, *inserts[2]),
            committing(server, *inserts[3]),
        ):
            pass
        assert poll(lambda: follower.rows == 400)
    assert int(status(server, "yes_tx")) > 0  # MySQL counts those that commit together once
    assert status(server, "no_tx") == "0"


def test_a_server_that_has_it_turned_off(server: DatabaseServer, caplog: pytest.LogCaptureFixture) -> None:
    prefix = PREFIX["mariadb" if server.name == "MariaDB" else "mysql9"]
    execute(server, f"SET GLOBAL {prefix}_enabled = OFF")
    with Follower(server).following() as follower:
        assert "semi-sync replication not active" in caplog.text
        execute(server, "INSERT INTO d.t (id) VALUES (1)")
        assert poll(lambda: follower.rows == 1)
        assert not follower.stream.wants_ack


def test_who_does_not_ask_for_it_is_not_waited_for(server: DatabaseServer) -> None:
    with Follower(server, semi_sync=False).following() as follower:
        assert not follower.stream.semi_sync
        assert status(server, "clients") == "0"
        prefix = PREFIX["mariadb" if server.name == "MariaDB" else "mysql9"]
        execute(server, f"SET GLOBAL {prefix}_timeout = 100", "INSERT INTO d.t (id) VALUES (1)")
        assert poll(lambda: follower.rows == 1)


@pytest.mark.mysql80
def test_a_server_that_does_not_know_it(mysql80: DatabaseServer, database: Callable[[DatabaseServer], str]) -> None:
    table = f"{database(mysql80)}.t"
    execute(mysql80, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    with Follower(mysql80).following() as follower:
        assert not follower.stream.semi_sync
        execute(mysql80, f"INSERT INTO {table} VALUES (1)")
        assert poll(lambda: follower.rows == 1)


STORES = {
    "memory": {"kind": "memory", "memory": 1 << 18},
    "file": {"kind": "file"},
    "mixed": {"kind": "mixed", "memory": 1 << 20},
}


@pytest.mark.parametrize("kind", STORES)
def test_an_instance_acknowledges_what_its_store_has(server: DatabaseServer, tmp_path: Path, kind: str) -> None:
    source = source_of(server, heartbeat_s=0.25, semi_sync=True)
    instance = instance_of(server, source=source, store=STORES[kind], data_dir=tmp_path)
    instance.start()
    try:
        instance.clients.subscribe(1, "", Start.latest())
        assert poll(lambda: status(server, "clients") == "1")
        storage: Any = instance.store._storage
        for row in range(20):
            with committing(server, f"INSERT INTO d.t (id) VALUES ({row})") as done:
                assert done.wait(10)
            assert storage.first_volatile is None
            assert instance.store.latest >= end_of(server)
        assert (status(server, "yes_tx"), status(server, "no_tx")) == ("20", "0")
        if kind != "memory":
            written = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("default/store/*")) if path.is_file())
            assert written.count(b"d\0\x01t\0") >= 1
    finally:
        instance.stop()


def test_a_full_store_lets_commits_wait(server: DatabaseServer, tmp_path: Path) -> None:
    source = source_of(server, heartbeat_s=0.25, semi_sync=True)
    instance = instance_of(server, source=source, store={"kind": "memory", "memory": 1 << 16}, data_dir=tmp_path)
    instance.start()
    try:
        instance.clients.subscribe(1, "", Start.latest())
        assert poll(lambda: status(server, "clients") == "1")
        execute(server, "INSERT INTO d.t VALUES (1, REPEAT('x', 60000))")
        with committing(server, "INSERT INTO d.t VALUES (2, REPEAT('x', 60000))") as done:
            assert poll(lambda: instance.state is InstanceState.BLOCKED)
            assert not done.wait(1)
            got = instance.clients.get(1, BatchSize(100), 1)
            assert got is not None
            instance.clients.ack(1, got[0])
            assert done.wait(10)
    finally:
        instance.stop()


def test_a_store_that_syncs_later_is_refused(server: DatabaseServer, tmp_path: Path) -> None:
    source = source_of(server, semi_sync=True)
    with pytest.raises(ValueError, match=r"acknowledges what is on the disk .* leave sync out, or set it to batch"):
        instance_of(server, source=source, store={"kind": "file", "sync": "interval"}, data_dir=tmp_path)
