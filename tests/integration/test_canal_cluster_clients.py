"""canal's Java client in a cluster: it finds the running server by ZooKeeper or by a list, continues with the next when
that one dies, and of two with one id one reads."""

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from pathlib import Path

import pytest

from penstock.coordinate import ZooKeeperTree
from penstock.testing import DatabaseServer, poll_until
from tests.services.canal_client import JAVA_CLIENT, Driver
from tests.services.zookeeper import ZooKeeper
from tests.support.capture import execute
from tests.support.cluster import ServerProcess, check_one_at_a_time, probing, servers
from tests.support.cluster_work import JavaReader, OwnReader, Reader, Work

pytestmark = [pytest.mark.waits, pytest.mark.canal_java, pytest.mark.timeout(300)]
SESSION_S = 4.0
RETRY_S = 5.0  # of canal's client, between two tries
FLUSH_S = 1.0  # of cursors


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


def owner(processes: list[ServerProcess], zookeeper: ZooKeeper, destination: str) -> ServerProcess:
    tree = ZooKeeperTree(zookeeper.hosts)
    try:
        node = tree.read(f"/otter/canal/destinations/{destination}/running")
    finally:
        tree.close()
    assert node is not None
    return next(process for process in processes if process.address.encode() in node[0])


@pytest.mark.parametrize("kind", ["zookeeper", "list"])
def test_it_follows_a_destination_to_another_server(
    kind: str,
    tmp_path: Path,
    java: Driver,
    mariadb: DatabaseServer,
    zookeeper: ZooKeeper,
    table: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    destination = f"d{secrets.token_hex(4)}"
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts] * 2, [destination], session_s=SESSION_S) as processes,
        probing(processes, destination) as probers,
    ):
        where = zookeeper.hosts if kind == "zookeeper" else ",".join(process.address for process in processes)
        reader = JavaReader(java, kind, where, destination, table)
        work = Work(mariadb, table, reader)
        work.start()
        assert poll_until(lambda: len(work.read) > 200, 30), work.problem
        old = owner(processes, zookeeper, destination)
        killed = time.monotonic()
        old.kill()
        assert poll_until(lambda: work.reads_after(killed + 0.5) or work.problem is not None, 90), reader.problems
        new = owner(processes, zookeeper, destination)
        assert new is not old
        owned_since = time.monotonic()
        assert poll_until(lambda: work.reads_after(owned_since + 1), 30), "the new owner serves"
        work.finish()
    work.check()
    assert check_one_at_a_time(probers) >= 1
    took, again = work.longest_pause_s(since=killed - 0.5), work.repeated()
    with capsys.disabled():
        print(
            f"\nJava by {kind}: rows again after {took:.2f} s, {len(again)} of {work.written} twice; {reader.problems}"
        )
    assert took < SESSION_S + 3 + 2 * RETRY_S
    # What it had acked is kept every second, and one batch may not have been acked.
    assert all(when > killed - FLUSH_S - 1 for when, _ in again), again


def test_of_two_clients_one_waits_for_the_other(
    tmp_path: Path, java: Driver, mariadb: DatabaseServer, zookeeper: ZooKeeper, table: str
) -> None:
    """Ours and canal's take the same lock."""
    destination = f"d{secrets.token_hex(4)}"
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts], [destination]),
        ThreadPoolExecutor(1) as other,
        Driver(JAVA_CLIENT.quick_command()) as second,
    ):
        first = JavaReader(java, "zookeeper", zookeeper.hosts, destination, table)
        waiting = other.submit(JavaReader, second, "zookeeper", zookeeper.hosts, destination, table)
        assert rows_of(first, mariadb, table, 1) == [1]
        with pytest.raises(NotYetError):
            waiting.result(1)
        first.close()
        after = waiting.result(30)
        ours = other.submit(OwnReader, zookeeper.hosts, destination, table)
        assert rows_of(after, mariadb, table, 2) == [2]
        with pytest.raises(NotYetError):
            ours.result(1)
        after.close()
        last = ours.result(30)
        assert rows_of(last, mariadb, table, 3) == [3]
        last.close()


def rows_of(reader: Reader, source: DatabaseServer, table: str, number: int) -> list[int]:
    execute(source, f"INSERT INTO {table} VALUES ({number})")
    ids = list[int]()

    def is_there() -> bool:
        batch_id, rows = reader.get()
        reader.ack(batch_id)
        ids.extend(rows)
        return bool(ids)

    assert poll_until(is_there, 30)
    return ids
