"""Subscriptions, batches and cursors in a real ZooKeeper: canal's paths, lost connections, two servers."""

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kazoo.client import KazooClient

from penstock.coordinate import ZooKeeperTree, claim
from penstock.errors import CoordinationError, FencedError
from penstock.meta import Cursor, KeptMeta, ZooKeeperKeeper
from penstock.model import Position
from tests.services.zookeeper import ZooKeeper
from tests.unit.meta.test_contract import at, batch

PERIODS = {"zookeeper": None, "mixed": 0.0, "period-mixed": 0.2}
_CURSOR = (
    b'{"@type":"com.alibaba.otter.canal.protocol.position.LogPosition","identity":{"slaveId":-1,"sourceAddress":'
    b'{"address":"mysql","port":3306}},"postion":{"gtid":"","included":false,"journalName":"mysql-bin.000032",'
    b'"position":696,"serverId":1,"timestamp":1589189724000}}'
)


@pytest.fixture
def destination() -> str:
    return f"d{secrets.token_hex(4)}"


@pytest.fixture
def canal(zookeeper: ZooKeeper) -> Iterator[Any]:
    """What canal would see."""
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


def meta_of(zookeeper: ZooKeeper, destination: str, period_s: float | None = None, **options: Any) -> KeptMeta:
    tree = ZooKeeperTree(zookeeper.hosts, timeout_s=3.0)
    return KeptMeta(destination, ZooKeeperKeeper(destination, tree, **options), period_s=period_s)


def eventually(holds: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(500):
        if holds():
            return
        waiting.wait(0.02)
    pytest.fail("it did not come to hold")


def test_what_canal_wrote_is_read(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}/1001"
    canal.create(f"{path}/filter", b"shop\\..*", makepath=True)
    canal.create(f"{path}/cursor", _CURSOR)
    canal.create(f"/otter/canal/destinations/{destination}/running", b"{}")
    with meta_of(zookeeper, destination) as meta:
        assert meta.subscriptions() == {1001: "shop\\..*"}
        assert meta.cursor(1001) == Cursor(Position("mysql-bin.000032", 696), 0, "", 1, ("mysql", 3306))


def test_what_is_written_is_where_canal_looks(zookeeper: ZooKeeper, destination: str, canal: Any) -> None:
    path = f"/otter/canal/destinations/{destination}/1001"
    with meta_of(zookeeper, destination) as meta:
        meta.subscribe(1001, "shop.a")
        meta.update_cursor(1001, Cursor(Position("mysql-bin.000032", 696, 1589189724), 0, "", 1, ("mysql", 3306)))
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
        meta.update_cursor(1, Cursor(at(100), epoch=3))
        for number in range(3):
            meta.add_batch(1, batch(100 + number, 101 + number))
        meta.forget(2)
    with meta_of(zookeeper, destination, PERIODS[kind]) as meta:
        assert meta.subscriptions() == {1: ""}
        assert meta.cursor(1) == Cursor(at(100), epoch=3)
        assert list(meta.batches(1)) == ([] if kind == "period-mixed" else [1, 2, 3])
        if kind != "period-mixed":
            assert meta.first_batch(1) == (1, batch(100, 101))
            assert meta.add_batch(1, batch(200, 201)) == 4


@pytest.mark.parametrize("kind", ["mixed", "period-mixed"])
def test_it_is_kept_without_being_asked(zookeeper: ZooKeeper, destination: str, canal: Any, kind: str) -> None:
    path = f"/otter/canal/destinations/{destination}/1/cursor"
    with meta_of(zookeeper, destination, PERIODS[kind]) as meta:
        meta.subscribe(1)
        meta.update_cursor(1, Cursor(at(100)))
        eventually(lambda: canal.exists(path) is not None and b'"position":100' in canal.get(path)[0])


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
            found = super().read(path)
            if self.looks == 1:
                assert claim(other, path).epoch == 1
            return found

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
    with meta_of(server, destination) as found:
        assert (found.cursor(1), found.cursor(2)) == (Cursor(at(300)), Cursor(at(200)))


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(CoordinationError, match=r"ZooKeeper at 127\.0\.0\.1:1 does not answer"):
        ZooKeeperTree("127.0.0.1:1", timeout_s=0.5)
