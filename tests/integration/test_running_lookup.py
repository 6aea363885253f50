"""Clients of Arrow Flight find the running server by ZooKeeper or by a list, and find it again when it moves: in the
middle of a stream, and in the middle of a part of the log."""

import json
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest

import penstock
from penstock.client import FlightClient, ServerConnection
from penstock.client.changes import ChangeStream
from penstock.coordinate import RunningLookup, SessionManager, ZooKeeperTree, canal, shared_lookup
from penstock.coordinate.canal import MemberNode, RunningNode
from penstock.errors import ConfigurationError, NotRunningError, ServerUnavailableError
from penstock.model import TableName
from penstock.testing import DatabaseServer, free_port, poll_until
from tests.services.zookeeper import ZooKeeper
from tests.support.admin_support import served, settings_with, shop_folder
from tests.support.capture import end_of, execute
from tests.support.certificates import Certificates
from tests.support.cluster import find_running, servers

pytestmark = pytest.mark.waits
SESSION_S = 3.0
BLOBS = 240
BLOB_BYTES = 200_000  # all of them are more than is on the way between a server and a client that does not read


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, body LONGTEXT)")
    return name


class Reading:
    """Rows that one thread writes all the time, and that others read as changes, one by each connection."""

    def __init__(self, source: DatabaseServer, table: str, connections: Sequence[ServerConnection]) -> None:
        start = connections[0].positions()["latest"]
        self._source, self._table = source, table
        self._streams = [there.changes(table, columns=["id"], start=start) for there in connections]
        self._ended = threading.Event()
        self.written = 0
        self.read: list[list[int]] = [[] for _ in connections]
        self.problems = list[Exception]()
        readers = [
            threading.Thread(target=self._read, args=pair) for pair in zip(self._streams, self.read, strict=True)
        ]
        self._threads = [threading.Thread(target=self._write), *readers]

    def _write(self) -> None:
        with self._source.connect() as connection, connection.cursor() as cursor:
            while not self._ended.wait(0.01):
                cursor.execute(f"INSERT INTO {self._table} VALUES ({self.written}, '')")
                connection.commit()
                self.written += 1

    def _read(self, changes: ChangeStream, read: list[int]) -> None:
        try:
            for batch in changes:
                read += batch.column("id").to_pylist()
        except Exception as error:  # noqa: BLE001 - for who looks at the end
            self.problems.append(error)

    @property
    def least(self) -> int:
        """How many rows all have read."""
        return min(map(len, self.read))

    def wait_for(self, rows: int) -> None:
        assert poll_until(lambda: self.least >= rows or bool(self.problems), 60), (rows, self.least)
        assert self.problems == []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Each row has come once, in order."""
        self._ended.set()
        try:
            self._threads[0].join(30)
            self.wait_for(self.written)
        finally:
            for changes in self._streams:
                changes.close()
            for thread in self._threads:
                thread.join(30)
        assert self.read == [list(range(self.written))] * len(self.read)


def write_blobs(source: DatabaseServer, table: str) -> None:
    with source.connect() as connection, connection.cursor() as cursor:
        for number in range(BLOBS):
            cursor.execute(f"INSERT INTO {table} VALUES ({-number - 1}, REPEAT('x', {BLOB_BYTES}))")
            connection.commit()


@pytest.mark.timeout(120)
def test_streams_and_parts_of_the_log_continue_at_the_next_server(
    tmp_path: Path,
    mariadb: DatabaseServer,
    zookeeper: ZooKeeper,
    table: str,
    destination: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By ZooKeeper, and by a list that begins with a server that is dead."""
    with ExitStack() as stack:
        processes = stack.enter_context(
            servers(tmp_path, mariadb, [zookeeper.hosts] * 2, [destination], session_s=SESSION_S)
        )
        names = [f"127.0.0.1:{free_port()}", *(process.flight_address for process in processes)]
        ways = [f"zookeeper://{zookeeper.hosts}", ",".join(names)]
        clients = [
            stack.enter_context(closing(FlightClient(server, destination, retry_timeout_s=60))) for server in ways
        ]
        connections = [stack.enter_context(penstock.connect(server, destination=destination)) for server in ways]
        start = clients[0].store_bounds()["latest"]
        write_blobs(mariadb, table)
        end = end_of(mariadb)  # the streams below begin where capture is then
        assert poll_until(lambda: clients[0].store_bounds()["latest"] >= end, 60)
        with Reading(mariadb, table, connections) as rows:
            rows.wait_for(50)
            tickets = clients[0].plan_parts([TableName.parse(table)], start, clients[0].store_bounds()["latest"])
            whole = {**json.loads(tickets[0]), "end": json.loads(tickets[-1])["end"]}
            ticket = json.dumps(whole).encode()
            parts = [client.read_part(ticket) for client in clients]
            events = [_positions(next(part)) for part in parts]
            find_running(processes, zookeeper.hosts, destination).kill()
            read = rows.least
            for part, part_events in zip(parts, events, strict=True):
                part_events += [event for block in part for event in _positions(block)]
            rows.wait_for(read + 50)
        again = [event for block in clients[0].read_part(ticket) for event in _positions(block)]
    assert again == sorted(set(again))
    assert events == [again, again]
    texts = [record.getMessage() for record in caplog.records]
    assert sum(text.startswith("range read from Penstock server interrupted") for text in texts) >= len(ways), texts
    assert sum(text.startswith("change stream from Penstock server lost") for text in texts) >= len(ways), texts


