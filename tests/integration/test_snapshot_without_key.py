"""A table without a key is one chunk of any size: its rows are given as they come, and are never held together."""

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.cli.snapshot_run import SnapshotRun
from penstock.errors import SourceConnectionError
from penstock.model import TableName
from penstock.render import columnar
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkReader
from penstock.snapshot.result_set import ResultSet
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.spark.snapshot_source import SnapshotDataSource
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of

_ROWS, _ROW_BYTES = 2500, 8000  # more than the buffers of a connection hold
NewDatabase = Callable[[Any], str]


@pytest.fixture
def name(mariadb: DatabaseServer, database: NewDatabase) -> TableName:
    """A table in which every row is there twice."""
    name = TableName(database(mariadb), "t")
    execute(
        mariadb,
        f"USE {name.schema}",
        f"CREATE TABLE {name} (id INT, name VARCHAR({_ROW_BYTES}) CHARACTER SET latin1)",
        f"INSERT INTO {name} SELECT seq DIV 2, REPEAT('x', {_ROW_BYTES}) FROM seq_0_to_{_ROWS - 1}",
        f"ANALYZE TABLE {name}",
    )
    return name


def _read_iterated(server: DatabaseServer, name: TableName, _: Path) -> Iterator[pa.RecordBatch]:
    for rows in TableSnapshot(source_of(server), name):
        yield from rows.batches


def _read_file(server: DatabaseServer, name: TableName, folder: Path) -> Iterator[pa.RecordBatch]:
    SnapshotRun(source_of(server), name, "arrow", SnapshotOptions()).run(folder / "t.arrow")
    yield from pa.ipc.open_file(folder / "t.arrow").read_all().to_batches()


def _read_folder(server: DatabaseServer, name: TableName, folder: Path) -> Iterator[pa.RecordBatch]:
    SnapshotRun(source_of(server), name, "parquet", SnapshotOptions()).run(folder / "rows")
    (part,) = (folder / "rows").glob("part-*.parquet")
    yield from pq.read_table(part).to_batches()


def _read_spark(server: DatabaseServer, name: TableName, _: Path) -> Iterator[pa.RecordBatch]:
    options = {"host": server.host, "port": str(server.port), "user": server.user, "password": server.password}
    source = SnapshotDataSource({**options, "table": str(name)})
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    yield from reader.read(part)


@pytest.mark.parametrize("read", [_read_iterated, _read_file, _read_folder, _read_spark])
def test_rows_of_a_table_without_a_key_are_not_held_together(
    mariadb: DatabaseServer,
    name: TableName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    read: Callable[[DatabaseServer, TableName, Path], Iterator[pa.RecordBatch]],
) -> None:
    made: list[weakref.ref[pa.RecordBatch]] = []
    held: list[int] = []
    decode = ResultSet._decode

    def watched_decode(self: ResultSet, *arguments: Any) -> pa.RecordBatch:
        batch = decode(self, *arguments)
        made.append(weakref.ref(batch))
        held.append(sum(reference() is not None for reference in made))
        return batch

    monkeypatch.setattr(ResultSet, "_decode", watched_decode)
    monkeypatch.setattr(columnar, "_BYTES", 1 << 20)  # a row group of Parquet is held until it is full
    caplog.set_level(logging.WARNING)
    counts: Counter[int] = Counter()
    for batch in read(mariadb, name, tmp_path):
        counts.update(batch.column(0).to_pylist())
        del batch
    assert counts == dict.fromkeys(range(_ROWS // 2), 2)
    assert len(made) > 4
    assert max(held) <= 3, held
    told = capsys.readouterr().err + caplog.text
    assert read is _read_iterated or "has no key that it can be cut by" in told
    assert read not in {_read_file, _read_folder} or f"{_ROWS:,} rows of {name}: 1 chunks" in told


def test_a_connection_that_breaks_behind_the_first_rows_is_an_error(mariadb: DatabaseServer, name: TableName) -> None:
    table = TableSnapshot(source_of(mariadb), name).table
    with ChunkReader(source_of(mariadb)) as reader:
        parts = reader.read_parts(table, Chunk(None, None))
        first = next(parts)
        execute(mariadb, f"KILL {reader._connection.thread_id()}")
        with pytest.raises(SourceConnectionError, match=rf"rows of {name} were read until then.* has no key"):
            list(parts)
        assert 0 < first.rows < _ROWS
        assert sum(part.rows for part in reader.read_parts(table, Chunk(None, None))) == _ROWS


def test_a_connection_that_breaks_before_the_first_rows_is_opened_again(
    mariadb: DatabaseServer, name: TableName
) -> None:
    table = TableSnapshot(source_of(mariadb), name).table
    kills: list[int] = []

    def kill_once(_: int) -> None:
        if not kills:
            kills.append(reader._connection.thread_id())
            execute(mariadb, f"KILL {kills[0]}")
            raise SourceConnectionError("killed")

    with ChunkReader(source_of(mariadb), on_rows=kill_once) as reader:
        assert sum(part.rows for part in reader.read_parts(table, Chunk(None, None))) == _ROWS
    assert kills


def test_an_empty_table_without_a_key_has_a_file(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = TableName(database(mariadb), "empty")
    execute(mariadb, f"CREATE TABLE {name} (id INT)")
    assert list(_read_folder(mariadb, name, tmp_path)) == []
