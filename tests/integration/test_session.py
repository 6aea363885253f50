"""A session with a real ZooKeeper, its lease, and the lock of a client that rests on it."""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kazoo.client import KazooClient

from penstock.coordinate import ClientLock, ServerLookup, SessionManager, claim, cluster_servers, running_server
from penstock.coordinate.lease import boot_clock
from penstock.errors import CoordinationError
from penstock.testing import free_port, poll_until
from tests.services.zookeeper import ZooKeeper

pytestmark = pytest.mark.waits
NewSession = Callable[..., SessionManager]


class Heard:
    def __init__(self) -> None:
        self.told: list[str] = []

    def on_lost(self) -> None:
        self.told.append("lost")

    def on_back(self) -> None:
        self.told.append("back")


@pytest.fixture
def new_session(zookeeper: ZooKeeper) -> Iterator[NewSession]:
    with ExitStack() as stack:

        def make(hosts: str = zookeeper.hosts, session_s: float = 3.0) -> SessionManager:
            session = SessionManager(hosts, session_s=session_s)
            session.start()
            stack.callback(session.close)
            return session

        yield make


def expire(zookeeper: ZooKeeper, session: SessionManager) -> None:
    """Another client takes the session, and ends it."""
    client: Any = session.require()._client
    thief: Any = KazooClient(zookeeper.hosts, client_id=client.client_id)
    thief.start()
    thief.stop()
    thief.close()


@pytest.mark.parametrize(("asked_s", "agreed_s"), [(0.5, 1.0), (3.0, 3.0), (60.0, 10.0)])
def test_the_lease_is_shorter_than_what_was_agreed_on(new_session: NewSession, asked_s: float, agreed_s: float) -> None:
    session = new_session(session_s=asked_s)
    assert poll_until(lambda: session.current is not None and session.current.timeout_s == agreed_s, 30)
    assert session.lease_until - boot_clock() < agreed_s * 2 / 3


def test_it_is_renewed(new_session: NewSession) -> None:
    session = new_session(session_s=6.0)
    link = session.wait(30)
    until, last = session.lease_until, link._client.last_zxid
    assert poll_until(lambda: session.lease_until > until + 3, 30)
    assert session.current is link
    assert link._client.last_zxid > last  # a quorum has agreed, not one server answered


def test_a_session_that_zookeeper_has_ended(zookeeper: ZooKeeper, new_session: NewSession) -> None:
    """What was of the old one is an error, and the new one is another."""
    session, heard = new_session(), Heard()
    old = session.wait(30)
    session.listen(heard)
    path = f"/test/{secrets.token_hex(4)}"
    assert old.create_ephemeral(path, b"")
    expire(zookeeper, session)
    assert poll_until(lambda: heard.told == ["lost", "back"], 30)
    assert not old.lease.is_held()
    for ask in (
        lambda: old.get_node(path),
        lambda: old.create_ephemeral(path, b""),
        lambda: claim(old, f"{path}-epoch"),
    ):
        with pytest.raises(CoordinationError, match="has ended"):
            ask()
    new = session.require()
    assert new.session_id != old.session_id
    assert session.past == {old.session_id}
    assert new.get_node(path) is None


def test_a_zookeeper_that_is_not_there(new_session: NewSession) -> None:
    session = new_session(f"127.0.0.1:{free_port()}", 1.0)
    with pytest.raises(CoordinationError, match=r"there is no session with ZooKeeper at .* does not answer"):
        session.wait(3)
    assert not session.is_held()


def test_nodes(new_session: NewSession) -> None:
    link = new_session().wait(30)
    path, woken = f"/test/{secrets.token_hex(4)}", threading.Event()
    assert link.get_node(path, woken.set) is None
    assert link.create_ephemeral(path, b"1")
    assert woken.wait(10)
    assert not link.create_ephemeral(path, b"2")
    node = link.get_node(path)
    assert node is not None
    assert (node.value, node.owner) == (b"1", link.session_id)
    assert not link.delete(path, node.version + 1)
    assert link.delete(path, node.version)
    assert not link.delete(path, node.version)
    assert link.child_names(f"{path}/none") == []


def test_where_clients_find_servers(new_session: NewSession, canal: Any, destination: str) -> None:
    session = new_session()
    session.wait(30)
    servers = ServerLookup(session, destination)
    assert (servers.running(), servers.members()) == (None, [])
    path = f"/otter/canal/destinations/{destination}"
    canal.create(f"{path}/cluster/b:1", makepath=True)
    canal.create(f"{path}/cluster/a:1")
    canal.create(f"{path}/running", b'{"active":true,"address":"a:1"}')
    assert servers.wait_changed(10)
    assert (running_server(session, destination), cluster_servers(session, destination)) == ("a:1", ["a:1", "b:1"])
    canal.set(f"{path}/running", b'{"active":false,"address":"a:1"}')
    assert running_server(session, destination) is None


class Client:
    def __init__(self, session: SessionManager, destination: str, address: str, **settings: Any) -> None:
        self.lost: list[str] = []
        self.session = session
        self.lock = ClientLock(session, destination, 1001, address, on_lost=self.lost.append, **settings)
        self.lock.start()


@pytest.fixture
def new_client(new_session: NewSession, destination: str) -> Iterator[Callable[..., Client]]:
    with ExitStack() as stack:

        def make(address: str, **settings: Any) -> Client:
            client = Client(new_session(), destination, address, **settings)
            stack.callback(client.lock.close)
            return client

        yield make


def test_one_client_at_a_time(new_client: Callable[..., Client], canal: Any, destination: str) -> None:
    first, second = new_client("10.0.0.5:49832", delay_s=0.5), new_client("10.0.0.6:1", delay_s=0.5)
    assert first.lock.acquire(30)
    path = f"/otter/canal/destinations/{destination}/1001/running"
    assert canal.get(path)[0] == b'{"active":true,"address":"10.0.0.5:49832","clientId":1001}'
    assert not second.lock.acquire(1)
    first.lock.release()
    assert canal.exists(path) is None
    assert second.lock.acquire(30)
    assert not first.lock.is_held()
    assert first.lost == []


def test_the_lock_of_a_client_that_is_gone(
    zookeeper: ZooKeeper, new_client: Callable[..., Client], canal: Any, destination: str
) -> None:
    """The former owner has it at once, the other after the delay."""
    first, second = new_client("a:1", delay_s=2.0), new_client("b:1", delay_s=2.0)
    assert first.lock.acquire(30)
    assert not second.lock.acquire(0.3)
    expire(zookeeper, first.session)
    assert poll_until(lambda: bool(first.lost), 30)
    assert not first.lock.is_held()
    assert first.lock.acquire(30)
    assert not second.lock.acquire(0.3)
    gone = boot_clock()
    expire(zookeeper, first.session)
    assert second.lock.acquire(30)
    assert boot_clock() - gone > 1.5
    assert first.lost == ["the session with ZooKeeper was lost"] * 2


@pytest.mark.parametrize("method", ["paused", "removed"])
def test_an_operator_takes_the_lock_away(
    new_client: Callable[..., Client], canal: Any, destination: str, method: str
) -> None:
    client = new_client("a:1")
    assert client.lock.acquire(30)
    path = f"/otter/canal/destinations/{destination}/1001/running"
    if method == "paused":
        canal.set(path, b'{"active":false,"address":"a:1","clientId":1001}')
    else:
        canal.delete(path)
    assert poll_until(lambda: bool(client.lost), 30)
    assert not client.lock.is_held()
    assert poll_until(lambda: canal.exists(path) is None, 30)
    assert client.lock.acquire(30)
