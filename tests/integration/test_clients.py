"""Clients of a real source: every store and meta, restarts, kills, starts of every kind, two servers at once."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.coordinate import ZooKeeperTree
from penstock.errors import FencedError, MetaError, PositionLostError
from penstock.instance import Instance, InstanceState
from penstock.meta import Cursor, FileMetaBackend, PersistentMetaManager
from penstock.meta.zookeeper_backend import ROOT
from penstock.model import Position
from penstock.source import connect, current_position
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.services.zookeeper import ZooKeeper
from tests.support.capture import execute, instance_of, poll, source_of
from tests.support.client_process import CLIENT, ids_in

SOURCES = ("mariadb", "mariadb11", "mysql80", "mysql9")
STORES: dict[str, dict[str, Any]] = {
    "memory": {"kind": "memory"},
    "file": {"kind": "file", "segment": "64KiB"},
    "mixed": {"kind": "mixed", "memory": "64KiB", "segment": "64KiB"},
}
ROUNDS = int(os.environ.get("CLIENT_ROUNDS", "5"))


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def table(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(server)}.t"
    execute(server, f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(200))")
    return name


@pytest.fixture
def table_in_mariadb(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(200))")
    return name


@contextmanager
def running(server: DatabaseServer, **changes: Any) -> Iterator[Instance]:
    instance = instance_of(server, **changes)
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def insert(server: DatabaseServer, table: str, ids: range, *, each: int = 3) -> None:
    """In transactions of `each` rows."""
    for first in range(ids.start, ids.stop, each):
        rows = ", ".join(f"({number}, REPEAT('v', 100))" for number in range(first, min(first + each, ids.stop)))
        execute(server, f"INSERT INTO {table} VALUES {rows}")


def taken(instance: Instance, last: int, *, client: int = CLIENT, size: int = 5) -> list[int]:
    """The ids that the client gets and acks, up to that one."""
    ids: list[int] = []

    def has_last() -> bool:
        got = instance.clients.get(client, BatchSize(size), 0.5)
        if got is not None:
            ids.extend(ids_in(got[1]))
            instance.clients.ack(client, got[0])
        return last in ids

    assert poll(has_last), f"got {ids[-5:]}, not {last}"
    return ids


@pytest.mark.parametrize("kind", STORES)
def test_a_restart_resumes_where_each_client_was(server: DatabaseServer, table: str, tmp_path: Path, kind: str) -> None:
    settings = {"store": STORES[kind], "data_dir": tmp_path}
    with running(server, **settings) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, table, Start.latest())
        insert(server, table, range(60))
        assert taken(instance, 59, client=1) == list(range(60))
        assert taken(instance, 20, client=2, size=3)[:21] == list(range(21))
        slow = instance.clients.get(2, BatchSize(4), 5)  # got and not acked
        assert slow is not None
    insert(server, table, range(60, 90))
    with running(server, **settings) as instance:
        insert(server, table, range(90, 120))
        assert taken(instance, 119, client=1) == list(range(60, 120))
        again = taken(instance, 119, client=2)
        assert again == list(range(again[0], 120))
        assert 18 <= again[0] <= 24


@pytest.mark.parametrize("where", ["position", "gtid", "time", "first"])
def test_a_client_may_begin_before_the_store(server: DatabaseServer, table: str, where: str) -> None:
    """It is served from the source's log, and joins what flows, without a gap and without a duplicate."""
    with running(server) as instance:
        instance.clients.subscribe(9, table, Start.latest())
        insert(server, table, range(30))
        wait_for_all(server, instance)
        start = start_in(server, instance, where)
        insert(server, table, range(30, 60))
        taken(instance, 59, client=9)
        assert poll(lambda: instance.store.size_bytes < 2000)  # what it has acked is gone
        writer = threading.Thread(target=insert, args=(server, table, range(60, 120)))
        writer.start()
        instance.clients.subscribe(CLIENT, table, start)
        ids = taken(instance, 119)
        writer.join()
        assert ids == list(range({"first": ids[0]}.get(where, 30), 120))
        if where == "first":
            assert ids[0] >= 57


def wait_for_all(server: DatabaseServer, instance: Instance) -> None:
    """Until the store has what the source has committed."""
    source = source_of(server)
    with closing(connect(source)) as connection:
        now = current_position(connection, source)
    assert poll(lambda: instance.store.latest >= now)


