"""A chunk of a table can be read as it was at any position that the log still has, while others write: with the changes
from there on it makes the table, strictly."""

import random
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
_IDS = 1200
_WRITERS = 3
NewDatabase = Callable[[Any], str]

# Columns, the SQL of a row's key, and what of a key in the order of its index is the number in it.
_TABLES = {
    "integer": ("id INT PRIMARY KEY, name VARCHAR(40)", "{0}", lambda key: int(key[0])),
    "text": (
        "id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY, name VARCHAR(40)",
        "'{1}{0:05d}'",
        lambda key: int(bytes.fromhex(key[0]).decode()[1:]),
    ),
    "unicode": (
        "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, name VARCHAR(40)",
        "'{2}{0:05d}'",
        lambda key: int(bytes.fromhex(key[0]).decode()[-5:]),
    ),
    "composite": (
        "id INT, part ENUM('x', 'y') DEFAULT 'x', name VARCHAR(40), PRIMARY KEY (id, part)",
        "{0}",
        lambda key: int(key[0]),
    ),
    "decimal": ("id DECIMAL(20, 3) PRIMARY KEY, name VARCHAR(40)", "{0}.5", lambda key: int(float(key[0]))),
    "datetime": (
        "id DATETIME(3) PRIMARY KEY, name VARCHAR(40)",
        "'2024-01-01' + INTERVAL {0} SECOND",
        lambda key: _seconds(key[0]),
    ),
    "bytes": ("id VARBINARY(8) PRIMARY KEY, name VARCHAR(40)", "x'{0:08x}'", lambda key: int(key[0], 16)),
}


def _seconds(text: str) -> int:
    hours, minutes, seconds = text.split(" ")[1].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(float(seconds))


class _Writer(threading.Thread):
    """Changes random rows in small transactions until it is stopped."""

    def __init__(self, server: DatabaseServer, name: TableName, kind: str, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer-{seed}")
        self._server, self._table, self._random, self._stop_event = server, name, random.Random(seed), stop
        self._kind, self._seed = kind, seed
        self.commits = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with closing(self._server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
                while not self._stop_event.is_set():
                    try:
                        for _ in range(self._random.randrange(1, 4)):
                            cursor.execute(self._statement())
                        (connection.commit if self._random.random() < 0.9 else connection.rollback)()
                    except Exception as error:
                        if error.args[0] not in {1062, 1205, 1213}:
                            raise
                        connection.rollback()
                    self.commits += 1
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.error = error

    def _key(self) -> str:
        return key_sql(self._kind, self._random.randrange(_IDS), self._random)

    def _statement(self) -> str:
        key, other, text = self._key(), self._key(), f"'{self._seed} {self.commits}'"
        match self._random.randrange(4):
            case 0:
                return f"INSERT IGNORE INTO {self._table} (id, name) VALUES ({key}, {text})"
            case 1:
                return f"DELETE FROM {self._table} WHERE id = {key}"
            case 2:
                return f"UPDATE IGNORE {self._table} SET id = {other} WHERE id = {key}"
            case _:
                return f"UPDATE {self._table} SET name = {text} WHERE id = {key}"


def key_sql(kind: str, number: int, choice: random.Random) -> str:
    """Return the key of a number; texts that a collation takes for equal are written in several ways."""
    return _TABLES[kind][1].format(number, choice.choice("kK"), choice.choice(["ä", "Ä", "a"]))


@contextmanager
def _written(server: DatabaseServer, name: TableName, kind: str) -> Iterator[list[_Writer]]:
    stop = threading.Event()
    writers = [_Writer(server, name, kind, seed, stop) for seed in range(_WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [writer.error for writer in writers] == [None] * _WRITERS


def _cases() -> Iterator[Any]:
    for number, flavour in enumerate(_SERVERS):
        for kind in _TABLES:
            is_short = kind in {"integer", list(_TABLES)[1 + number % (len(_TABLES) - 1)]}
            yield pytest.param(flavour, kind, marks=[] if is_short else [pytest.mark.campaign])


@pytest.mark.parametrize(("flavour", "kind"), list(_cases()))
def test_chunks_at_any_position_and_the_changes_after_it_make_the_table(
    flavour: str, kind: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    chooser = random.Random(kind)
    rows = ", ".join(f"({key_sql(kind, number, chooser)}, 'first')" for number in range(0, _IDS, 2))
    execute(
        server,
        f"CREATE TABLE {name} ({_TABLES[kind][0]})",
        f"INSERT INTO {name} (id, name) VALUES {rows}",
        f"ANALYZE TABLE {name}",
    )
    instance = instance_of(server)
    instance.start()
    try:
        first = instance.store.latest
        with _written(server, name, kind) as writers:
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
    assert _apply(kind, chunks, changes) == _select(server, name)


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
    number_in = _TABLES[kind][2]
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


def _select(server: DatabaseServer, name: TableName) -> set[tuple[Any, ...]]:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {name}")
        return set(cursor.fetchall())


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
