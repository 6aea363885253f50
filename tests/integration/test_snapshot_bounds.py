"""What a chunk takes of memory and of connections is bounded, however much was written since it was planned."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.config.settings import SnapshotSettings
from penstock.errors import ConfigurationError
from penstock.instance import Instance, snapshot_changes, snapshot_questions, snapshots
from penstock.instance.snapshot_changes import ChunkChanges
from penstock.instance.snapshot_questions import SnapshotQuestions
from penstock.model import Position, TableName
from penstock.snapshot.chunks import Chunk, ChunkSize
from penstock.snapshot.reader import ChunkReader
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of, source_of

_PAGE = 50
_CHUNK = 100
NewDatabase = Callable[[Any], str]


@pytest.fixture
def instance(mariadb: DatabaseServer) -> Iterator[Instance]:
    running = instance_of(mariadb, snapshot=SnapshotSettings(chunk_rows=_CHUNK, chunk_bytes=1 << 16))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def name(mariadb: DatabaseServer, database: NewDatabase) -> TableName:
    name = TableName(database(mariadb), "t")
    execute(
        mariadb,
        f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(2000))",
        f"INSERT INTO {name} VALUES {', '.join(f'({number}, 0)' for number in range(_CHUNK))}",
    )
    return name


def _captured(instance: Instance, server: DatabaseServer) -> Position:
    end = end_of(server)
    assert poll_until(lambda: instance.store.latest >= end, 30)
    return instance.store.latest


def _read(instance: Instance, name: TableName, position: Position) -> dict[int, str]:
    fields = arrow_fields_of_table(instance.describe_tables([name])[0])
    batches = list(instance.snapshots.read(name, Chunk(None, None), position, fields))
    rows = pa.Table.from_batches(batches, fields).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["a"] for row in rows}


def test_rows_that_are_changed_again_and_again_are_held_once(
    mariadb: DatabaseServer, instance: Instance, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_changes, "_PAGE_ROWS", _PAGE)
    monkeypatch.setattr(snapshots, "join_blocks", lambda blocks: blocks)  # each has the changes of one transaction
    held: list[int] = []
    turn = ChunkChanges._turn_page

    def watched_turn(self: ChunkChanges) -> None:
        turn(self)
        held.append(sum(part.num_rows for part in self._kept))

    monkeypatch.setattr(ChunkChanges, "_turn_page", watched_turn)
    position = _captured(instance, mariadb)
    before = _read(instance, name, position)
    for r in (0, 30) * 20:
        execute(mariadb, f"UPDATE {name} SET a = a + 1 WHERE id BETWEEN {r} AND {r + 9}")
        _captured(instance, mariadb)  # alone: capture joins transactions that come at once
    execute(mariadb, f"DELETE FROM {name} WHERE id = 5", f"INSERT INTO {name} VALUES (700, 'new')")
    assert _read(instance, name, position) == before
    assert len(held) > 10, "800 changes make many pages"
    assert max(held) <= 2 * 21 + 2 * _PAGE + 20, held
    after = _captured(instance, mariadb)
    wanted = before | dict.fromkeys((*range(10), *range(30, 40)), "20") | {700: "new"}
    del wanted[5]
    assert _read(instance, name, after) == wanted


def test_more_changed_rows_than_a_chunk_may_hold_are_an_error(
    mariadb: DatabaseServer, instance: Instance, name: TableName
) -> None:
    position = _captured(instance, mariadb)
    before = _read(instance, name, position)
    for first in range(1000, 1600, 100):
        values = ", ".join(f"({number}, REPEAT('x', 2000))" for number in range(first, first + 100))
        execute(mariadb, f"INSERT INTO {name} VALUES {values}", f"DELETE FROM {name} WHERE id >= 1000")
    with pytest.raises(ConfigurationError, match="take more than 1 MiB: start the query with a new checkpoint"):
        _read(instance, name, position)
    execute(mariadb, f"UPDATE {name} SET a = 'later'")
    assert len(_read(instance, name, _captured(instance, mariadb))) == len(before), "at a later position it can be read"


def test_rows_that_have_come_behind_the_last_chunk_are_not_held_together(
    mariadb: DatabaseServer, instance: Instance, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = _captured(instance, mariadb)
    before = _read(instance, name, position)
    execute(mariadb, f"USE {name.schema}", f"INSERT INTO {name} SELECT seq, 'behind' FROM seq_1000_to_2999")
    sizes: list[int] = []
    read = ChunkReader.read

    def watched_read(self: ChunkReader, table: Any, chunk: Chunk) -> Any:
        rows = read(self, table, chunk)
        sizes.append(rows.rows)
        return rows

    monkeypatch.setattr(ChunkReader, "read", watched_read)
    assert _read(instance, name, position) == before
    assert sum(sizes) == 2100
    assert max(sizes) <= 4 * _CHUNK, sizes


_LARGE_ROW = 100_000


@pytest.fixture
def skewed(mariadb: DatabaseServer, database: NewDatabase) -> TableName:
    """A table of small rows, with large ones at its end: the server's estimate of a chunk is far too small there."""
    name = TableName(database(mariadb), "skewed")
    execute(
        mariadb,
        f"USE {name.schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, a LONGTEXT CHARACTER SET latin1)",
        f"INSERT INTO {name} SELECT seq, IF(seq > 2000, REPEAT('x', {_LARGE_ROW}), 'small') FROM seq_1_to_2020",
        f"ANALYZE TABLE {name}",
    )
    return name


