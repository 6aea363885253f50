"""A chunk of a table can be read as it was at any position that the log still has, while others write: with the changes
from there on it makes the table, strictly."""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import ConfigurationError, SchemaError
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.key_order import ask_database, find_inside
from penstock.snapshot.table_snapshot import TableSnapshot
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of, source_of
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
            instance.snapshots.request_resnapshot(TableName(schema, "nothing"))
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


_KEYS = {
    "time": ("TIME(3)", ["'-800:00:00'", "'-00:00:01.5'", "'00:00:00'", "'09:59:59'", "'10:00:00'", "'100:00:00.125'"]),
    "decimal": ("DECIMAL(20, 0)", [str(10**18 + number) for number in (-1, 0, 1, 2, 99)]),
    "long decimal": ("DECIMAL(60, 4)", [f"{10**50 + number}.5" for number in (0, 1, 2)]),
    "negative": ("BIGINT", ["-9223372036854775808", "-1", "0", "9223372036854775807"]),
    "unsigned": ("BIGINT UNSIGNED", ["0", "9223372036854775808", "18446744073709551615"]),
    "year": ("YEAR", ["1901", "1999", "2024", "2155"]),
    "bit": ("BIT(64)", ["0", "7", "18446744073709551615"]),
    "date": ("DATE", ["'1000-01-01'", "'2024-02-29'", "'9999-12-31'"]),
    "timestamp": ("TIMESTAMP(6)", ["'1990-01-01'", "'2024-02-29 12:00:00.000001'", "'2024-02-29 12:00:00.1'"]),
    "binary": ("BINARY(4)", ["x'00'", "x'0001'", "x'41'", "x'41424344'", "x'ffffffff'"]),
    "padded": ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", ["''", "'a'", "'a-'", "'B'", "'ß'"]),
    "exact": ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ["'A'", "'a'", "'a-'", "'ä'", "'😀'"]),
    "narrow": ("CHAR(9) CHARACTER SET latin1", ["'a'", "'b'", "'ä'", "'ö'", "''''"]),
    "uuid": ("UUID", ["'00000000-0000-0000-0000-000000000001'", "'123e4567-e89b-12d3-a456-426655440000'"]),
    "inet6": ("INET6", ["'::1'", "'fe80::1'", "'2001:db8::ff00:42:8329'"]),
}  # fmt: skip


@pytest.mark.parametrize("flavour", _SERVERS)
def test_keys_are_compared_as_the_index_of_their_table_orders_them(
    flavour: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    schema = database(server)
    with closing(connect_for_snapshot(source_of(server))) as connection:
        cursor = connection.cursor()
        for kind, (declared, values) in _KEYS.items():
            if kind in {"uuid", "inet6"} and "mariadb" not in flavour:
                continue
            name = TableName(schema, kind.replace(" ", "_"))
            execute(
                server,
                f"CREATE TABLE {name} (part INT, id {declared} NOT NULL, PRIMARY KEY (id, part))",
                f"INSERT INTO {name} (id, part) VALUES {', '.join(f'({value}, 1), ({value}, 2)' for value in values)}",
            )
            snapshot = TableSnapshot(source_of(server), name)
            (rows,) = snapshot
            batch = pa.Table.from_batches(rows.batches).combine_chunks()
            keys = [batch.column(column).chunk(0) for column in ("id", "part")]
            cursor.execute(f"SELECT {', '.join(column.expression for column in snapshot.table.key)} FROM {name}")
            for key in cursor.fetchall():
                for length in (1, 2):
                    limit = tuple(map(str, key[:length]))
                    for chunk in (Chunk(limit, None), Chunk(None, limit)):
                        cursor.execute(f"SELECT part FROM {name} WHERE {chunk.condition(snapshot.table)}")
                        wanted = len(cursor.fetchall())
                        inside = find_inside(keys, chunk, partial(ask_database, cursor, snapshot.table))
                        assert int(inside.sum()) == wanted, (kind, chunk)


@pytest.mark.parametrize("flavour", _SERVERS)
def test_a_chunk_at_the_ends_of_files_before_ddl_and_with_columns_of_our_names(
    flavour: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    execute(server, f"CREATE TABLE {name} (id INT PRIMARY KEY, _seq INT)", f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    instance = instance_of(server)
    instance.start()

    def rows_at(position: Position) -> list[dict[str, Any]]:
        fields = arrow_fields_of_table(instance.describe_tables([name])[0])
        batches = instance.snapshots.read(name, Chunk(None, None), position, fields)
        rows = pa.Table.from_batches(batches, fields).to_pylist()
        return sorted(rows, key=lambda row: row["id"])

    try:
        first = instance.store.latest
        assert rows_at(first) == [{"id": 1, "_seq": 1}, {"id": 2, "_seq": 2}]
        execute(server, "FLUSH LOGS")
        assert rows_at(first) == [{"id": 1, "_seq": 1}, {"id": 2, "_seq": 2}], "nothing was written since"
        execute(server, f"UPDATE {name} SET _seq = 3 WHERE id = 1", "FLUSH LOGS", f"DELETE FROM {name} WHERE id = 2")
        assert rows_at(first) == [{"id": 1, "_seq": 1}, {"id": 2, "_seq": 2}]
        execute(server, f"ALTER TABLE {name} ADD COLUMN extra INT DEFAULT 7")
        assert rows_at(first) == [{"id": 1, "_seq": 1, "extra": None}, {"id": 2, "_seq": 2, "extra": None}]
        fields = arrow_fields_of_table(instance.describe_tables([name])[0])
        with pytest.raises(SchemaError, match=r"the key of .* was changed"):
            list(instance.snapshots.read(name, Chunk(None, None), first, fields, key_description="other INTEGER"))
    finally:
        instance.stop()