def start_in(server: DatabaseServer, instance: Instance, where: str) -> Start:
    """The position between the rows 29 and 30, in one of the ways to say it."""
    match where:
        case "position":
            return Start.at(instance.store.latest)
        case "gtid":
            gtid = last_gtid(server)
            return Start.after_gtid(gtid) if gtid else Start.at(instance.store.latest)
        case "time":
            execute(server, "DO SLEEP(1.1)")
            now = int(one_value(server, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"))
            execute(server, "DO SLEEP(1.1)")
            return Start.at_time(now)
        case _:
            return Start.stored()


def last_gtid(server: DatabaseServer) -> str:
    """None on servers that run without."""
    if is_mariadb(server):
        return one_value(server, "SELECT @@gtid_binlog_pos")
    source, _, numbers = one_value(server, "SELECT @@gtid_executed").replace("\n", "").rpartition(":")
    return f"{source.rpartition(',')[2]}:{numbers.rpartition('-')[2]}" if source else ""


def is_mariadb(server: DatabaseServer) -> bool:
    return "MariaDB" in one_value(server, "SELECT VERSION()")


def one_value(server: DatabaseServer, query: str) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        (value, *_) = cursor.fetchone() or ("",)
        return str(value)


def test_an_unknown_gtid_is_named(server: DatabaseServer, table: str) -> None:
    missing = "0-999-999" if is_mariadb(server) else "3e11fa47-71ca-11e1-9e33-c80aa9429562:77"
    with running(server) as instance, pytest.raises(PositionLostError, match=missing):
        instance.clients.subscribe(CLIENT, table, Start.after_gtid(missing))


@pytest.mark.parametrize("kind", ["file", "mixed"])
def test_kill_at_any_moment(mariadb: DatabaseServer, table_in_mariadb: str, tmp_path: Path, kind: str) -> None:
    """Nothing is missing, and what comes twice is at most what was not acked, and one period of acks."""
    table = table_in_mariadb
    source = source_of(mariadb)
    settings = {
        "source": source.model_dump(mode="json") | {"password": mariadb.password},
        "store": STORES[kind],
        "meta": {"kind": "file", "period_s": 0},
        "data_dir": str(tmp_path),
    }
    command = [sys.executable, "-m", "tests.support.client_process", json.dumps(settings), table]
    seen, written, root = list[list[int]](), 0, Path(__file__).parents[2]
    for seed in range(ROUNDS):
        lines, last, ids, open_ids = random.Random(seed).randrange(5, 90), seed == ROUNDS - 1, list[int](), list[int]()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
            writer = None
            for number, line in enumerate(process.stdout or ()):
                match line.split():
                    case ["ready"]:
                        rows = range(written, written + 90)
                        writer = threading.Thread(target=insert, args=(mariadb, table, rows))
                        writer.start()
                        written += 90
                    case ["got", text]:
                        open_ids.append(int(text))
                    case ["acked"]:
                        ids += open_ids
                        open_ids.clear()
                    case _:
                        pass
                if (number >= lines and not last) or (last and ids and ids[-1] == written - 1):
                    os.kill(process.pid, signal.SIGKILL)
            process.wait()
            assert process.returncode == -signal.SIGKILL, "it ended by itself"
            if writer is not None:
                writer.join()
        seen.append(ids + open_ids)
        assert ids + open_ids == list(range(seen[-1][0], seen[-1][0] + len(seen[-1]))) if seen[-1] else True
    assert sorted({number for ids in seen for number in ids}) == list(range(written))
    for before, after in pairwise(seen):
        if before and after:
            assert after[0] > before[-1] - 12, "more than the batches that were not acked were redelivered"


@pytest.mark.parametrize("kind", STORES)
def test_an_epoch_raised_by_hand_resumes_by_gtids(
    mariadb: DatabaseServer, tmp_path: Path, table_in_mariadb: str, kind: str
) -> None:
    """And one that falls is refused: what has the higher one would take all that comes for old."""
    table, settings = table_in_mariadb, {"data_dir": tmp_path, "store": STORES[kind]}
    with running(mariadb, **settings) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, table)
        insert(mariadb, table, range(20))
        before = {1: taken(instance, 9, client=1), 2: taken(instance, 2, client=2)}
    insert(mariadb, table, range(20, 30))
    with running(mariadb, **settings, epoch=1) as instance:
        insert(mariadb, table, range(30, 40))
        for client, seen in before.items():
            again = taken(instance, 39, client=client)
            assert seen == list(range(seen[-1] + 1))
            assert again == list(range(again[0], 40))
            assert seen[-1] - 3 < again[0] <= seen[-1] + 1, (
                "all of the last transaction, and nothing more, is redelivered"
            )
        assert instance.store.latest.epoch == 1
        assert poll(
            lambda: (
                (cursor := instance.components.meta_stores.meta.cursor(1)) is not None and cursor.position.epoch == 1
            )
        )
    (tmp_path / "default" / "source.json").unlink()
    with pytest.raises(MetaError, match=r"client 1 is .*this log is of epoch 0: with `penstock position set`"):
        instance_of(mariadb, **settings).start()


def test_a_cursor_ahead_of_the_log_is_named(mariadb: DatabaseServer, tmp_path: Path) -> None:
    """As after a RESET: it would wait for a position that has another meaning by then."""
    with running(mariadb, data_dir=tmp_path) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client)
    with PersistentMetaManager("default", FileMetaBackend("default", tmp_path), period_s=None) as meta:
        meta.update_cursor(2, Cursor(Position("binlog.900000", 4)))
    with pytest.raises(PositionLostError, match=r"the cursor of client 2, binlog\.900000:4 is ahead of the log"):
        instance_of(mariadb, data_dir=tmp_path).start()


