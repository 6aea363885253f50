"""Clients of a small store that are gone, or slow: they hold up nobody, and miss nothing when they return."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import app
from penstock.client.canal import CanalConnector
from penstock.config import ServerSettings, load_server_settings
from penstock.config.canal.properties import read_canal_instance
from penstock.errors import PenstockError
from penstock.model import Position
from penstock.server import Server
from penstock.testing import DatabaseServer, poll_until
from tests.support.admin_support import asked, served, status_of
from tests.support.capture import execute

ROWS, STEP = 60_000, 1000
Database = Callable[[DatabaseServer], str]


@pytest.fixture
def table(mariadb: DatabaseServer, database: Database) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(1000))")
    return name


def settings_of(mariadb: DatabaseServer, folder: Path, table: str, **own: str) -> ServerSettings:
    """As canal's files say it: a store of 16 MiB of memory."""
    properties = {
        "canal.instance.master.address": f"{mariadb.host}:{mariadb.port}",
        "canal.instance.dbUsername": mariadb.user,
        "canal.instance.dbPassword": mariadb.password,
        "canal.instance.filter.regex": table.replace(".", "\\."),
        "canal.file.data.dir": str(folder),
    }
    instance = read_canal_instance("shop", properties | own, {}, folder, {}).settings
    ports = {name: {"port": 0} for name in ("flight", "canal", "admin")}
    return ServerSettings.model_validate(ports | {"instances": [instance]})


@contextmanager
def client_of(server: Server, client_id: int) -> Iterator[CanalConnector]:
    assert server.canal is not None
    with CanalConnector("127.0.0.1", server.canal.port, "shop", client_id=client_id) as connector:
        connector.subscribe("")
        yield connector


def insert(mariadb: DatabaseServer, table: str, first: int, count: int) -> None:
    numbers = f"{table.partition('.')[0]}.seq"  # MariaDB's table of numbers
    for low in range(first, first + count, STEP):
        execute(mariadb, f"INSERT INTO {table} SELECT seq, REPEAT('x', 900) FROM {numbers}_{low}_to_{low + STEP - 1}")


def ids_until(connector: CanalConnector, count: int, seconds: float = 150) -> list[int]:
    """Of the rows that come, until there are so many; acked."""
    ids, deadline = list[int](), time.monotonic() + seconds
    while len(ids) < count and time.monotonic() < deadline:
        message = connector.get_without_ack(1000, timeout_s=0.5)
        if not message.is_empty:
            for _, change in message.row_changes():
                ids += [int(row.afterColumns[0].value) for row in change.rowDatas]
            connector.ack(message.id)
    return ids


def clients_of(server: Server) -> dict[str, dict[str, Any]]:
    (instance,) = status_of(server)["instances"]
    return {client["client"]: client for client in instance["clients"]}


def first_of(server: Server) -> Position:
    (instance,) = status_of(server)["instances"]
    return Position.from_json(instance["first"])


def cursor_of(server: Server, client_id: str) -> Position:
    return Position.from_json(clients_of(server)[client_id]["cursor"])


