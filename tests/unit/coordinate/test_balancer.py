"""Servers that spread destinations among themselves, on a clock that the test sets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from penstock.coordinate import Balancer, BalancerSettings, Election, ElectionSettings
from penstock.coordinate.canal import SERVERS, election_nodes
from tests.support.fake_zookeeper import FakeClock, FakeSessions, FakeZooKeeper

DESTINATIONS = [f"d{number}" for number in range(6)]


class Server:
    def __init__(self, zookeeper: FakeZooKeeper, address: str, stack: ExitStack) -> None:
        self.session = FakeSessions(zookeeper)
        self.refuses = False
        self.starts = 0
        settings = BalancerSettings(settle_s=10, poll_s=2)
        self.balance = Balancer(self.session, address, settings=settings, clock=zookeeper.clock)
        self.runnings = {name: self._running(zookeeper, name, address, stack) for name in DESTINATIONS}

    def _running(self, zookeeper: FakeZooKeeper, name: str, address: str, stack: ExitStack) -> Election:
        options = {"settings": ElectionSettings(), "clock": zookeeper.clock}
        running = Election(self.session, election_nodes(name), address, self._start, lambda _: None, **options)
        release = running.release
        running.release = lambda reason: release(reason, 0.0)  # nobody else would give it up meanwhile
        running._callbacks.start()
        stack.callback(running.close)
        self.session.listen(running)
        self.balance.add(running)
        return running

    def _start(self, _: object) -> None:
        self.starts += 1
        if self.refuses:
            raise ValueError("not here")

    def step(self) -> None:
        self.balance.step()
        for running in self.runnings.values():
            for _ in range(20):
                wait_s = running.step()
                assert running._callbacks.wait(5)
                if wait_s and not running._woken.is_set():
                    break
                running._woken.clear()

    @property
    def load(self) -> int:
        return sum(running.is_held() for running in self.runnings.values())


class Shop:
    def __init__(self, stack: ExitStack) -> None:
        self.zookeeper = FakeZooKeeper(FakeClock())
        self.servers: dict[str, Server] = {}
        self._stack = stack

    def add(self, name: str) -> Server:
        self.servers[name] = Server(self.zookeeper, name, self._stack)
        return self.servers[name]

    def kill(self, name: str) -> None:
        self.zookeeper.expire(self.servers.pop(name).session.lose())

    def run(self, seconds: float, step_s: float = 0.25) -> list[str]:
        """What was moved meanwhile."""
        moved: list[str] = []
        owners = self.owners()
        for _ in range(int(seconds / step_s)):
            self.zookeeper.advance(step_s)
            for server in self.servers.values():
                server.step()
            after = self.owners()
            moved += [name for name in after if owners.get(name, after[name]) != after[name]]
            owners |= after
        return moved

    def owners(self) -> dict[str, str]:
        held = ((name, server) for name, server in self.servers.items())
        return {d: name for name, server in held for d, running in server.runnings.items() if running.is_held()}

    @property
    def loads(self) -> list[int]:
        return sorted(server.load for server in self.servers.values())


@pytest.fixture
def shop() -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(stack)


def test_a_server_that_comes_gets_its_share(shop: Shop) -> None:
    """One at a time, and then all is quiet."""
    shop.add("a:1")
    shop.run(1)
    assert shop.loads == [6]
    shop.add("b:1")
    shop.add("c:1")
    assert len(shop.run(15)) == 1
    assert len(shop.run(60)) == 3
    assert shop.loads == [2, 2, 2]
    assert shop.run(120) == []
    assert {path.rpartition("/")[2] for path in shop.zookeeper.nodes if path.startswith(f"{SERVERS}/")} == {
        *("a:1", "b:1", "c:1")
    }


def test_the_others_share_what_a_dead_one_had(shop: Shop) -> None:
    for name in ("a:1", "b:1", "c:1"):
        shop.add(name)
    shop.run(120)
    assert shop.loads == [2, 2, 2]
    shop.kill("b:1")
    shop.run(3)
    assert sum(shop.loads) == 6
    shop.run(60)
    assert shop.loads == [3, 3]
    shop.add("b:1")
    shop.run(60)
    assert shop.loads == [2, 2, 2]


def test_what_comes_back_is_left_alone_for_longer_each_time(shop: Shop) -> None:
    shop.add("a:1")
    shop.run(1)
    late = shop.add("b:1")
    late.refuses = True
    shop.run(100, step_s=1.0)
    first = late.starts
    shop.run(100, step_s=1.0)
    second = late.starts - first
    shop.run(100, step_s=1.0)
    assert shop.loads == [0, 6]
    assert Counter(shop.owners().values()) == {"a:1": 6}
    assert first > second >= late.starts - first - second
    late.refuses = False
    shop.run(400, step_s=2.0)
    assert shop.loads == [3, 3]
