"""A server with canal's port, clients of it, and what they receive."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.canal.types import CanalEventType
from penstock.client.canal import CanalConnector, CanalMessage
from penstock.errors import ConfigurationError
from penstock.instance import Instance
from penstock.server.canal import CanalListener
from penstock.server.canal.session import CanalAccess
from penstock.testing import DatabaseServer
from tests.services.canal_client import Driver
from tests.support.capture import instance_of

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")


@contextmanager
def listening(server: DatabaseServer, access: CanalAccess | None = None, **settings: Any) -> Iterator[CanalListener]:
    """A port with one instance; its own settings are those of CanalListener."""
    limits = {name: settings.pop(name) for name in ("connections", "handshake_s") if name in settings}
    instance = instance_of(server, **settings)
    instance.start()

    def instance_named(destination: str) -> Instance:
        if destination != instance.settings.destination:
            raise ConfigurationError(f"there is no destination '{destination}'")
        return instance

    port = CanalListener("127.0.0.1", 0, instance_named, access=access, **limits)
    port.start()
    try:
        yield port
    finally:
        port.stop()
        instance.stop()


@contextmanager
def connected(port: CanalListener, table_filter: str | None = "", **settings: Any) -> Iterator[CanalConnector]:
    with CanalConnector("127.0.0.1", port.port, "default", **settings) as connector:
        if table_filter is not None:
            connector.subscribe(table_filter)
        yield connector


def changes(message: CanalMessage) -> list[tuple[str, str, list[dict[str, str | None]]]]:
    """Return table, kind, and the values after each change, or before a delete."""
    row_changes = list[tuple[str, str, list[dict[str, str | None]]]]()
    for header, change in message.row_changes():
        rows = [list(row.afterColumns) or list(row.beforeColumns) for row in change.rowDatas]
        values = [{column.name: None if column.isNull else column.value for column in row} for row in rows]
        row_changes.append((header.tableName, CanalEventType(change.eventType).name, values))
    return row_changes


def values(message: Any) -> list[dict[str, str | None]]:
    """Return the values after each change, or before a delete, of a message of canal's Java client."""
    rows = [row for entry in message["entries"] for row in entry.get("change", {"rows": []})["rows"]]
    return [
        {column["name"]: None if column["isNull"] else column["value"] for column in row["after"] or row["before"]}
        for row in rows
    ]


def seen(connector: CanalConnector, last: str) -> tuple[list[tuple[str, str, str]], bytes]:
    """Return type, name and text of the statements that come before the rows of a table, and all bytes of them."""
    statements, raw, deadline = list[tuple[str, str, str]](), b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        message = connector.get_without_ack(100, timeout_s=1)
        raw += b"".join(message.raw)
        for header, change in message.row_changes():
            if header.tableName == last:
                return statements, raw
            name = f"{header.schemaName}.{header.tableName}"
            statements.append((CanalEventType(change.eventType).name, name, change.sql))
        connector.ack(message.id)
    raise AssertionError(f"{last} did not come")


def connect(driver: Driver, port: int, table_filter: str, *login: str) -> None:
    driver.ask("single", "127.0.0.1", port, "default", *(login or ("-", "-")))
    driver.ask("connect")
    driver.ask("subscribe", table_filter)