def _positions(block: Any) -> list[tuple[str, int]]:
    return [(block.file, int(position)) for position in block.column("position")]


@pytest.mark.timeout(120)
def test_a_server_that_hangs_is_left_when_another_one_runs_it(
    tmp_path: Path, mariadb: DatabaseServer, zookeeper: ZooKeeper, table: str, destination: str
) -> None:
    """It does not end its streams itself, and does not answer calls."""
    where = f"zookeeper://{zookeeper.hosts}"
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts] * 2, [destination], session_s=SESSION_S) as processes,
        penstock.connect(where, destination=destination) as there,
        Reading(mariadb, table, [there]) as rows,
    ):
        rows.wait_for(50)
        old = find_running(processes, zookeeper.hosts, destination)
        old.send(signal.SIGSTOP)
        assert there.status()["state"]
        rows.wait_for(rows.written + 50)
        assert find_running(processes, zookeeper.hosts, destination) is not old


@pytest.mark.timeout(120)
def test_zookeeper_is_restarted_under_a_stream(
    tmp_path: Path,
    mariadb: DatabaseServer,
    private_server: Callable[..., Any],
    table: str,
    destination: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    zookeeper: ZooKeeper = private_server("zookeeper")
    with (
        servers(tmp_path, mariadb, [zookeeper.hosts], [destination], session_s=SESSION_S),
        penstock.connect(f"zookeeper://{zookeeper.hosts}", destination=destination) as there,
        Reading(mariadb, table, [there]) as rows,
    ):
        rows.wait_for(50)
        zookeeper.kill()
        assert poll_until(lambda: "change stream from Penstock server lost" in caplog.text, 30)
        zookeeper.start()
        rows.wait_for(rows.written + 50)
        assert there.status()["state"]


# -- how it is found


def test_a_server_with_tls_is_found_below_a_chroot(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    chroot = f"{zookeeper.hosts}/{secrets.token_hex(4)}"
    with closing(ZooKeeperTree(zookeeper.hosts)) as tree:
        tree.create(chroot.removeprefix(zookeeper.hosts), b"")
    made = Certificates(tmp_path / "tls", "127.0.0.1")
    flight = {"port": 0, "tls_cert": str(made.cert), "tls_key": str(made.key), "tokens": {"search": "secret-token"}}
    settings = settings_with(shop_folder(tmp_path / "logs"), {"zookeeper": chroot}, flight=flight)
    with (
        served(settings) as server,
        penstock.connect(
            f"zookeeper://{chroot}", destination="shop", token="secret-token", tls_ca=str(made.ca)
        ) as there,
    ):
        assert there.status()["state"]
        changes = there.changes("shop.product", start="earliest")
        assert next(iter(changes)).num_rows
        changes.close()
        assert RunningLookup(chroot, idle_s=0.1).find("shop").flight_url == f"grpc+tls://{server.address}"


def test_a_client_that_wants_tls_does_not_do_without(tmp_path: Path, zookeeper: ZooKeeper, destination: str) -> None:
    made = Certificates(tmp_path / "tls", "127.0.0.1")
    with ZooKeeperNodes(zookeeper.hosts, destination) as nodes:
        nodes.join("a:1", "grpc://127.0.0.1:1")
        nodes.run("a:1")
        with (
            penstock.connect(f"zookeeper://{zookeeper.hosts}", destination=destination, tls_ca=str(made.ca)) as there,
            pytest.raises(ConfigurationError, match="does not speak TLS: leave tls_ca out"),
        ):
            there.status()


# -- who does not find one


def test_nobody_runs_it(zookeeper: ZooKeeper, destination: str) -> None:
    with ZooKeeperNodes(zookeeper.hosts, destination) as nodes:
        where = f"zookeeper://{zookeeper.hosts}"
        with penstock.connect(where, destination=destination, retry_timeout_s=0.3) as there:
            text = f"no server runs '{destination}': ZooKeeper at {zookeeper.hosts} has no running server of"
            with pytest.raises(ServerUnavailableError, match=f"{text} '{destination}': no server there has it$"):
                there.status()
            nodes.join("a:1", "grpc://127.0.0.1:1")
            with pytest.raises(ServerUnavailableError, match=f"{text} '{destination}': a:1 could run it$"):
                there.status()
            nodes.run("a:1")
            with pytest.raises(ServerUnavailableError) as told:
                there.status()
        assert str(told.value) == (
            f"no server runs '{destination}': no Penstock server answers at 127.0.0.1:1 (named by ZooKeeper at"
            f" {zookeeper.hosts})"
        )


def test_no_zookeeper_answers() -> None:
    dead = f"127.0.0.1:{free_port()}"
    with (
        penstock.connect(f"zookeeper://{dead}", destination="shop", retry_timeout_s=0) as there,
        pytest.raises(ServerUnavailableError, match=f"no server runs 'shop': ZooKeeper at {dead} does not answer"),
    ):
        there.status()


def test_a_server_that_cannot_be_asked_is_not_found(zookeeper: ZooKeeper, destination: str) -> None:
    lookup = RunningLookup(zookeeper.hosts, idle_s=0.2)
    with ZooKeeperNodes(zookeeper.hosts, destination) as canals, ZooKeeperNodes(zookeeper.hosts, destination) as old:
        canals.join("a:1", "")
        canals.run("a:1")
        with pytest.raises(NotRunningError, match=r"a:1 runs '.*', and has not published.*is it a canal server"):
            lookup.find(destination)
        canals.pause("a:1")
        with pytest.raises(NotRunningError, match="a:1 has paused"):
            lookup.find(destination)
        canals.run("b:1")
        old.join("b:1", "grpc://c:1")
        with pytest.raises(NotRunningError, match="has not published"):
            lookup.find(destination)
        old.run("b:1")
        assert lookup.find(destination).flight_url == "grpc://c:1"


def test_a_process_has_one_connection_and_closes_it_when_nobody_asks(zookeeper: ZooKeeper, destination: str) -> None:
    lookup = RunningLookup(zookeeper.hosts, idle_s=0.2)
    assert not lookup.is_connected
    for _ in range(2):
        with pytest.raises(NotRunningError):
            lookup.find(destination)
        assert lookup.is_connected
        assert poll_until(lambda: not lookup.is_connected, 20)
    assert shared_lookup(zookeeper.hosts) is shared_lookup(zookeeper.hosts)


def test_a_stream_is_cancelled_when_its_server_changes(zookeeper: ZooKeeper, destination: str) -> None:
    class Open:
        def __init__(self) -> None:
            self.cancelled = threading.Event()

        def cancel(self) -> None:
            self.cancelled.set()

    lookup, first, second, forgotten = RunningLookup(zookeeper.hosts, idle_s=0.2), Open(), Open(), Open()
    with ZooKeeperNodes(zookeeper.hosts, destination) as nodes:
        nodes.join("a:1", "grpc://a:2")
        nodes.run("a:1")
        running = lookup.find(destination)
        for stream in (first, second, forgotten):
            lookup.follow(destination, running, stream)
        del forgotten, stream
        assert not first.cancelled.wait(0.5)
        assert lookup.is_connected
    assert first.cancelled.wait(20)
    assert second.cancelled.wait(20)
    assert poll_until(lambda: not lookup.is_connected, 20)


class ZooKeeperNodes:
    """The nodes of one server, which end with its session."""

    def __init__(self, hosts: str, destination: str) -> None:
        self._sessions, self._destination = SessionManager(hosts), destination

    def __enter__(self) -> Self:
        self._sessions.start()
        self._sessions.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._sessions.close()

    def join(self, address: str, flight_url: str) -> None:
        self._make(canal.member_path(self._destination, address), MemberNode(flight_url).to_bytes())

    def run(self, address: str) -> None:
        self._make(canal.running_path(self._destination), RunningNode(address).to_bytes())

    def pause(self, address: str) -> None:
        self._make(canal.running_path(self._destination), RunningNode(address, is_active=False).to_bytes())

    def _make(self, path: str, value: bytes) -> None:
        session = self._sessions.require()
        node = session.get_node(path)
        if node is not None:
            session.delete(path, node.version)
        assert session.create_ephemeral(path, value)
