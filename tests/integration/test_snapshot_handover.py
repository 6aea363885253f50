"""A snapshot that is taken under heavy writes, and the changes after it, make the table: nothing is missing, nothing is
there twice.

Changes before the low position of a row's chunk are in the chunk already, and are left out. From its high position on
they are applied strictly: an insert must find no row of its key, an update and a delete must find one, with the old
values. Between the two positions, which differ on a busy MySQL only, a change may be in the chunk or not.
"""

import random
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.model import Position, TableName
from penstock.snapshot.chunks import ChunkSize
from penstock.snapshot.reader import ChunkRows
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of, source_of

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
_IDS = 2000
_WRITERS = 3
_XA_ROLLED_BACK = 1614
"""What MySQL 5.7 says at XA END of a branch that a deadlock has rolled back already: it still wants XA ROLLBACK."""
_SEEDS = [*range(1), *(pytest.param(seed, marks=pytest.mark.campaign) for seed in range(1, 11))]
NewDatabase = Callable[[Any], str]
Row = tuple[int, str]


class _Writer(threading.Thread):
    """Changes random rows in small transactions until it is stopped: some are rolled back, some are of XA."""

    def __init__(self, server: DatabaseServer, name: TableName, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer-{seed}")
        self._server, self._table, self._random, self._stop_event = server, name, random.Random(seed), stop
        self._seed = seed
        self.commits = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with closing(self._server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
                while not self._stop_event.is_set():
                    self._change(connection, cursor)
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.error = error

    def _change(self, connection: Any, cursor: Any) -> None:
        """Run one transaction; a deadlock with another writer rolls it back."""
        kind = self._random.random()
        xid = f"'{self._seed}-{self.commits}'"
        cursor.execute(f"XA START {xid}" if kind < 0.1 else "BEGIN")
        try:
            for _ in range(self._random.randrange(1, 5)):
                cursor.execute(self._statement())
        except Exception as error:
            if error.args[0] not in {1062, 1205, 1213, _XA_ROLLED_BACK}:
                raise
            if kind < 0.1:
                self._end_xa(cursor, xid, "ROLLBACK")
            else:
                connection.rollback()
            return
        if kind < 0.1:
            self._end_xa(cursor, xid, "COMMIT" if kind < 0.08 else "ROLLBACK")
        elif kind < 0.9:
            connection.commit()
        else:
            connection.rollback()
        self.commits += 1

    def _end_xa(self, cursor: Any, xid: str, how: str) -> None:
        try:
            cursor.execute(f"XA END {xid}")
        except Exception as error:
            if error.args[0] != _XA_ROLLED_BACK or how != "ROLLBACK":
                raise
        if how == "COMMIT":
            cursor.execute(f"XA PREPARE {xid}")
        cursor.execute(f"XA {how} {xid}")

    def _statement(self) -> str:
        key, other = self._random.randrange(_IDS), self._random.randrange(_IDS)
        match self._random.randrange(4):
            case 0:
                return f"INSERT IGNORE INTO {self._table} VALUES ({key}, 'new {self.commits}')"
            case 1:
                return f"DELETE FROM {self._table} WHERE id = {key}"
            case 2:
                return f"UPDATE IGNORE {self._table} SET id = {other} WHERE id = {key}"
            case _:
                text = f"'{self._seed} {self.commits}'"
                return f"UPDATE {self._table} SET name = {text} WHERE id BETWEEN {key} AND {key + 3}"


@contextmanager
def _written(server: DatabaseServer, name: TableName, seed: int) -> Iterator[list[_Writer]]:
    stop = threading.Event()
    writers = [_Writer(server, name, 100 * seed + number, stop) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [writer.error for writer in writers] == [None] * _WRITERS


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("flavour", _SERVERS)
def test_chunks_and_the_changes_after_them_make_the_table(
    flavour: str, seed: int, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    rows = ", ".join(f"({number}, 'first')" for number in range(0, _IDS, 2))
    execute(
        server,
        f"CREATE TABLE {name} (id INT PRIMARY KEY, name VARCHAR(40))",
        f"INSERT INTO {name} VALUES {rows}",
        f"ANALYZE TABLE {name}",
    )
    start = end_of(server)
    with _written(server, name, seed) as writers:
        assert poll_until(lambda: all(writer.commits > 5 for writer in writers), 60)
        snapshot = TableSnapshot(source_of(server), name, SnapshotOptions(connections=2, chunk=ChunkSize(100)))
        chunks = list(snapshot)
        before = sum(writer.commits for writer in writers)
        assert poll_until(lambda: sum(writer.commits for writer in writers) > before + 20, 60)
    assert len(chunks) > 3  # ten, or fewer where the server estimates a range to have fewer rows
    end = end_of(server)
    assert _apply(chunks, _changes(server, name, start, end)) == _select(server, name)


def _apply(chunks: list[ChunkRows], changes: list[dict[str, Any]]) -> dict[int, str]:
    """Return the table that the chunks and the changes after them make."""
    table = {
        key: text
        for rows in chunks
        for batch in rows.batches
        for key, text in zip(batch.column("id").to_pylist(), batch.column("name").to_pylist(), strict=True)
    }
    limits = [int(rows.chunk.until[0]) for rows in chunks if rows.chunk.until is not None]
    for change in changes:
        mark = chunks[bisect_left(limits, change["id"])].watermark
        assert mark is not None
        position = Position(change["_file"], change["_offset"])
        if position < mark.low:
            continue
        is_strict = position >= mark.high
        key, text, kind = change["id"], change["name"], change["_change_type"]
        if kind in {"delete", "update_preimage"}:
            if is_strict:
                assert table.get(key) == text, f"{kind} at {position} finds {table.get(key)!r} instead of {change}"
            table.pop(key, None)
        else:
            if is_strict:
                assert key not in table, f"{kind} at {position} finds {table.get(key)!r}: {change}"
            table[key] = text
    return table


def _changes(server: DatabaseServer, name: TableName, start: Position, end: Position) -> list[dict[str, Any]]:
    """Return the changes between two positions, those of XA transactions where they are committed."""
    instance = instance_of(server, start=f"{start.file}:{start.offset}")
    instance.start()
    try:
        assert poll_until(lambda: instance.store.latest >= end, 60)
        (schema,) = instance.describe_tables([name])
        fields = arrow_fields_of_table(schema)
        blocks = instance.read(instance.store.first, instance.store.latest)
        return [row for block in blocks for batch in decode_changes(block, name, fields) for row in batch.to_pylist()]
    finally:
        instance.stop()


def _select(server: DatabaseServer, name: TableName) -> dict[int, str]:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, name FROM {name}")
        return dict(cursor.fetchall())
