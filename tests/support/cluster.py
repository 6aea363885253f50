"""Several servers as processes with one ZooKeeper, and who of them serves when."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from penstock.client.canal import CanalConnector
from penstock.coordinate import RunningLookup
from penstock.errors import NotRunningError, PenstockError
from penstock.testing import DatabaseServer, free_port, poll_until

SESSION_S = 6.0


@dataclass
class ServerProcess:
    """`penstock serve` with a file of its own."""

    folder: Path
    canal_port: int
    settings: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.canal_port}"

    @property
    def flight_address(self) -> str:
        return f"127.0.0.1:{self.settings['flight']['port']}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        self.launch()
        self.wait_until_serving()

    def launch(self) -> None:
        """Start the process, without waiting for it."""
        path = self.folder / "server.yml"
        path.write_text(yaml.safe_dump(self.settings), encoding="utf-8")
        command = [sys.executable, "-c", "from penstock.cli import main; main()", "-v", "serve", str(path)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_until_serving(self) -> None:
        assert poll_until(lambda: "serving" in self.log or self.has_ended, 60), self.log
        assert not self.has_ended, self.log

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def server_settings(
    source: DatabaseServer, zookeeper: str, port: int, destinations: list[str], *, session_s: float = SESSION_S
) -> dict[str, Any]:
    """Cursors are in ZooKeeper, events in memory."""
    connection = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
    return {
        "flight": {"port": free_port()},
        "canal": {"port": port},
        "admin": {"port": None},
        "zookeeper": zookeeper,
        "running": {"session_s": session_s},
        "instances": [{"destination": name, "source": connection} for name in destinations],
    }


@contextmanager
def servers(
    folder: Path,
    source: DatabaseServer,
    zookeepers: list[str],
    destinations: list[str],
    *,
    session_s: float = SESSION_S,
) -> Iterator[list[ServerProcess]]:
    """One for each way to ZooKeeper."""
    processes = list[ServerProcess]()
    try:
        for number, zookeeper in enumerate(zookeepers):
            server_folder = folder / str(number)
            server_folder.mkdir()
            port = free_port()
            settings = server_settings(source, zookeeper, port, destinations, session_s=session_s)
            processes.append(ServerProcess(server_folder, port, settings))
            processes[-1].launch()
        for process in processes:
            process.wait_until_serving()
        yield processes
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.send(signal.SIGCONT)
            process.kill()


def find_running(processes: list[ServerProcess], zookeeper: str, destination: str) -> ServerProcess:
    """Return the server that ZooKeeper names for a destination."""
    lookup, owners = RunningLookup(zookeeper, idle_s=0.1), list[ServerProcess]()

    def is_found() -> bool:
        with suppress(NotRunningError):
            url = lookup.find(destination).flight_url
            owners.extend(process for process in processes if url == f"grpc://{process.flight_address}")
        return bool(owners)

    assert poll_until(is_found, 60)
    return owners[0]


@dataclass
class Prober:
    """Asks one server again and again, and notes when it served."""

    server: ServerProcess
    destination: str
    client_id: int
    served: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    _closing: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        host, _, port = self.server.address.rpartition(":")
        while not self._closing.wait(0.005):
            connector = CanalConnector(host, int(port), self.destination, client_id=self.client_id, timeout_s=2)
            with suppress(PenstockError, OSError):
                connector.connect()
                connector.subscribe("no\\.table")
                while not self._closing.is_set():
                    begin = time.monotonic()
                    connector.get_without_ack(1)
                    self.served.append((begin, time.monotonic()))
                    self._closing.wait(0.005)
            connector.disconnect()

    def has_served_since(self, moment: float) -> bool:
        return bool(self.served) and self.served[-1][0] > moment

    def close(self) -> None:
        self._closing.set()


@contextmanager
def probing(processes: list[ServerProcess], destination: str) -> Iterator[list[Prober]]:
    probers = [Prober(process, destination, 2000 + number) for number, process in enumerate(processes)]
    threads = [threading.Thread(target=prober.run, daemon=True) for prober in probers]
    for thread in threads:
        thread.start()
    try:
        yield probers
    finally:
        for prober in probers:
            prober.close()
        for thread in threads:
            thread.join(10)


def check_one_at_a_time(probers: list[Prober]) -> int:
    """No server served after another had begun to; says how often it changed."""
    times = sorted((begin, end, number) for number, prober in enumerate(probers) for begin, end in prober.served)
    changes, last_end = 0, 0.0
    for (_, end, before), (begin, _, now) in pairwise(times):
        last_end = max(last_end, end)
        if now != before:
            changes += 1
            assert begin >= last_end - 0.01, f"server {now} served at {begin:.3f}, server {before} until {last_end:.3f}"
            later = [span for span in probers[before].served if span[0] > begin]
            earlier = [span for span in probers[now].served if span[0] < begin]
            assert not (later and earlier and later[0][0] < begin + 0.5), "two servers took turns"
    return changes
