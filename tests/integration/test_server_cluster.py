"""Three servers as processes, a real ZooKeeper, a real source: who serves when one dies, hangs, or is cut off."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import DatabaseServer, poll_until
from tests.services.zookeeper import ZooKeeper
from tests.support.capture import execute
from tests.support.cluster import ServerProcess, check_one_at_a_time, probing, servers
from tests.support.cluster_work import OwnReader, Work
from tests.support.scenario.proxy import Network

pytestmark = [pytest.mark.waits, pytest.mark.timeout(300)]
SESSION_S = 4.0
ANSWER_S = 3.0  # after which a client leaves a server that does not answer
SETTLED_S = 1.5  # for which nobody else may serve: longer than a lease is renewed after, or a server takes over after


@pytest.fixture
def networks(zookeeper: ZooKeeper) -> Iterator[list[Network]]:
    """A way to ZooKeeper for each server."""
    all_networks = [Network(int(zookeeper.hosts.rpartition(":")[2]), random.randrange(1 << 32)) for _ in range(3)]
    for network in all_networks:
        network.__enter__()
    yield all_networks
    for network in all_networks:
        network.__exit__()


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


def running(processes: list[ServerProcess], reader: OwnReader) -> ServerProcess:
    return next(process for process in processes if process.address == reader.address)


@pytest.mark.parametrize("trouble", ["kill", "stop", "cut", "leave"])
def test_another_server_takes_over(
    trouble: str,
    tmp_path: Path,
    mariadb: DatabaseServer,
    zookeeper: ZooKeeper,
    networks: list[Network],
    table: str,
    destination: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ways = [f"127.0.0.1:{network.port}" for network in networks]
    with (
        servers(tmp_path, mariadb, ways, [destination], session_s=SESSION_S) as processes,
        probing(processes, destination) as probers,
    ):
        reader = OwnReader(zookeeper.hosts, destination, table, timeout_s=ANSWER_S)
        work = Work(mariadb, table, reader)
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        old = running(processes, reader)
        moment = time.monotonic()
        _trouble(trouble, old, networks[processes.index(old)])
        assert poll_until(lambda: work.reads_after(moment + 0.3) and reader.address != old.address, 60)
        if trouble == "stop":
            time.sleep(0.5)
            old.send(signal.SIGCONT)
        others = [prober for prober in probers if prober.server is not old]
        assert poll_until(lambda: any(prober.served for prober in others), 60)
        time.sleep(SETTLED_S)
        work.finish()
        assert old.has_ended == (trouble in {"kill", "leave"}), (
            "one that has lost its session waits for the next election"
        )
    work.check()
    took = work.longest_pause_s(since=moment - 0.5)
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


def test_zookeeper_restarts(
    tmp_path: Path, mariadb: DatabaseServer, private_server: Callable[..., Any], table: str, destination: str
) -> None:
    zookeeper: ZooKeeper = private_server("zookeeper")
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts] * 3, [destination], session_s=SESSION_S) as processes,
        probing(processes, destination) as probers,
    ):
        reader = OwnReader(zookeeper.hosts, destination, table, timeout_s=ANSWER_S)
        work = Work(mariadb, table, reader)
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        zookeeper.kill()
        time.sleep(SESSION_S + 1)
        zookeeper.start()
        moment = time.monotonic()
        assert poll_until(lambda: work.reads_after(moment), 60), work.problem
        time.sleep(SETTLED_S)
        work.finish()
    work.check()
    check_one_at_a_time(probers)
