"""canal's own files in front of a real source: where cursors are found, and what is said when there are none."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.status_text import status_text
from penstock.client.canal import CanalConnector
from penstock.config import ConfFolder
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.capture import execute, poll
from tests.integration.test_canal_port import changes
from tests.unit.server.admin_support import status_of

SERVER = """
canal.ip = 127.0.0.1
canal.port = 0
canal.metrics.pull.port = 0
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
    settings = folder.read().server
    ports = {"flight": settings.flight.model_copy(update={"port": 0})}
    ports["admin"] = settings.admin.model_copy(update={"port": 0})
    server = Server(settings.model_copy(update=ports), folder, 0)
    try:
        server.start()
        assert poll(lambda: "example" in server.instances and server.instances["example"].state.value == "following")
        yield server
    finally:
        server.stop()


def rows_of(server: Server, table: str, count: int) -> list[dict[str, Any]]:
    """Rows that client 1001 gets, from its cursor on."""
    assert server.canal is not None
    found = list[dict[str, Any]]()
    with CanalConnector("127.0.0.1", server.canal.port, "example") as connector:
        connector.subscribe(table.replace(".", "\\."))

        def has_all() -> bool:
            message = connector.get_without_ack(1000, timeout_s=0.2)
            found.extend(row for _, _, rows in changes(message) for row in rows)
            connector.ack(message.id) if not message.is_empty else None
            return len(found) >= count

        assert poll(has_all)
    return found


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
        (one,) = status_of(server)["instances"]
        assert one["began"]["kind"] == "cursor"
        assert str(conf / "example" / "meta.dat") in one["began"]["reason"]
        assert "began at the end" not in status_text(status_of(server))
    assert not list((tmp_path / "bin").iterdir()), "nothing of ours belongs there"


def test_an_instance_that_finds_no_cursor_says_that_it_begins_at_the_end(
    mariadb: DatabaseServer, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = write_conf(tmp_path, mariadb)
    execute(mariadb, f"INSERT INTO {table} VALUES (1)")
    file, offset = end_of_log(mariadb)
    with caplog.at_level(logging.WARNING), serving(conf) as server:
        (one,) = status_of(server)["instances"]
        shown = status_text(status_of(server))
    wanted = f"no cursor was found in {conf / 'example' / 'meta.dat'}"
    assert (one["began"]["kind"], one["began"]["reason"]) == ("end", wanted)
    assert one["began"]["position"]["file"] == file
    assert one["began"]["position"]["offset"] >= offset
    assert f"example began at the end of the log, {file}:" in shown
    assert wanted in shown
    assert "started at the end of the log destination=example position=" in caplog.text
    assert wanted in caplog.text


def test_a_start_that_was_asked_for_is_no_warning(
    mariadb: DatabaseServer, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, offset = end_of_log(mariadb)
    execute(mariadb, f"INSERT INTO {table} VALUES (1)")
    journal = f"canal.instance.master.journal.name = {file}\ncanal.instance.master.position = {offset}\n"
    conf = write_conf(tmp_path, mariadb, of_instance=journal)
    with caplog.at_level(logging.WARNING), serving(conf) as server:
        (one,) = status_of(server)["instances"]
        assert (one["began"]["kind"], one["began"]["position"]["offset"]) == ("configured", offset)
    assert "at the end of the log" not in caplog.text
