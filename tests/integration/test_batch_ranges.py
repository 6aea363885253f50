"""Batches that a reader plans by rows: each can be read from the source's log alone, and none loses a row, whatever
kind of transaction they end in."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import NotCapturedError
from penstock.instance import Instance
from penstock.instance.batch_plan import BatchLimit
from penstock.model import Position, TableName
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, instance_of, poll

ROWS, LIMIT = 120, 25


@pytest.fixture(params=["mariadb", "mariadb11", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def ids_between(instance: Instance, table: TableName, start: Position, end: Position) -> list[int]:
    """The rows of a range, read from the source's own log."""
    (schema,) = instance.describe_tables([table])
    blocks = instance.source_log.read_log(start, end)
    batches = (batch for block in blocks for batch in decode_changes(block, table, arrow_fields_of_table(schema)))
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_ranges_of_a_plan_give_each_row_once_from_the_log(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = f"{database(server)}.t"
    table = TableName.parse(name)
    execute(server, f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(2000))")
    start = end_of(server)
    rows = [
        [f"INSERT INTO {name} VALUES ({low + i}, REPEAT('x', 1500))" for i in range(ROWS)]
        for low in range(0, 4 * ROWS, ROWS)
    ]
    execute(server, "BEGIN", *rows[0], "COMMIT")
    execute(server, "XA START 'two'", *rows[1], "XA END 'two'", "XA PREPARE 'two'", "XA COMMIT 'two'")
    execute(server, "XA START 'one'", *rows[2], "XA END 'one'", "XA COMMIT 'one' ONE PHASE")
    execute(server, *rows[3][:10])
    end, expected = end_of(server), [*range(3 * ROWS + 10)]
    instance = instance_of(server)
    instance.start()
    try:
        assert poll(lambda: instance.store.latest >= end)
        at, seen, splits = start, list[int](), 0
        limit = BatchLimit(sys.maxsize, LIMIT, is_counted=table.__eq__)
        while at < end:
            after = instance.plan_batch(at, limit, 1.0).end
            assert at < after <= end
            ids = ids_between(instance, table, at, after)
            splits += after.transaction is not None
            assert len(ids) <= LIMIT or ids in (expected[ROWS : 2 * ROWS], expected[2 * ROWS : 3 * ROWS])
            seen += ids
            at = after
        assert seen == expected
        assert splits >= ROWS // LIMIT
        parts = instance.split_range(start, end)
        assert [number for part in parts for number in ids_between(instance, table, *part)] == expected
    finally:
        instance.stop()


def test_what_is_not_captured_yet_is_not_decoded_with_old_column_names(private_server: Callable[..., Any]) -> None:
    """The log does not name its columns, and their names were swapped behind what is captured."""
    server = private_server("mariadb", options={"binlog_row_metadata": "NO_LOG"})
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT)")
    instance = instance_of(server)
    instance.start()
    try:
        start, table = end_of(server), TableName("d", "t")
        execute(server, "INSERT INTO d.t VALUES (1, 10, 20)")
        captured = end_of(server)
        assert poll(lambda: instance.store.latest >= captured)
        instance.pause("the test")
        execute(server, "ALTER TABLE d.t CHANGE a b INT, CHANGE b a INT", "INSERT INTO d.t (id, a, b) VALUES (2, 7, 8)")
        end = end_of(server)
        with pytest.raises(NotCapturedError, match=r"d\.t at .* are not known yet"):
            list(instance.source_log.read_log(start, end))
        instance.resume()
        assert poll(lambda: instance.store.latest >= end)
        (schema,) = instance.describe_tables([table])
        fields = arrow_fields_of_table(schema)
        rows = [
            row
            for block in instance.source_log.read_log(start, end)
            for batch in decode_changes(block, table, fields)
            for row in batch.to_pylist()
        ]
        assert [(row["id"], row["a"], row["b"]) for row in rows] == [(1, 10, 20), (2, 7, 8)]
    finally:
        instance.stop()
