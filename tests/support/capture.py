"""What several tests do with a captured source: settings, a running server, and reading changes as rows."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from pydantic import SecretStr

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.config import InstanceSettings, SourceSettings
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.source import connect, current_position
from penstock.testing import DatabaseServer, poll_until


def source_of(server: DatabaseServer, **changes: Any) -> SourceSettings:
    return SourceSettings(
        host=server.host, port=server.port, user=server.user, password=SecretStr(server.password), **changes
    )


def instance_of(server: DatabaseServer, **changes: Any) -> Instance:
    source = changes.pop("source", None) or source_of(server)
    return Instance(InstanceSettings(source=source, **changes))


def execute(server: DatabaseServer, *statements: str) -> None:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def end_of(server: DatabaseServer) -> Position:
    """Return where the server's log ends now."""
    source = source_of(server)
    with closing(connect(source)) as connection:
        return current_position(connection, source)


def is_purged(server: DatabaseServer) -> bool:
    """Purge all files of the log but the one that is written, and say whether they are gone: a server keeps what its
    engine may need for a recovery a moment longer."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        files = [str(row[0]) for row in cursor.fetchall()]
        cursor.execute(f"PURGE BINARY LOGS TO '{files[-1]}'")
        cursor.execute("SHOW BINARY LOGS")
        return len(cursor.fetchall()) == 1


def changes_until(
    instance: Instance, table: str, count: int, start: Position, seconds: float = 30
) -> list[dict[str, Any]]:
    """The first `count` changes of a table after `start`, as dictionaries."""
    name = TableName.parse(table)
    (schema,) = instance.describe_tables([name])
    fields = arrow_fields_of_table(schema)
    rows: list[dict[str, Any]] = []
    at, deadline = start, time.monotonic() + seconds
    while len(rows) < count:
        assert time.monotonic() < deadline, f"{len(rows)} of {count} changes came in time"
        end = instance.find_batch_end(at, 1 << 26, 0.5)
        for block in instance.read(at, end) if end > at else ():
            for batch in decode_changes(block, name, fields):
                batch.validate(full=True)
                rows += batch.to_pylist()
        at = end
    return rows


def poll(condition: Callable[[], bool], seconds: float = 30) -> bool:
    """Wait until `condition` is true, for half a minute unless told otherwise; says whether it came true."""
    return poll_until(condition, seconds)
