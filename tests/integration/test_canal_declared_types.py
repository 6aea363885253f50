"""What the log does not say: declared types in a folder source, and MariaDB's statements behind rows."""

import shutil
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.canal.types import CanalEventType
from penstock.client.canal import CanalConnector
from penstock.config import FilterSettings, InstanceSettings
from penstock.instance import Instance
from penstock.server.canal import CanalListener
from penstock.testing import DatabaseServer
from tests.support.canal_port import connected, listening
from tests.support.capture import end_of, execute, source_of

TYPES = {"flag": "tinyint(1)", "number": "int(7) unsigned zerofill", "real": "float(7,4)", "name": "varchar(9)"}
MARIADB_TYPES = {"key": "uuid", "address": "inet6"}
VALUES = ["1", "42", "1.5", "'x'"]
MARIADB_VALUES = ["'00000000-0000-0000-0000-0000000000aa'", "'::1'"]


@pytest.fixture(params=["mariadb", "mariadb11", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def columns_of(connector: CanalConnector, table: str) -> dict[str, tuple[str, str]]:
    """Declared type and value of each column of the first row of a table."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = connector.get_without_ack(100, timeout_s=1)
        for header, change in message.row_changes():
            if header.tableName == table and change.rowDatas:
                return {column.name: (column.mysqlType, column.value) for column in change.rowDatas[0].afterColumns}
        connector.ack(message.id)
    raise AssertionError(f"no row of {table} came")


@contextmanager
def folder_port(folder: Path) -> Any:
    settings = {"source": {"path": str(folder), "poll_s": 0.01}, "destination": "default", "start": "earliest"}
    instance = Instance(InstanceSettings.model_validate(settings))
    instance.start()
    port = CanalListener("127.0.0.1", 0, lambda _: instance)
    port.start()
    try:
        yield port
    finally:
        port.stop()
        instance.stop()


def test_a_folder_has_the_declared_types_that_a_live_source_has(
    server: DatabaseServer, database: Callable[[DatabaseServer], str], tmp_path: Path
) -> None:
    """The statements that made the table are in the same piece of the log as its rows."""
    execute(server, "FLUSH BINARY LOGS")
    name = database(server)
    is_mariadb = "MariaDB" in server.version
    types = TYPES | (MARIADB_TYPES if is_mariadb else {})
    values = VALUES + (MARIADB_VALUES if is_mariadb else [])
    columns = ", ".join(f"`{column}` {kind}" for column, kind in types.items())
    with listening(server) as port, connected(port, rf"{name}\..*") as live:
        execute(
            server,
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY, {columns})",
            f"INSERT INTO {name}.t VALUES (1, {', '.join(values)})",
        )
        expected = columns_of(live, "t")
    end = end_of(server)
    shutil.copy(server.data / end.file, tmp_path / end.file)
    with folder_port(tmp_path) as port, connected(port, rf"{name}\..*") as reader:
        declared = columns_of(reader, "t")
    assert {column: kind for column, (kind, _) in declared.items() if column in types} == types
    assert declared == expected


def statements_of(connector: CanalConnector) -> list[str]:
    """Of the first batch with rows."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = connector.get_without_ack(100, timeout_s=1)
        connector.ack(message.id)
        changes = [change for _, change in message.row_changes()]
        if any(change.rowDatas for change in changes):
            return [change.sql for change in changes if change.eventType == CanalEventType.QUERY]
    raise AssertionError("no rows came")


def test_mariadbs_statements_behind_rows_come_when_they_are_asked_for(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"annotations": True}, True),
        ({"annotations": True, "kinds": ["insert", "ddl", "transaction"]}, False),
    ]
    for number, (wanted, is_there) in enumerate(cases):
        source = source_of(mariadb).model_copy(update={"annotations": wanted.get("annotations", False)})
        rules = {"filter": FilterSettings(kinds=wanted["kinds"])} if "kinds" in wanted else {}
        text = f"INSERT INTO {name}.t VALUES ({number})"
        with listening(mariadb, source=source, **rules) as port, connected(port, rf"{name}\..*") as connector:
            execute(mariadb, text)
            assert statements_of(connector) == [text] * is_there
