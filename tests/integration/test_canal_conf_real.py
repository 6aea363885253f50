"""canal's own files in front of a real source: where cursors are found, and what is said when there are none."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from penstock.cli.status_text import format_status
from penstock.client.canal import CanalConnector
from penstock.config import ConfFolder
from penstock.server import Server
from penstock.testing import DatabaseServer, free_port
from tests.services.canal_client import PYTHON_CLIENT, Driver
from tests.support.admin_support import status_of
from tests.support.canal_port import changes, values
from tests.support.capture import execute, poll

SERVER = """
canal.ip = 127.0.0.1
canal.port = 0
penstock.admin.port = 0
penstock.flight.port = 0
canal.destinations = example
canal.conf.dir = ../conf
canal.file.data.dir = ${canal.conf.dir}
"""


def write_conf(folder: Path, server: DatabaseServer, of_server: str = "", of_instance: str = "") -> Path:
    """Write canal's two files as canal has them, and return the conf folder; `bin` lies beside it."""
    conf = folder / "conf"
    (conf / "example").mkdir(parents=True)
    (folder / "bin").mkdir()
    (conf / "canal.properties").write_text(SERVER + of_server)
    (conf / "example" / "instance.properties").write_text(
        f"canal.instance.master.address = {server.host}:{server.port}\n"
        f"canal.instance.dbUsername = {server.user}\ncanal.instance.dbPassword = {server.password}\n" + of_instance
    )
    return conf


@contextmanager
def serving(conf: Path) -> Iterator[Server]:
    """A server of a conf folder, once its instance captures."""
    folder = ConfFolder(conf)
    server = Server(folder.read().server, folder, 0)
    try:
        server.start()
        assert poll(lambda: "example" in server.instances and server.instances["example"].state.value == "following")
        yield server
    finally:
        server.stop()


def rows_of(server: Server, table: str, count: int) -> list[dict[str, Any]]:
    """Rows that client 1001 gets, from its cursor on."""
    assert server.canal is not None
    received = list[dict[str, Any]]()
    with CanalConnector("127.0.0.1", server.canal.port, "example") as connector:
        connector.subscribe(table.replace(".", "\\."))

        def has_all() -> bool:
            message = connector.get_without_ack(1000, timeout_s=0.2)
            received.extend(row for _, _, rows in changes(message) for row in rows)
            connector.ack(message.id) if not message.is_empty else None
            return len(received) >= count

        assert poll(has_all)
    return received


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


def end_of_log(server: DatabaseServer) -> tuple[str, int]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset, *_ = cursor.fetchone() or ("", 0)
        return str(file), int(offset)


def write_cursor(conf: Path, server: DatabaseServer, table: str) -> None:
    """`meta.dat` as canal leaves it."""
    file, offset = end_of_log(server)
    position = {"gtid": "", "included": False, "journalName": file, "position": offset, "serverId": 1, "timestamp": 0}
    identity = {"slaveId": -1, "sourceAddress": {"address": server.host, "port": server.port}}
    client = {
        "clientIdentity": {"clientId": 1001, "destination": "example", "filter": table.replace(".", "\\.")},
        "cursor": {"identity": identity, "postion": position},
    }
    (conf / "example" / "meta.dat").write_text(json.dumps({"clientDatas": [client], "destination": "example"}))