@pytest.mark.mariadb
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_was_purged_stops_only_those_who_need_it(
    private_server: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    server: DatabaseServer = private_server("mariadb")
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(200))")
    settings = {"data_dir": tmp_path, "store": STORES[kind]}
    with running(server, **settings) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, "d.t", Start.latest())
        insert(server, "d.t", range(30))
        taken(instance, 8, client=1)
        taken(instance, 29, client=2)
    execute(server, "FLUSH BINARY LOGS")
    with running(server, **settings) as instance:
        insert(server, "d.t", range(30, 60))
        taken(instance, 59, client=2)
    insert(server, "d.t", range(60, 70))
    execute(server, "FLUSH BINARY LOGS")
    assert poll(lambda: is_purged(server))
    insert(server, "d.t", range(70, 90))
    gap = r"no longer has what follows .*; missing are files .*; GTIDs 0-….*; the time from 20.* to 20"
    with pytest.raises(PositionLostError, match=rf"{gap}.* where client 1, 2 resumes"):
        instance_of(server, **settings).start()
    with PersistentMetaManager("default", FileMetaBackend("default", tmp_path), period_s=None) as meta:
        meta.update_cursor(2, Cursor(Position(last_file(server), 4)))
    with running(server, **settings) as instance:
        assert taken(instance, 89, client=2) == list(range(70, 90))
        for _ in range(2):
            with pytest.raises(PositionLostError, match=r"client 1 cannot resume: .*penstock position set"):
                instance.clients.get(1, BatchSize(3), 1)


def is_purged(server: DatabaseServer) -> bool:
    """Up to the last file; a server keeps what its engine may need for a recovery a moment longer."""
    execute(server, f"PURGE BINARY LOGS TO '{last_file(server)}'")
    return one_value(server, "SHOW BINARY LOGS").startswith(last_file(server))


def last_file(server: DatabaseServer) -> str:
    source = source_of(server)
    with closing(connect(source)) as connection:
        return current_position(connection, source).file


def test_one_server_has_the_folder(mariadb: DatabaseServer, tmp_path: Path) -> None:
    with (
        running(mariadb, data_dir=tmp_path),
        pytest.raises(MetaError, match="in use by another process: a server that runs"),
    ):
        instance_of(mariadb, data_dir=tmp_path).start()


@pytest.mark.parametrize("kind", ["zookeeper", "mixed", "period-mixed"])
def test_the_newer_of_two_servers_takes_over(
    mariadb: DatabaseServer, zookeeper: ZooKeeper, table_in_mariadb: str, kind: str
) -> None:
    table = table_in_mariadb
    settings = {
        "destination": f"d{random.Random(table).randrange(1 << 30)}",
        "zookeeper": zookeeper.hosts,
        "meta": {"kind": kind, "period_s": 0.2},
    }
    tree, path = ZooKeeperTree(zookeeper.hosts), f"{ROOT}/{settings['destination']}/{CLIENT}/cursor"
    with closing(tree), running(mariadb, **settings) as old:
        old.clients.subscribe(CLIENT, table, Start.latest())
        insert(mariadb, table, range(30))
        assert taken(old, 29) == list(range(30))
        assert poll(lambda: b'"position":%d' % old.store.acked.offset in (tree.read(path) or (b"",))[0])
        with running(mariadb, **settings) as new:
            insert(mariadb, table, range(30, 60))

            def old_is_refused() -> bool:
                try:
                    got = old.clients.get(CLIENT, BatchSize(3), 0.2)
                    if got is not None:
                        old.clients.ack(CLIENT, got[0])
                except FencedError:
                    return True
                return False

            assert poll(old_is_refused)
            assert poll(lambda: old.state is InstanceState.FAILED)
            assert isinstance(old.failure, FencedError)
            assert taken(new, 59) == list(range(30, 60))


def test_the_position_of_capture_is_kept(mariadb: DatabaseServer, table_in_mariadb: str, tmp_path: Path) -> None:
    settings = {"data_dir": tmp_path, "positions": ["file", "cursors"]}
    with running(mariadb, **settings) as instance:
        instance.clients.subscribe(CLIENT, table_in_mariadb, Start.latest())
        insert(mariadb, table_in_mariadb, range(9))
        taken(instance, 8)
        position = instance.store.acked
    kept = json.loads((tmp_path / "default" / "parse.dat").read_bytes())
    assert Position(kept["postion"]["journalName"], kept["postion"]["position"]) == position
    with running(mariadb, **settings) as instance:
        assert instance.store.first == position
