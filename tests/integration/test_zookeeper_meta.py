"""Subscriptions, batches and cursors in a real ZooKeeper: canal's paths, lost connections, two servers."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest
from kazoo.client import KazooClient

from penstock.coordinate import ZooKeeperTree, claim
from penstock.errors import CoordinationError, FencedError
from penstock.meta import Cursor, PersistentMetaManager, ZooKeeperMetaBackend, ZooKeeperPositions
from penstock.model import Position
from penstock.testing import poll_until
from tests.services.zookeeper import ZooKeeper
from tests.support.meta_values import at, batch

PERIODS = {"zookeeper": None, "mixed": 0.0, "period-mixed": 0.2}
_CURSOR = (
    b'{"@type":"com.alibaba.otter.canal.protocol.position.LogPosition","identity":{"slaveId":-1,"sourceAddress":'
    b'{"address":"mysql","port":3306}},"postion":{"gtid":"","included":false,"journalName":"mysql-bin.000032",'
    b'"position":696,"serverId":1,"timestamp":1589189724000}}'
)


def meta_of(
    zookeeper: ZooKeeper, destination: str, period_s: float | None = None, **options: Any
) -> PersistentMetaManager:
    tree = ZooKeeperTree(zookeeper.hosts, timeout_s=3.0)
    return PersistentMetaManager(destination, ZooKeeperMetaBackend(destination, tree, **options), period_s=period_s)


def eventually(holds: Callable[[], bool]) -> None:
    assert poll_until(holds, 30), "it did not come to hold"


def is_kept(canal: Any, path: str, offset: int) -> bool:
    return canal.exists(path) is not None and b'"position":%d' % offset in canal.get(path)[0]


def test_what_canal_wrote_is_read(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}/1001"
    canal.create(f"{path}/filter", b"shop\\..*", makepath=True)
    canal.create(f"{path}/cursor", _CURSOR)
    canal.create(f"/otter/canal/destinations/{destination}/running", b"{}")
    with meta_of(zookeeper, destination) as meta:
        assert meta.subscriptions() == {1001: "shop\\..*"}
        assert meta.cursor(1001) == Cursor(Position("mysql-bin.000032", 696), 1, ("mysql", 3306))


def test_a_client_of_canal_without_a_filter_has_subscribed(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}"
    canal.create(f"{path}/1001/cursor", _CURSOR, makepath=True)
    canal.create(f"{path}/1002", makepath=True)
    with meta_of(zookeeper, destination) as meta:
        assert meta.subscriptions() == {1001: "", 1002: ""}
        lowest = meta.lowest_cursor()
        assert lowest is not None
        assert lowest.position == Position("mysql-bin.000032", 696)
        meta.forget(1001)
        assert canal.exists(f"{path}/1001") is None
        canal.create(f"{path}/1002/running", b"{}", ephemeral=True)  # whose client is still there
        meta.forget(1002)
        assert canal.exists(f"{path}/1002") is not None


def test_canal_does_not_see_a_client_that_has_left(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}"
    with meta_of(zookeeper, destination) as meta:
        meta.subscribe(1, "shop.a")
        meta.update_cursor(1, Cursor(at(100)))
        meta.add_batch(1, batch(100, 200))
        assert canal.exists(f"{path}/1/filter") is not None
        meta.unsubscribe(1)
        assert canal.exists(f"{path}/1") is None
    with meta_of(zookeeper, destination) as meta:
        assert (meta.subscriptions(), meta.cursor(1)) == ({}, Cursor(at(100)))
        meta.subscribe(1)
        assert canal.exists(f"{path}/1/filter") is None
        assert is_kept(canal, f"{path}/1/cursor", 100)
        assert canal.get_children(f"{path}/left") == []


def test_what_is_written_is_where_canal_looks(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}/1001"
    with meta_of(zookeeper, destination) as meta:
        meta.subscribe(1001, "shop.a")
        meta.update_cursor(1001, Cursor(Position("mysql-bin.000032", 696, 1589189724), 1, ("mysql", 3306)))
        assert canal.get(f"{path}/filter")[0] == b"shop.a"
        written = json.loads(canal.get(f"{path}/cursor")[0])
        assert written.pop("epoch") == 0
        assert next(iter(written)) == "@type"
        assert written == json.loads(_CURSOR)
        for number in range(3):
            meta.add_batch(1001, replace(batch(4 * number, 4 * number + 4), ack=None))
        assert sorted(canal.get_children(f"{path}/mark")) == ["0000000001", "0000000002", "0000000003"]
        meta.ack_batch(1001, 1)
        assert sorted(canal.get_children(f"{path}/mark")) == ["0000000002", "0000000003"]
        mark = json.loads(canal.get(f"{path}/mark/0000000002")[0])
        assert (mark["end"]["postion"]["position"], mark["endSeq"]) == (8, 8)


@pytest.mark.parametrize("kind", PERIODS)
def test_another_manager_sees_what_was_kept(zookeeper: ZooKeeper, destination: str, kind: str) -> None:
    with meta_of(zookeeper, destination, PERIODS[kind], with_batches=kind != "period-mixed") as meta:
        meta.subscribe(1)
        meta.subscribe(2, "x")
        meta.update_cursor(1, Cursor(at(100, epoch=3)))
        for number in range(3):
            meta.add_batch(1, batch(100 + number, 101 + number))
        meta.forget(2)
    with meta_of(zookeeper, destination, PERIODS[kind]) as meta:
        assert meta.subscriptions() == {1: ""}
        assert meta.cursor(1) == Cursor(at(100, epoch=3))
        assert list(meta.batches(1)) == ([] if kind == "period-mixed" else [1, 2, 3])
        if kind != "period-mixed":
            assert meta.first_batch(1) == (1, batch(100, 101))
            assert meta.add_batch(1, batch(200, 201)) > 3


@pytest.mark.parametrize("kind", ["mixed", "period-mixed"])
def test_it_is_kept_without_being_asked(zookeeper: ZooKeeper, destination: str, canal: Any, kind: str) -> None:
    path = f"/otter/canal/destinations/{destination}/1/cursor"
    with meta_of(zookeeper, destination, PERIODS[kind]) as meta:
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(100)))
        eventually(lambda: is_kept(canal, path, 100))


def test_the_older_of_two_servers_is_refused(zookeeper: ZooKeeper, destination: str) -> None:
    tree = ZooKeeperTree(zookeeper.hosts)
    path = f"/otter/canal/destinations/{destination}/epoch"
    first = claim(tree, path)
    with meta_of(zookeeper, destination, fence=first) as old:
        old.subscribe(1)
        old.update_cursor(1, Cursor(at(100)))
        second = claim(tree, path)
        assert second.epoch == first.epoch + 1
        with meta_of(zookeeper, destination, fence=second) as new:
            new.update_cursor(1, Cursor(at(200)))
            with pytest.raises(FencedError, match="another server has taken over"):
                old.update_cursor(1, Cursor(at(150)))
            assert old.cursor(1) == Cursor(at(100))  # what was not kept does not count
            new.update_cursor(1, Cursor(at(300)))
    tree.close()


def test_the_older_server_is_told_also_when_it_keeps_later(zookeeper: ZooKeeper, destination: str) -> None:
    tree = ZooKeeperTree(zookeeper.hosts)
    path = f"/otter/canal/destinations/{destination}/epoch"
    old = meta_of(zookeeper, destination, 0.0, fence=claim(tree, path))
    old.start()
    old.subscribe(1)
    old.flush()
    claim(tree, path)

    def is_told() -> bool:
        try:
            old.update_cursor(1, Cursor(at(100)))
        except FencedError:
            return True
        return False

    eventually(is_told)
    old.stop()
    tree.close()


def test_a_claim_never_lowers_an_epoch(zookeeper: ZooKeeper, destination: str) -> None:
    """Another server makes the node, and claims, between our look and our write."""
    path = f"/otter/canal/destinations/{destination}/epoch"
    other = ZooKeeperTree(zookeeper.hosts)

    class Late(ZooKeeperTree):
        looks = 0

        def read(self, path: str) -> tuple[bytes, int] | None:
            self.looks += 1
            value = super().read(path)
            if self.looks == 1:
                assert claim(other, path).epoch == 1
            return value

    tree = Late(zookeeper.hosts)
    assert claim(tree, path).epoch == 2
    tree.close()
    other.close()


def test_many_claims_at_once_have_an_epoch_each(zookeeper: ZooKeeper, destination: str) -> None:
    tree = ZooKeeperTree(zookeeper.hosts)
    path = f"/otter/canal/destinations/{destination}/epoch"
    epochs = list[int]()
    threads = [threading.Thread(target=lambda: epochs.append(claim(tree, path).epoch)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(epochs) == [1, 2, 3, 4, 5]
    tree.close()


@pytest.mark.zookeeper
def test_a_server_that_restarts(private_server: Callable[..., Any], destination: str) -> None:
    """What could not be kept is an error for the one who keeps at once, and comes later for the others."""
    server: ZooKeeper = private_server("zookeeper")
    meta, later = meta_of(server, destination), meta_of(server, destination, 0.0)
    meta.start()
    later.start()
    meta.subscribe(1)
    later.subscribe(2)
    later.flush()
    server.stop()
    with pytest.raises(CoordinationError, match=r"cannot be reached|does not answer"):
        meta.update_cursor(1, Cursor(at(100)))
    assert meta.cursor(1) is None
    later.update_cursor(2, Cursor(at(200)))
    eventually(lambda: bool(later.problem))
    server.start()
    eventually(lambda: not later.problem)
    meta.update_cursor(1, Cursor(at(300)))
    meta.stop()
    later.stop()
    with meta_of(server, destination) as reopened:
        assert (reopened.cursor(1), reopened.cursor(2)) == (Cursor(at(300)), Cursor(at(200)))


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(CoordinationError, match=r"ZooKeeper at 127\.0\.0\.1:1 does not answer"):
        ZooKeeperTree("127.0.0.1:1", timeout_s=0.5)


class Wire:
    """Between a client and ZooKeeper; it can be cut, and restored."""

    def __init__(self, hosts: str) -> None:
        host, _, port = hosts.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self._target)
                self._open += [near, far]
                for sender, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(sender, other), daemon=True).start()

    def _carry(self, sender: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := sender.recv(65536):
                other.sendall(data)
        for end in (sender, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.is_cut = True
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def close(self) -> None:
        self.cut()
        self._listener.close()


@pytest.mark.parametrize("kind", PERIODS)
def test_a_connection_that_is_lost(zookeeper: ZooKeeper, destination: str, canal: Any, kind: str) -> None:
    """Nothing that counts is lost, and what is not kept does not count where an ack is kept first."""
    path = f"/otter/canal/destinations/{destination}/1/cursor"
    with closing(Wire(zookeeper.hosts)) as wire:
        tree = ZooKeeperTree(wire.hosts, timeout_s=2.0)
        meta = PersistentMetaManager(destination, ZooKeeperMetaBackend(destination, tree), period_s=PERIODS[kind])
        meta.start()
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(100)))
        wire.cut()
        if PERIODS[kind] is None:
            with pytest.raises(CoordinationError, match=r"cannot be reached|does not answer"):
                meta.update_cursor(1, Cursor(at(200)))
            assert meta.cursor(1) == Cursor(at(100))
        else:
            meta.update_cursor(1, Cursor(at(200)))
            eventually(lambda: bool(meta.problem))
        wire.is_cut = False
        if PERIODS[kind] is None:
            meta.update_cursor(1, Cursor(at(200)))
        eventually(lambda: is_kept(canal, path, 200))
        eventually(lambda: not meta.problem)
        meta.stop()


@pytest.mark.parametrize("kind", PERIODS)
def test_a_session_that_expires(zookeeper: ZooKeeper, destination: str, canal: Any, kind: str) -> None:
    path = f"/otter/canal/destinations/{destination}/1/cursor"
    tree = ZooKeeperTree(zookeeper.hosts, timeout_s=5.0)
    with PersistentMetaManager(destination, ZooKeeperMetaBackend(destination, tree), period_s=PERIODS[kind]) as meta:
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(100)))
        session = expire(tree, zookeeper.hosts)
        meta.update_cursor(1, Cursor(at(200)))
        eventually(lambda: is_kept(canal, path, 200))
        assert session_of(tree) != session


def session_of(tree: ZooKeeperTree) -> Any:
    client: Any = tree._client  # pyright: ignore[reportPrivateUsage]
    return client.client_id


def expire(tree: ZooKeeperTree, hosts: str) -> Any:
    """Another client takes the session and ends it; gives what it was."""
    session = session_of(tree)
    thief: Any = KazooClient(hosts, client_id=session)
    thief.start()
    thief.stop()
    thief.close()
    return session


def test_a_fence_holds_after_a_lost_session(zookeeper: ZooKeeper, destination: str) -> None:
    """The old server comes back after its session ended, and after another has taken over."""
    path = f"/otter/canal/destinations/{destination}/epoch"
    tree, other = ZooKeeperTree(zookeeper.hosts), ZooKeeperTree(zookeeper.hosts)
    old = PersistentMetaManager(
        destination, ZooKeeperMetaBackend(destination, tree, fence=claim(tree, path)), period_s=None
    )
    told = threading.Event()
    old.on_fenced = lambda _: told.set()
    old.start()
    old.subscribe(1)
    expire(tree, zookeeper.hosts)
    old.update_cursor(1, Cursor(at(100)))  # nobody has taken over yet
    new = PersistentMetaManager(
        destination, ZooKeeperMetaBackend(destination, other, fence=claim(other, path)), period_s=None
    )
    expire(tree, zookeeper.hosts)
    with new:
        with pytest.raises(FencedError):
            old.update_cursor(1, Cursor(at(150)))
        assert told.wait(10)
        assert new.cursor(1) == Cursor(at(100))
    old.stop()


def test_the_position_of_capture(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    tree = ZooKeeperTree(zookeeper.hosts)
    path = f"/otter/canal/destinations/{destination}"
    fence = claim(tree, f"{path}/epoch")
    positions = ZooKeeperPositions(destination, tree, fence=fence)
    assert positions.load() is None
    positions.save(Cursor(at(100, epoch=3)))
    written = json.loads(canal.get(f"{path}/parse")[0])
    assert (next(iter(written)), written["postion"]["position"]) == ("@type", 100)
    assert ZooKeeperPositions(destination, tree).load() == Cursor(at(100, epoch=3))
    canal.set(f"{path}/parse", _CURSOR)
    assert positions.load() == Cursor(Position("mysql-bin.000032", 696), 1, ("mysql", 3306))
    claim(tree, f"{path}/epoch")
    with pytest.raises(FencedError):
        positions.save(Cursor(at(200, epoch=3)))
    tree.close()
