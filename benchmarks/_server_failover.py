"""Two servers with one ZooKeeper: the one that runs the destination is killed while rows are written and read."""

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._scale import scaled
from penstock.client.canal import CanalCluster
from penstock.testing import DatabaseServer, poll_until
from tests.services import SERVICES
from tests.support.cluster import servers

_SESSION_S = float(scaled(6, 2))


def failover(source: DatabaseServer, folder: Path) -> float:
    """Seconds for which no row came."""
    folder.mkdir()
    zookeeper: Any = SERVICES["zookeeper"].server(folder / "zookeeper").start()  # type: ignore[attr-defined]
    try:
        with servers(folder, source, [zookeeper.hosts] * 2, ["killed"], session_s=_SESSION_S) as processes:
            return _killed(source, processes, zookeeper.hosts)
    finally:
        zookeeper.kill()


def _killed(source: DatabaseServer, processes: list[Any], hosts: str) -> float:
    cluster, over, seen = CanalCluster.from_zookeeper(hosts, "killed"), threading.Event(), list[float]()

    def write() -> None:
        with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS shop.kill (id INT AUTO_INCREMENT PRIMARY KEY)")
            while not over.wait(0.01):
                cursor.execute("INSERT INTO shop.kill VALUES ()")

    def read() -> None:
        cluster.connect()
        cluster.subscribe("shop\\.kill")
        while not over.is_set():
            message = cluster.get_without_ack(1000, timeout_s=0.1)
            if not message.is_empty:
                seen.append(time.monotonic())
                cluster.ack(message.id)

    threads = [threading.Thread(target=target, daemon=True) for target in (read, write)]
    for thread in threads:
        thread.start()
    try:
        poll_until(lambda: len(seen) > 50, 30)
        next(process for process in processes if process.address == cluster.address).kill()
        count = len(seen)
        poll_until(lambda: len(seen) > count + 50, 60)
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
        cluster.close()
    return max(later - earlier for earlier, later in pairwise(seen))
