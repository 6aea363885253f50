"""Three servers as processes, a real ZooKeeper, a real source: who serves when one dies, hangs, or is cut off."""

import random
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.client.canal import CanalCluster
from penstock.testing import DatabaseServer, poll_until
from tests.capture import execute
from tests.integration.cluster import SESSION_S, ServerProcess, check_one_at_a_time, probing, servers
from tests.integration.scenario.proxy import Network
from tests.services.zookeeper import ZooKeeper


class Work:
    """Rows are written all the time, and read by a client that finds the running server by itself."""

    def __init__(self, source: DatabaseServer, table: str, zookeeper: str, destination: str) -> None:
        self._source, self._table = source, table
        self._closing = threading.Event()
        self.written = 0
        self.read: list[tuple[float, int]] = []
        self._cluster = CanalCluster.of_zookeeper(zookeeper, destination, patience_s=60, timeout_s=5)
        self._cluster.connect()
        self._cluster.subscribe(table.replace(".", "\\."))
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._write, self._read)]
        self.problem: Exception | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        with self._source.connect() as connection, connection.cursor() as cursor:
            while not self._closing.wait(0.01):
                cursor.execute(f"INSERT INTO {self._table} VALUES ({self.written})")
                connection.commit()
                self.written += 1

    def _read(self) -> None:
        try:
            while not (self._closing.is_set() and len({number for _, number in self.read}) >= self.written):
                message = self._cluster.get_without_ack(100, timeout_s=1)
                now = time.monotonic()
                for _, change in message.row_changes():
                    self.read += [(now, int(row.afterColumns[0].value)) for row in change.rowDatas]
                self._cluster.ack(message.id)
        except Exception as error:  # noqa: BLE001 - for who looks at the end
            self.problem = error

    def reads_after(self, moment: float) -> bool:
        return any(when > moment for when, _ in self.read[-200:])

    def finish(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(60)
        self._cluster.close()

    def check(self) -> None:
        """All rows, and each for the first time in its order."""
        assert self.problem is None, self.problem
        first = dict.fromkeys(number for _, number in self.read)
        assert list(first) == list(range(self.written))


@pytest.fixture
def destination() -> str:
    return f"d{secrets.token_hex(4)}"


@pytest.fixture
def networks(zookeeper: ZooKeeper) -> Iterator[list[Network]]:
    """A way to ZooKeeper for each server."""
    several = [Network(int(zookeeper.hosts.rpartition(":")[2]), random.randrange(1 << 32)) for _ in range(3)]
    for one in several:
        one.__enter__()
    yield several
    for one in several:
        one.__exit__()


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


def running(several: list[ServerProcess], cluster: CanalCluster) -> ServerProcess:
    return next(one for one in several if one.address == cluster.address)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("trouble", ["kill", "stop", "cut", "leave"])
def test_another_server_goes_on(
    trouble: str,
    tmp_path: Path,
    mariadb: DatabaseServer,
    zookeeper: ZooKeeper,
    networks: list[Network],
    table: str,
    destination: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ways = [f"127.0.0.1:{one.port}" for one in networks]
    with servers(tmp_path, mariadb, ways, [destination]) as several, probing(several, destination) as probers:
        work = Work(mariadb, table, zookeeper.hosts, destination)
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        old = running(several, work._cluster)
        moment = time.monotonic()
        _trouble(trouble, old, networks[several.index(old)])
        assert poll_until(lambda: work.reads_after(moment + 0.3) and work._cluster.address != old.address, 60)
        if trouble == "stop":
            time.sleep(2)
            old.send(signal.SIGCONT)
        time.sleep(3)
        work.finish()
    work.check()
    times = [when for when, _ in work.read if when > moment - 0.5]
    took = max(later - earlier for earlier, later in pairwise(times))
    assert check_one_at_a_time(probers) >= 1
    with capsys.disabled():
        print(f"\n{trouble}: rows again after {took:.2f} s")
    assert took < (1.0 if trouble == "leave" else SESSION_S + 3)


def _trouble(kind: str, server: ServerProcess, network: Network) -> None:
    match kind:
        case "kill":
            server.kill()
        case "stop":
            server.send(signal.SIGSTOP)
        case "leave":
            server.send(signal.SIGTERM)
        case _:
            network.is_silent, network.trouble = True, lambda _: 1


@pytest.mark.timeout(300)
def test_zookeeper_restarts(
    tmp_path: Path, mariadb: DatabaseServer, private_server: Callable[..., Any], table: str, destination: str
) -> None:
    zookeeper: ZooKeeper = private_server("zookeeper")
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts] * 3, [destination]) as several,
        probing(several, destination) as probers,
    ):
        work = Work(mariadb, table, zookeeper.hosts, destination)
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        zookeeper.kill()
        time.sleep(SESSION_S + 1)
        zookeeper.start()
        moment = time.monotonic()
        assert poll_until(lambda: work.reads_after(moment), 60), work.problem
        time.sleep(2)
        work.finish()
    work.check()
    check_one_at_a_time(probers)
