"""A folder for more tables than files may be open. Ten thousand of them are in tests/integration."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.model import TableName
from penstock.render.file_pool import FilePool
from penstock.render.table_files import BatchFileWriter, OutputFiles
from tests.support.many_tables import first_column, used_mb, write_tables

TABLES = 300


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_more_tables_than_files(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    path = tmp_path / "binlog.000001"
    write_tables(path, TABLES)
    used_mb(path, folder, kind)
    assert len(list(folder.iterdir())) == TABLES
    assert first_column(folder / f"shop.t77.{kind}") == [77, TABLES + 77]


def test_the_pool_opens_again_where_it_ended(tmp_path: Path) -> None:
    pool = FilePool(most_open=2)
    files = {name: pool.create(tmp_path / name) for name in "abcde"}
    (tmp_path / "a").write_bytes(b"old")
    pool.create(tmp_path / "a")
    for turn in range(3):
        for name, file in files.items():
            file.write(f"{name}{turn}".encode())
    pool.close()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: f"{name}0{name}1{name}2" for name in "abcde"
    }
    assert files["a"].tell() == 6


def test_row_groups_wait_together(tmp_path: Path) -> None:
    """The largest make room when all of them hold too much."""
    targets = OutputFiles("parquet", tmp_path, sys.stdout.buffer)
    files = BatchFileWriter(targets, "parquet", waiting_bytes=100_000)
    rows = {TableName("s", name): size for name, size in (("large", 3_000), ("small", 10))}
    for _ in range(20):
        for table, count in rows.items():
            files.write(table, pa.RecordBatch.from_pydict({"id": list(range(count))}))
    files.close()
    targets.close()
    groups = {path.name: pq.ParquetFile(path).metadata for path in tmp_path.iterdir()}
    assert groups["s.large.parquet"].num_row_groups > 3
    assert groups["s.small.parquet"].num_row_groups == 1
    assert groups["s.large.parquet"].num_rows == 60_000


def test_names_that_no_file_system_takes(tmp_path: Path) -> None:
    targets = OutputFiles("csv", tmp_path, sys.stdout.buffer)
    for last in "ab":
        targets.open(TableName("\u6f22" * 64, "\u5b57" * 63 + last)).write(last.encode())
    targets.close()
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["a", "b"]
