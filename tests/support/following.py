"""An instance that follows a server, or two of them, of which one replicates the other's table `replicated.t`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.config import FailoverSettings, InstanceSettings
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of
from tests.support.replication import has

QUICK = FailoverSettings(interval_s=0.2, retries=2, floor_s=1, window_s=3)


@contextmanager
def following(first: DatabaseServer, second: DatabaseServer | None = None, **changes: Any) -> Iterator[Instance]:
    settings = InstanceSettings(
        source=source_of(first, heartbeat_s=0.5, connect_timeout_s=3),
        standby=source_of(second, heartbeat_s=0.5, connect_timeout_s=3) if second is not None else None,
        **{"failover": QUICK, **changes},
    )
    instance = Instance(settings)
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def fill(server: DatabaseServer, ids: range) -> None:
    execute(server, *(f"INSERT INTO replicated.t VALUES ({number}, 'v{number}')" for number in ids))


def table(server: DatabaseServer) -> None:
    execute(server, "CREATE TABLE replicated.t (id INT PRIMARY KEY, v VARCHAR(20))")


def row_ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def is_there(server: DatabaseServer, number: int) -> bool:
    return has(server, f"SELECT 1 FROM replicated.t WHERE id = {number}")


def seen_after(instance: Instance, start: Position) -> set[int]:
    """Ids of all rows that have come."""
    end, (schema,) = instance.store.latest, instance.describe_tables([TableName.parse("replicated.t")])
    batches = [
        batch
        for block in (instance.read(start, end) if end > start else ())
        for batch in decode_changes(block, schema.name, arrow_fields_of_table(schema))
    ]
    return {row["id"] for batch in batches for row in batch.to_pylist()}


def dump_threads(server: DatabaseServer) -> list[int]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        return [int(thread) for (thread,) in cursor.fetchall()]