def test_a_chunk_that_is_larger_than_estimated_comes_in_parts(mariadb: DatabaseServer, skewed: TableName) -> None:
    snapshot = TableSnapshot(source_of(mariadb), skewed, SnapshotOptions(chunk=ChunkSize(bytes=1 << 16)))
    parts = list(snapshot)
    assert [number for part in parts for batch in part.batches for number in batch.column("id").to_pylist()] == [
        *range(1, 2021)
    ]
    chunks = [part.chunk for part in parts]
    assert len(chunks) > len(set(chunks)), "a part has the chunk that it is of"
    assert max(part.bytes for part in parts) <= 4 << 16


def test_a_chunk_of_an_instance_that_is_larger_than_estimated_is_read_in_pieces(
    mariadb: DatabaseServer, instance: Instance, skewed: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = _captured(instance, mariadb)
    sizes: list[int] = []
    read = ChunkReader.read

    def watched_read(self: ChunkReader, table: Any, chunk: Chunk) -> Any:
        rows = read(self, table, chunk)
        sizes.append(rows.bytes)
        return rows

    monkeypatch.setattr(ChunkReader, "read", watched_read)
    assert {number: len(text) for number, text in _read(instance, skewed, position).items() if number > 2000} == (
        dict.fromkeys(range(2001, 2021), _LARGE_ROW)
    )
    assert max(sizes) <= 4 << 16


def test_rows_of_one_key_are_read_together_whatever_their_size(mariadb: DatabaseServer, database: NewDatabase) -> None:
    """No limit can be set between rows that differ only in a part of the key that is no exact limit."""
    name = TableName(database(mariadb), "t")
    execute(
        mariadb,
        f"USE {name.schema}",
        f"CREATE TABLE {name} (a INT, b DOUBLE, c LONGTEXT CHARACTER SET latin1, PRIMARY KEY (a, b))",
        f"INSERT INTO {name} SELECT seq DIV 5, seq, REPEAT('x', {_LARGE_ROW}) FROM seq_0_to_14",
    )
    table = TableSnapshot(source_of(mariadb), name).table
    with ChunkReader(source_of(mariadb), max_bytes=2 * _LARGE_ROW) as reader:
        parts = list(reader.read_parts(table, Chunk(None, None)))
    assert [part.rows for part in parts if part.rows] == [5, 5, 5]


def test_questions_share_a_connection_that_is_closed_when_it_is_idle(
    mariadb: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    connect = snapshot_questions.connect_for_snapshot
    monkeypatch.setattr(
        snapshot_questions, "connect_for_snapshot", lambda source: opened.append(connect(source)) or opened[-1]
    )
    questions = SnapshotQuestions(lambda: source_of(mariadb), idle_s=2.0)

    def ask() -> int:
        with questions.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            return int(cursor.fetchone()[0])

    first = ask()
    assert {ask() for _ in range(10)} == {first}
    with questions.cursor(), questions.cursor():
        assert len(opened) == 2, "two questions at a time have two connections"
    assert [connection.open for connection in opened].count(True) == 1
    execute(mariadb, f"KILL {ask()}")
    assert ask() > first, "a connection that is broken is opened again"
    with pytest.raises(ZeroDivisionError), questions.cursor():
        raise ZeroDivisionError
    assert not opened[-1].open
    ask()
    assert opened[-1].open
    assert poll_until(lambda: not opened[-1].open, 20)


def test_keys_of_many_changes_are_compared_over_one_connection(
    mariadb: DatabaseServer, instance: Instance, database: NewDatabase
) -> None:
    name = TableName(database(mariadb), "words")
    execute(mariadb, f"CREATE TABLE {name} (id VARCHAR(9) PRIMARY KEY)")
    chunk = Chunk(None, ("62",))  # the bytes of b

    def connections() -> int:
        with closing(mariadb.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Connections'")
            return int(cursor.fetchone()[1])

    assert instance.snapshots.find_inside(name, [["a"], ["c"]], chunk) == [True, False]
    before = connections()
    for _ in range(20):
        assert instance.snapshots.find_inside(name, [["a"], ["c"]], chunk) == [True, False]
    assert connections() - before < 20
