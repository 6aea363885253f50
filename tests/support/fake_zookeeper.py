"""A ZooKeeper without a wire, whose sessions end when the test says so."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from penstock.coordinate.lease import Lease
from penstock.coordinate.tree import Wake, ZkNode
from penstock.coordinate.zk_session import Listener
from penstock.errors import CoordinationError, FencedError

LEASE_S = 4.0
SESSION_S = 6.0


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeZooKeeper:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.nodes: dict[str, ZkNode] = {}
        self.wakes: list[tuple[str, Wake]] = []
        self.sessions: list[FakeNodes] = []
        self.expired = set[int]()

    def begin(self) -> "FakeNodes":
        self.sessions.append(FakeNodes(self, len(self.sessions) + 1))
        return self.sessions[-1]

    def advance(self, seconds: float) -> None:
        """While all who have a session keep it, but those that are cut off: theirs ends in time."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + LEASE_S / 2)
            for session in self.sessions:
                if not session.fails and session.session_id not in self.expired and session.lease.is_held():
                    session.lease.renew(self.clock.now + LEASE_S)
                    session.heard = self.clock.now
                elif self.clock.now >= session.heard + SESSION_S:
                    self.expire(session.session_id)

    def expire(self, session_id: int) -> None:
        self.expired.add(session_id)
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self.put(path, None)

    def put(self, path: str, value: bytes | None, owner: int | None = None) -> None:
        """Also what an operator does."""
        before = self.nodes.pop(path, None)
        if value is not None:
            version = 0 if before is None else before.version + 1
            kept = before.owner if before is not None else 0
            self.nodes[path] = ZkNode(value, version, kept if owner is None else owner)
        changed = {path, path.rpartition("/")[0]}
        woken = [wake for watched, wake in self.wakes if watched in changed]
        self.wakes = [(watched, wake) for watched, wake in self.wakes if watched not in changed]
        for wake in woken:
            wake()


class FakeNodes:
    """`fails`: as if the connection were cut. `stall` is called before the next request gets to ZooKeeper."""

    def __init__(self, zookeeper: FakeZooKeeper, session_id: int) -> None:
        self.session_id = session_id
        self.lease = Lease(zookeeper.clock)
        self.lease.renew(zookeeper.clock() + LEASE_S)
        self.fails = False
        self.heard = zookeeper.clock()
        self.stall: Callable[[], None] | None = None
        self._zookeeper = zookeeper

    def _check(self) -> None:
        if self.fails or not self.lease.is_held():
            raise CoordinationError("cut")
        stall, self.stall = self.stall, None
        if stall is not None:
            stall()
        if self.fails or self.session_id in self._zookeeper.expired:
            raise CoordinationError("cut")

    def get_node(self, path: str, wake: Wake | None = None) -> ZkNode | None:
        self._check()
        if wake is not None:
            self._zookeeper.wakes.append((path, wake))
        return self._zookeeper.nodes.get(path)

    def child_names(self, path: str, wake: Wake | None = None) -> list[str]:
        self._check()
        if wake is not None:
            self._zookeeper.wakes.append((path, wake))
        below = (node.removeprefix(f"{path}/") for node in self._zookeeper.nodes if node.startswith(f"{path}/"))
        return sorted({name.partition("/")[0] for name in below})

    def children(self, path: str) -> list[str]:
        return self.child_names(path)

    def create_ephemeral(self, path: str, value: bytes) -> bool:
        self._check()
        if path in self._zookeeper.nodes:
            return False
        self._zookeeper.put(path, value, self.session_id)
        return True

    def delete(self, path: str, version: int) -> bool:
        self._check()
        node = self._zookeeper.nodes.get(path)
        if node is None or node.version != version:
            return False
        self._zookeeper.put(path, None)
        return True

    def read(self, path: str) -> tuple[bytes, int] | None:
        node = self.get_node(path)
        return None if node is None else (node.value, node.version)

    def create(self, path: str, value: bytes) -> None:
        self._check()
        if path not in self._zookeeper.nodes:
            self._zookeeper.put(path, value, 0)

    def commit(self, changes: Mapping[str, bytes | None], check: tuple[str, int] | None = None) -> None:
        self._check()
        if check is not None:
            node = self._zookeeper.nodes.get(check[0])
            if node is None or node.version != check[1]:
                raise FencedError("changed")
        for path, value in changes.items():
            self._zookeeper.put(path, value)

    def close(self) -> None: ...


class FakeSessions:
    def __init__(self, zookeeper: FakeZooKeeper) -> None:
        self.zookeeper = zookeeper
        self.current: FakeNodes | None = zookeeper.begin()
        self.past: set[int] = set()
        self.listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self.listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        with suppress(ValueError):
            self.listeners.remove(listener)

    def lose(self) -> int:
        """What a SessionManager does when the lease is out."""
        assert self.current is not None
        session, self.current = self.current, None
        session.lease.end()
        self.past.add(session.session_id)
        for listener in list(self.listeners):
            listener.on_lost()
        return session.session_id

    def come_back(self) -> None:
        self.current = self.zookeeper.begin()
        for listener in list(self.listeners):
            listener.on_back()