def test_a_client_that_is_gone_holds_up_nobody_and_gets_every_row_when_it_returns(
    mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    settings = settings_of(mariadb, tmp_path, table)
    assert (settings.instances[0].store.memory, settings.instances[0].store.kind) == (16 << 20, "memory")
    with served(settings) as server:
        with client_of(server, 1002):
            assert clients_of(server)["1002"]["connected"]
        with client_of(server, 1001) as present:
            insert(mariadb, table, 1, ROWS)
            assert ids_until(present, ROWS) == list(range(1, ROWS + 1))
            assert poll_until(lambda: clients_of(server)["1002"]["state"] == "absent", 20), clients_of(server)
            clients = clients_of(server)
            assert (clients["1002"]["connected"], clients["1002"]["from_log"]) == (False, True)
            assert clients["1001"]["connected"]
            (address,) = clients["1001"]["addresses"]
            assert address.startswith("127.0.0.1:")
            url = f"http://127.0.0.1:{server.admin.port}"  # type: ignore[union-attr]
            shown = CliRunner().invoke(app, ["status", "--url", url]).stdout
            assert address in shown
            assert "catching up from the source's log" in shown
    with served(settings) as server, client_of(server, 1001) as present:
        assert first_of(server) >= cursor_of(server, "1001") > cursor_of(server, "1002"), "nothing is read again"
        execute(mariadb, f"INSERT INTO {table} VALUES ({ROWS + 1}, 'last')")
        assert ids_until(present, 1) == [ROWS + 1]
        with client_of(server, 1002) as back:
            assert ids_until(back, ROWS + 1) == list(range(1, ROWS + 2))
            assert poll_until(lambda: not clients_of(server)["1002"]["from_log"], 20)
            execute(mariadb, f"INSERT INTO {table} VALUES ({ROWS + 2}, 'both')")
            assert ids_until(back, 1) == ids_until(present, 1) == [ROWS + 2]


@pytest.fixture
def config(mariadb: DatabaseServer, tmp_path: Path) -> Path:
    """Of a server that runs; its ports are free ones."""
    source = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    settings = {"data_dir": str(tmp_path), "instances": [{"destination": "shop", "source": source}]}
    path = tmp_path / "penstock.yml"
    path.write_text(yaml.safe_dump(settings | {name: {"port": 0} for name in ("flight", "canal", "admin")}), "utf-8")
    return path


def position(server: Server, *words: object) -> str:
    """Run `penstock position` while the server runs."""
    assert server.admin is not None
    url = f"http://127.0.0.1:{server.admin.port}"
    result = CliRunner().invoke(app, ["position", *map(str, words), "--yes", "--url", url])
    assert result.exception is None, (result.output, result.exception)
    return result.output


def test_clients_of_a_running_server_are_moved_and_forgotten(mariadb: DatabaseServer, table: str, config: Path) -> None:
    with served(load_server_settings(config)) as server, client_of(server, 1001) as present:
        with client_of(server, 1002) as gone:
            execute(mariadb, *(f"INSERT INTO {table} VALUES ({number}, 'a')" for number in range(1, 6)))
            assert ids_until(gone, 5, 20) == [1, 2, 3, 4, 5]
        start = cursor_of(server, "1001")
        assert poll_until(lambda: cursor_of(server, "1002") > start, 10)
        assert "resumes at" in position(server, "set", config, 1002, f"{start.file}:{start.offset}")
        assert ids_until(present, 5, 20) == [1, 2, 3, 4, 5]
        with client_of(server, 1002) as gone:
            assert ids_until(gone, 5, 20) == [1, 2, 3, 4, 5]
            execute(mariadb, f"INSERT INTO {table} VALUES (6, 'a')")
            assert not gone.get_without_ack(10, timeout_s=10).is_empty
            assert poll_until(lambda: cursor_of(server, "1002") > start, 10)
            # Also of one that is connected, whatever it holds.
            position(server, "set", config, 1002, f"{start.file}:{start.offset}")
            assert ids_until(gone, 6, 20) == [1, 2, 3, 4, 5, 6]
        assert "is forgotten" in position(server, "reset", config, 1002)
        assert clients_of(server).keys() == {"1001"}
        with client_of(server, 1002) as again:
            execute(mariadb, f"INSERT INTO {table} VALUES (7, 'a')")
            # The store still has what 1001 has not acked; each row may come in a batch of its own.
            assert poll_until(lambda: 7 in ids_until(again, 1, 1), 20)
            assert poll_until(lambda: clients_of(server)["1002"]["outstanding"] == 0, 10)
            position(server, "reset", config, 1002)
            with pytest.raises(PenstockError, match="1002 has not subscribed to shop: subscribe first"):
                again.get_without_ack(10, timeout_s=1)


def test_a_browser_and_a_wrong_request_change_nothing(mariadb: DatabaseServer, table: str, config: Path) -> None:
    del mariadb, table
    with served(load_server_settings(config)) as server, client_of(server, 1001):
        path = "/instances/shop/clients/1001"
        assert asked(server, path, "DELETE", Origin="http://example.org")[0] == 403
        assert asked(server, path)[0] == 405
        assert asked(server, "/instances/crm/clients/1001", "DELETE")[0] == 404
        assert asked(server, "/instances/shop/clients/7", "DELETE") == (
            404,
            "there is no client 7 of 'shop'; there is 1001\n",
        )
        assert asked(server, f"{path}?position=nowhere", "PUT")[0] == 400
        assert asked(server, f"{path}?position=binlog.000001:99999999", "PUT")[0] == 409
        assert clients_of(server).keys() == {"1001"}
