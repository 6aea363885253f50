"""A reload tries the new source before the instance that runs is stopped."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.backoff import Backoff
from penstock.config import ConfFolder
from penstock.instance import Instance, InstanceState
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destinations import Destinations
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll

CLIENT = 1001


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    return f"{name}.t"


class Reader:
    """A client that never stops to get and ack, and what went wrong with that."""

    def __init__(self, instance: Instance) -> None:
        self._clients = instance.clients
        self._clients.subscribe(CLIENT, "", Start.latest())
        self._stopping = threading.Event()
        self.transactions, self.error = 0, None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                got = self._clients.get(CLIENT, BatchSize(100), 0.1)
                if got is not None:
                    self._clients.ack(CLIENT, got[0])
                    self.transactions += sum(block.boundaries.size for block in got[1].blocks)
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)


class Scene:
    def __init__(self, folder: Path, server: DatabaseServer) -> None:
        self.folder, self._server = folder, server
        self.destinations = Destinations()
        self.monitor = ConfigMonitor(ConfFolder(folder, 0), self.destinations, 5, backoff=Backoff(0.05, 0.1))

    def write(self, *, password: str | None = None, heartbeat_s: float = 0.3, start: str = "latest") -> None:
        server = self._server
        source = (
            f"{{host: {server.host}, port: {server.port}, user: {server.user}, heartbeat_s: {heartbeat_s},"
            f" password: '{server.password if password is None else password}'}}"
        )
        (self.folder / "shop.yml").write_text(f"source: {source}\nstart: '{start}'\nmeta: {{kind: memory}}\n")
        self.monitor.scan()

    @property
    def problem(self) -> str:
        return self.monitor.problems.get("shop", "")


@pytest.fixture
def scene(tmp_path: Path, mariadb: DatabaseServer) -> Iterator[Scene]:
    scene = Scene(tmp_path, mariadb)
    yield scene
    scene.monitor.stop()
    scene.destinations.stop_all()


def test_a_wrong_password_leaves_the_running_one_alone(scene: Scene, mariadb: DatabaseServer, table: str) -> None:
    scene.write()
    assert poll(lambda: scene.monitor.is_reconciled), scene.monitor.problems
    before = scene.destinations.running_instance("shop")
    reader = Reader(before)
    scene.write(password="wrong")
    assert poll(lambda: "reload failed 4 times" in scene.problem), scene.monitor.problems
    assert "check user and password" in scene.problem
    for number in range(5):
        execute(mariadb, f"INSERT INTO {table} VALUES ({number})")
    assert poll(lambda: reader.transactions >= 5), reader.error
    assert scene.destinations.running_instance("shop") is before
    assert before.state is InstanceState.FOLLOWING
    states = [step.state for step in before.states.history]
    assert states.count(InstanceState.FOLLOWING) == 1, "it was never stopped"
    reader.stop()
    assert reader.error is None
    scene.write(heartbeat_s=0.4)
    assert poll(lambda: scene.monitor.is_reconciled and not scene.problem)
    after = scene.destinations.running_instance("shop")
    assert after is not before
    assert before.state is InstanceState.STOPPED
    execute(mariadb, f"INSERT INTO {table} VALUES (100)")
    again = Reader(after)
    assert poll(lambda: again.transactions >= 1), again.error
    again.stop()


def test_a_start_that_is_none_leaves_the_running_one_alone(scene: Scene) -> None:
    scene.write()
    assert poll(lambda: scene.monitor.is_reconciled), scene.monitor.problems
    before = scene.destinations.running_instance("shop")
    scene.write(start="the day before")
    assert poll(lambda: "reload failed 2 times" in scene.problem), scene.monitor.problems
    assert scene.destinations.running_instance("shop") is before
    assert before.state is InstanceState.FOLLOWING
