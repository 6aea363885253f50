"""A chunk of a table can be read as it was at any position that the log still has, while others write: with the changes
from there on it makes the table, strictly."""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import ConfigurationError, SchemaError
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.snapshot.chunks import Chunk
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of
from tests.support.random_writers import TABLES, create_table, select_rows, written

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
NewDatabase = Callable[[Any], str]


def _cases() -> Iterator[Any]:
    for number, flavour in enumerate(_SERVERS):
        for kind in TABLES:
            is_short = kind in {"integer", list(TABLES)[1 + number % (len(TABLES) - 1)]}
            yield pytest.param(flavour, kind, marks=[] if is_short else [pytest.mark.campaign])


@pytest.mark.parametrize(("flavour", "kind"), list(_cases()))
def test_chunks_at_any_position_and_the_changes_after_it_make_the_table(
    flavour: str, kind: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    chooser = random.Random(kind)
    create_table(server, name, kind)
    instance = instance_of(server)
    instance.start()
    try:
        first = instance.store.latest
        with written(server, name, kind) as writers:
            assert poll_until(lambda: all(writer.commits > 20 for writer in writers), 60)
            chunks = _read_chunks(instance, name, first, chooser)
            before = sum(writer.commits for writer in writers)
            assert poll_until(lambda: sum(writer.commits for writer in writers) > before + 20, 60)
        assert len(chunks) > 3
        end = end_of(server)
        assert poll_until(lambda: instance.store.latest >= end, 60)
        blocks = instance.read(first, instance.store.latest)
        fields = arrow_fields_of_table(instance.describe_tables([name])[0])
        changes = [row for block in blocks for part in decode_changes(block, name, fields) for row in part.to_pylist()]
    finally:
        instance.stop()
    assert _apply(kind, chunks, changes) == select_rows(server, name)


def _read_chunks(
    instance: Instance, name: TableName, first: Position, chooser: random.Random
) -> list[tuple[Chunk, Position, list[dict[str, Any]]]]:
    """Read all chunks, each at a position before, at or behind the end of the log when it is read."""
    fields = arrow_fields_of_table(instance.describe_tables([name])[0])
    positions, chunks, after, done = [first], [], None, 0
    while True:
        plan = instance.snapshots.plan(name, after, rows_before=done, count=2, rows=100)
        for chunk in plan.chunks:
            positions.append(instance.store.latest)
            position = chooser.choice(positions)
            batches = instance.snapshots.read(name, chunk, position, fields, lambda: False)
            chunks.append((chunk, position, pa.Table.from_batches(batches, fields).to_pylist()))
            done += chunk.estimated_rows
        after = plan.chunks[-1].until
        if after is None:
            assert instance.snapshots.report()["tables"][str(name)]["state"] == "complete"
            return chunks


def _apply(kind: str, chunks: list[Any], changes: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """Return the rows that the chunks and the changes after them make."""
    number_in = TABLES[kind][2]
    table = {_identity(row): row["name"] for _, _, rows in chunks for row in rows}
    limits = [number_in(chunk.until) for chunk, _, _ in chunks if chunk.until is not None]
    assert limits == sorted(limits)
    for change in changes:
        _, position, _ = chunks[bisect_left(limits, _number(kind, change["id"]))]
        at = Position(change["_file"], change["_offset"], epoch=position.epoch)
        if at < position:
            continue
        key, text = _identity(change), change["name"]
        if change["_change_type"] in {"delete", "update_preimage"}:
            assert table.pop(key, None) == text, f"at {at}, read at {position}: {change}"
        else:
            assert key not in table, f"at {at}, read at {position}: {change}"
            table[key] = text
    return {(*key, text) for key, text in table.items()}


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["id"], row["part"]) if "part" in row else (row["id"],)


def _number(kind: str, value: Any) -> int:
    match kind:
        case "text" | "unicode":
            return int(value[-5:])
        case "bytes":
            return int(value.hex(), 16)
        case "datetime":
            return 3600 * value.hour + 60 * value.minute + value.second
        case _:
            return int(value)


def test_what_cannot_be_read_beside_its_changes_is_refused(mysql80: DatabaseServer, database: NewDatabase) -> None:
    schema = database(mysql80)
    execute(mysql80, f"CREATE TABLE {schema}.nokey (id INT)", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a INT)")
    instance = instance_of(mysql80)
    instance.start()
    try:
        plan = instance.snapshots.plan
        with pytest.raises(SchemaError, match="has no primary key"):
            plan(TableName(schema, "nokey"), None, rows_before=0, count=1, rows=10)
        with pytest.raises(SchemaError, match="there is no table"):
            instance.snapshots.request_again(TableName(schema, "nothing"))
        execute(mysql80, "SET GLOBAL binlog_row_image = MINIMAL")
        try:
            with pytest.raises(ConfigurationError, match="SET GLOBAL binlog_row_image = FULL"):
                plan(TableName(schema, "t"), None, rows_before=0, count=1, rows=10)
        finally:
            execute(mysql80, "SET GLOBAL binlog_row_image = FULL")
        instance.snapshots.pause()
        assert plan(TableName(schema, "t"), None, rows_before=0, count=1, rows=10).chunks == []
        assert instance.snapshots.report()["paused"]
        instance.snapshots.resume()
        assert len(plan(TableName(schema, "t"), None, rows_before=0, count=1, rows=10).chunks) == 1
    finally:
        instance.stop()
