"""Two MariaDB servers behind canal's port as one destination: our client, the Java client, and what others are told."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import penstock
from penstock.client.canal import CanalConnector
from penstock.config import ConfFolder, ServerSettings
from penstock.errors import PenstockError, ProtocolError
from penstock.server import Server
from penstock.testing import DatabaseServer, poll_until
from tests.services.canal_client import JAVA_CLIENT, Driver
from tests.support.capture import execute

pytestmark = [pytest.mark.mariadb, pytest.mark.timeout(120)]
SECOND = 1_800_000_000
SIDES = ("east", "west")


@pytest.fixture
def sources(private_server: Callable[..., Any]) -> dict[str, DatabaseServer]:
    servers = {name: private_server("mariadb") for name in SIDES}
    for width, server in zip((5, 9), servers.values(), strict=True):
        execute(server, "CREATE DATABASE d")
        execute(server, f"CREATE TABLE d.t (id INT({width}) PRIMARY KEY, side ENUM('east', 'west'))")
    return servers


def configuration(sources: dict[str, DatabaseServer], folder: Path, **group: Any) -> dict[str, Any]:
    def member(server: DatabaseServer) -> dict[str, Any]:
        source = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return {"source": source | {"heartbeat_s": 0.5}}

    members = {name: member(server) for name, server in sources.items()}
    return {
        "flight": {"port": 0},
        "canal": {"port": 0},
        "admin": {"port": None},
        "data_dir": str(folder),
        "groups": [{"destination": "all", "members": members, "canal": {"values": "penstock"}} | group],
    }


@contextmanager
def started(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def serving(sources: dict[str, DatabaseServer], folder: Path, **group: Any) -> Iterator[Server]:
    with started(Server(ServerSettings.model_validate(configuration(sources, folder, **group)))) as server:
        yield server


def connector_of(server: Server, destination: str = "all", **settings: Any) -> CanalConnector:
    assert server.canal is not None
    return CanalConnector("127.0.0.1", server.canal.port, destination, **settings)


def insert(sources: dict[str, DatabaseServer], numbers: range) -> None:
    """A transaction per second, which is what it says; the even ones in the east."""
    with ExitStack() as stack:
        connections = {side: stack.enter_context(sources[side].connect()) for side in SIDES}
        cursors = {side: stack.enter_context(connection.cursor()) for side, connection in connections.items()}
        for number in numbers:
            side = SIDES[number % 2]
            cursors[side].execute(f"SET timestamp = {SECOND + number}")
            cursors[side].execute(f"INSERT INTO d.t VALUES ({number}, '{side}')")


def got(connector: CanalConnector, count: int, *, acks: bool = True, size: int = 1000) -> list[tuple[int, str, str]]:
    """Number, side, and the type of the number."""
    changes = list[tuple[int, str, str]]()

    def is_enough() -> bool:
        message = connector.get_without_ack(size, timeout_s=0.5)
        rows = [row.afterColumns for _, change in message.row_changes() for row in change.rowDatas]
        changes.extend((int(row[0].value), row[1].value, row[0].mysqlType) for row in rows)
        if acks:
            connector.ack(message.id)
        return len(changes) >= count

    assert poll_until(is_enough, 60), f"{len(changes)} of {count} came"
    return changes


def numbers(rows: list[tuple[int, str, str]]) -> list[int]:
    return [number for number, _, _ in rows]


def test_two_servers_are_one_destination(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    with serving(sources, tmp_path) as server, connector_of(server) as connector:
        connector.subscribe("d\\.t")
        insert(sources, range(100))
        rows = got(connector, 100)
        assert numbers(rows) == list(range(100))
        assert {row[1:] for row in rows} == {("east", "int(5)"), ("west", "int(9)")}
        insert(sources, range(100, 110))
        assert numbers(got(connector, 10, acks=False)) == list(range(100, 110))
        connector.rollback()
        assert numbers(got(connector, 5, size=1)[:5]) == list(range(100, 105))
    insert(sources, range(110, 120))
    with serving(sources, tmp_path) as server, connector_of(server) as connector:
        connector.subscribe("d\\.t")
        rest = numbers(got(connector, 15))
        assert rest == list(range(rest[0], 120))
        assert 100 < rest[0] <= 105


def test_a_transaction_larger_than_a_batch_is_not_torn(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    with serving(sources, tmp_path) as server, connector_of(server) as connector:
        connector.subscribe("d\\.t")
        execute(
            sources["east"],
            "USE d",
            f"SET timestamp = {SECOND + 1}",
            "INSERT INTO t SELECT seq, 'east' FROM seq_1_to_30000",
        )
        execute(sources["west"], f"SET timestamp = {SECOND + 2}", "INSERT INTO d.t VALUES (1, 'west')")
        rows = got(connector, 30_001, size=16)
        assert [row[:2] for row in rows] == [(number, "east") for number in range(1, 30_001)] + [(1, "west")]


def test_a_member_that_is_restarted(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    """What was outstanding is redelivered, of the other member too."""
    with serving(sources, tmp_path) as server, connector_of(server) as connector:
        connector.subscribe("d\\.t")
        insert(sources, range(10))
        assert numbers(got(connector, 10)) == list(range(10))
        insert(sources, range(10, 20))
        assert numbers(got(connector, 10, acks=False)) == list(range(10, 20))
        server.destinations.halt("all.west")
        with pytest.raises(ProtocolError, match=r"all\.west.* was stopped manually"):
            connector.get_without_ack(1)
        server.destinations.resume("all.west")
        insert(sources, range(20, 30))
        with connector_of(server, rollback_on_connect=False) as again:
            assert numbers(got(again, 20)) == list(range(10, 30))


def test_a_silent_member_holds_the_others_for_a_moment(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    with serving(sources, tmp_path, hold_s=0.3) as server, connector_of(server) as connector:
        connector.subscribe("d\\.t")
        sources["west"].kill()
        execute(sources["east"], "INSERT INTO d.t VALUES (1, 'east')")
        assert numbers(got(connector, 1)) == [1]
        sources["west"].start()
        execute(sources["west"], "INSERT INTO d.t VALUES (2, 'west')")
        assert numbers(got(connector, 1)) == [2]


def test_others_are_told_what_a_group_is(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    with serving(sources, tmp_path) as server:
        with (
            connector_of(server, "all.east") as connector,
            pytest.raises(ProtocolError, match=r"'all\.east' is a part of 'all': subscribe to that"),
        ):
            connector.subscribe("")
        with (
            penstock.connect(f"grpc://{server.address}", destination="all", retry_timeout_s=0) as client,
            pytest.raises(PenstockError, match=r"'all' is a group.*all\.east, all\.west"),
        ):
            next(iter(client.changes("d.t")))
        assert [instance["destination"] for instance in server.report.status()["instances"]] == ["all.east", "all.west"]
        assert poll_until(lambda: server.report.readiness().is_ready, 30)


def test_a_group_of_a_conf_folder(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    """A member whose settings change continues with the new ones."""
    path, conf = tmp_path / "conf" / "server.yml", configuration(sources, tmp_path / "data")
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(conf), encoding="utf-8")
    folder = ConfFolder(path.parent)
    with started(Server(folder.read().server, folder, 0.5)) as server:
        assert poll_until(lambda: server.report.readiness().is_ready, 30)
        with connector_of(server) as connector:
            connector.subscribe("d\\.t")
            insert(sources, range(10))
            assert numbers(got(connector, 10)) == list(range(10))
        before = server.destinations.running_instance("all.east")
        conf["groups"][0]["members"]["east"]["store"] = {"memory": "32MiB"}
        path.write_text(yaml.safe_dump(conf), encoding="utf-8")
        assert poll_until(lambda: server.instances["all.east"] is not before, 30)
        assert poll_until(lambda: server.report.readiness().is_ready, 30)
        assert server.problems == {}
        with connector_of(server) as connector:
            connector.subscribe("d\\.t")
            insert(sources, range(10, 20))
            assert numbers(got(connector, 10)) == list(range(10, 20))


@pytest.mark.canal_java
def test_canals_java_client(sources: dict[str, DatabaseServer], tmp_path: Path) -> None:
    with serving(sources, tmp_path) as server, Driver(JAVA_CLIENT.quick_command()) as java:
        assert server.canal is not None
        java.ask("single", "127.0.0.1", server.canal.port, "all", "-", "-")
        java.ask("connect")
        java.ask("subscribe", "d\\.t")
        insert(sources, range(40))
        statements = list[tuple[str, str]]()

        def has_all() -> bool:
            message = java.ask("getWithoutAck", 100, 500)
            rows = [row for entry in message["entries"] for row in entry.get("change", {"rows": []})["rows"]]
            statements.extend((row["after"][0]["value"], row["after"][1]["value"]) for row in rows)
            if message["id"] > 0:
                java.ask("ack", message["id"])
            return len(statements) >= 40

        assert poll_until(has_all, 60)
        assert statements == [(str(number), SIDES[number % 2]) for number in range(40)]