def test_canals_cursors_are_found_by_a_relative_path(
    mariadb: DatabaseServer, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = write_conf(tmp_path, mariadb)
    write_cursor(conf, mariadb, table)
    execute(mariadb, f"INSERT INTO {table} VALUES (1), (2)")
    monkeypatch.chdir(tmp_path)
    with serving(Path("conf")) as server:
        assert [row["id"] for row in rows_of(server, table, 2)] == ["1", "2"], "what came while nothing ran"
        (instance,) = status_of(server)["instances"]
        assert instance["began"]["kind"] == "cursor"
        assert str(conf / "example" / "meta.dat") in instance["began"]["reason"]
        assert "began at the end" not in format_status(status_of(server))
    assert not list((tmp_path / "bin").iterdir()), "nothing of ours belongs there"


def test_an_instance_that_finds_no_cursor_says_that_it_begins_at_the_end(
    mariadb: DatabaseServer, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = write_conf(tmp_path, mariadb)
    execute(mariadb, f"INSERT INTO {table} VALUES (1)")
    file, offset = end_of_log(mariadb)
    with caplog.at_level(logging.WARNING), serving(conf) as server:
        (instance,) = status_of(server)["instances"]
        shown = format_status(status_of(server))
    wanted = f"no cursor was found in {conf / 'example' / 'meta.dat'}"
    assert (instance["began"]["kind"], instance["began"]["reason"]) == ("end", wanted)
    assert instance["began"]["position"]["file"] == file
    assert instance["began"]["position"]["offset"] >= offset
    assert f"example began at the end of the binlog, {file}:" in shown
    assert wanted in shown
    assert "started at the end of the binlog destination=example position=" in caplog.text
    assert wanted in caplog.text


def test_a_start_that_was_asked_for_is_no_warning(
    mariadb: DatabaseServer, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, offset = end_of_log(mariadb)
    execute(mariadb, f"INSERT INTO {table} VALUES (1)")
    journal = f"canal.instance.master.journal.name = {file}\ncanal.instance.master.position = {offset}\n"
    conf = write_conf(tmp_path, mariadb, of_instance=journal)
    with caplog.at_level(logging.WARNING), serving(conf) as server:
        (instance,) = status_of(server)["instances"]
        assert (instance["began"]["kind"], instance["began"]["position"]["offset"]) == ("configured", offset)
    assert "at the end of the binlog" not in caplog.text


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "UTC"])
@pytest.mark.canal_python
def test_canals_client_sees_timestamps_in_the_zone_of_the_machine(
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
) -> None:
    """As canal gives them, whose Java takes TZ. The other database server's own clock says what is right."""
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, t TIMESTAMP(3) NULL, d DATETIME)")
    monkeypatch.setenv("TZ", zone)
    moments = [datetime(2024, month, 15, 22, 30, 15, 678000, UTC) for month in (1, 7)]
    with serving(write_conf(tmp_path, mariadb)) as server, Driver(PYTHON_CLIENT.command()) as python:
        assert server.canal is not None
        python.ask("connect", "127.0.0.1", server.canal.port)
        python.ask("subscribe", "example", 1001, name.replace(".", "\\."))
        texts = list[str]()
        for number, moment in enumerate(moments):
            offset = moment.astimezone(ZoneInfo(zone)).strftime("%z")
            with mariadb.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SET time_zone = '{offset[:3]}:{offset[3:]}'")
                cursor.execute(
                    f"INSERT INTO {name} VALUES ({number}, FROM_UNIXTIME({moment.timestamp():.3f}), '2024-01-01')"
                )
                connection.commit()
                cursor.execute(f"SELECT CAST(t AS CHAR) FROM {name} WHERE id = {number}")
                texts += [str(text) for (text,) in cursor.fetchall()]
        rows = list[dict[str, Any]]()

        def has_all() -> bool:
            message = python.ask("getWithoutAck", 100)
            rows.extend(values(message))
            return len(rows) >= len(moments)

        assert poll(has_all)
    assert [row["t"] for row in rows] == texts
    assert {row["d"] for row in rows} == {"2024-01-01 00:00:00"}, "a DATETIME has no zone"


def test_two_servers_of_canals_files_run_on_one_host(mariadb: DatabaseServer, table: str, tmp_path: Path) -> None:
    """One has its ports from its own keys, the other from a server.yml beside canal's file."""
    first, second, yaml_ports = tmp_path / "a", tmp_path / "b", (free_port(), free_port())
    conf = write_conf(first, mariadb)
    own = "penstock.admin.port = 0\npenstock.flight.port = 0\n"
    other = write_conf(second, mariadb)
    properties = other / "canal.properties"
    properties.write_text(properties.read_text().replace(own, ""))
    (other / "server.yml").write_text(f"flight: {{port: {yaml_ports[0]}}}\nadmin: {{port: {yaml_ports[1]}}}\n")
    with serving(conf) as a, serving(other) as b:
        assert [b.flight.port, b.admin and b.admin.port] == [*yaml_ports]
        addresses = [address for server in (a, b) for address, _ in server.ports.values()]
        assert len({*addresses}) == 6, addresses
        execute(mariadb, f"INSERT INTO {table} VALUES (1)")
        for server in (a, b):
            assert status_of(server)["instances"][0]["state"] == "following"


def test_an_open_port_is_warned_about_at_the_start(
    mariadb: DatabaseServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = write_conf(tmp_path, mariadb)
    properties = conf / "canal.properties"
    properties.write_text(properties.read_text().replace("canal.ip = 127.0.0.1", ""))
    with caplog.at_level(logging.WARNING), serving(conf):
        pass
    assert "CANAL'S PORT 0 ON EVERY ADDRESS OF THIS MACHINE IS OPEN TO EVERYBODY, WITHOUT A PASSWORD" in caplog.text
