"""The shape of a stream of several tables, without Spark running."""

import pickle
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.events.file import LogFile
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.model import Column, Position, TableName, TableSchema, WireType
from penstock.spark import struct_rows
from penstock.spark.change_log import ChangeLog
from penstock.spark.layout import TableLayout
from penstock.spark.options import ReadOptions
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import DELETE, INSERT, UPDATE


def table_of(name: str, *columns: Column) -> TableSchema:
    key = Column("id", WireType.LONG, nullable=False)
    return TableSchema(TableName("shop", name), (key, *columns), ("id",))


ITEM = table_of("item", Column("name", WireType.VARCHAR, size=200, charset="utf8mb4"))
COUNT = table_of("count", Column("many", WireType.LONGLONG, unsigned=True))
OTHER = table_of("other")
QUIET = table_of("quiet", Column("note", WireType.VARCHAR, size=200, charset="utf8mb4"))
TABLES = (ITEM, COUNT, QUIET)
LONG_DECIMAL = table_of("long_decimal", Column("n", WireType.NEWDECIMAL, precision=65, scale=30))


def layout_of(tables: Sequence[TableSchema]) -> TableLayout:
    names = ",".join(str(table.name) for table in tables)
    options = ReadOptions.of({"server": "127.0.0.1:1", "tables": names})
    fields = {table.name: arrow_fields_of_table(table) for table in tables}
    return pickle.loads(pickle.dumps(TableLayout(options, fields)))  # noqa: S301 - just made


def written(folder: Path, *transactions: Sequence[tuple[int, TableSchema, Sequence[Any]]]) -> Path:
    """A log file: transactions of (change, table, images)."""
    log = LogWriter().open()
    ids = {table.name: number for number, table in enumerate((ITEM, COUNT, OTHER, QUIET, LONG_DECIMAL), 7)}
    for changes in transactions:
        log.begin()
        for change, table, images in changes:
            log.map(ids[table.name], table)
            log.rows(change, ids[table.name], table, images)
        log.commit()
    path = folder / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    return path


def batches_of(path: Path, layout: TableLayout) -> list[pa.RecordBatch]:
    batches = [batch for block in LogFile(path) for batch in layout.batches(block)]
    for batch in batches:
        assert batch.schema == layout.schema
        batch.validate(full=True)
    return batches


def rows_of(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def expected(path: Path) -> list[dict[str, Any]]:
    """The same rows, table by table and put in order one by one."""
    rows = list[dict[str, Any]]()
    for block in LogFile(path):
        for table in TABLES:
            fields = arrow_fields_of_table(table)
            for batch in decode_changes(block, table.name, fields):
                for row in batch.to_pylist():
                    own = {name: row.pop(name) for name in fields.names}
                    structs = {other.name.table: own if other is table else None for other in TABLES}
                    rows.append({"_table": str(table.name), **structs, **row})
    return sorted(rows, key=lambda row: (row["_seq"], row["_row"]))


MIXED = (
    [(INSERT, ITEM, [[1, "kettle"], [2, None]]), (INSERT, COUNT, [[1, 2**64 - 1]]), (INSERT, ITEM, [[3, "äöü"]])],
    [(INSERT, OTHER, [[1], [2]])],
    [(UPDATE, COUNT, [[1, 5], [1, 6]]), (INSERT, OTHER, [[3]]), (DELETE, ITEM, [[2, None]])],
    [(INSERT, ITEM, [[number, "x" * number] for number in range(10, 60)])],
)


def test_changes_of_several_tables_are_in_one_order(tmp_path: Path) -> None:
    path = written(tmp_path, *MIXED)
    batches = batches_of(path, layout_of(TABLES))
    rows = rows_of(batches)
    assert len(batches) == 1
    assert rows == expected(path)
    names = [row["_table"].removeprefix("shop.") for row in rows[:7]]
    assert names == ["item", "item", "count", "item", "count", "count", "item"]
    assert [row["count"] for row in rows[2:5]] == [{"id": 1, "many": 2**64 - 1}, None, {"id": 1, "many": 5}]
    assert {row["quiet"] for row in rows} == {None}


def test_the_blocks_of_a_part_are_decoded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block costs a decoding of each of its tables."""
    path, layout = written(tmp_path, *MIXED), layout_of(TABLES)
    pieces = [piece for block in LogFile(path) for piece in block.split(64)]
    assert len(pieces) > 3
    names = ",".join(str(table.name) for table in TABLES)
    log = ChangeLog(ReadOptions.of({"server": "127.0.0.1:1", "tables": names}))
    monkeypatch.setattr(log, "read", lambda _: iter(pieces))
    batches = list(log.read_rows(b"", layout))
    assert len(batches) == 1
    assert rows_of(batches) == expected(path)


def test_a_block_is_several_batches_where_rows_are_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(struct_rows, "rows_per_batch", lambda _: 3)
    path = written(tmp_path, *MIXED)
    batches = batches_of(path, layout_of(TABLES))
    assert {batch.num_rows for batch in batches[:-1]} == {3}
    assert rows_of(batches) == expected(path)


def test_tables_without_changes_share_their_columns_from_batch_to_batch(tmp_path: Path) -> None:
    """So that a table costs something only in batches that have changes of it."""
    batches = batches_of(written(tmp_path, *MIXED), layout := layout_of(TABLES))
    batches += batches_of(written(tmp_path, *MIXED[:1]), layout)
    quiet = [batch.column("quiet") for batch in batches]
    assert [column.null_count for column in quiet] == [batch.num_rows for batch in batches]
    assert len({column.buffers()[0].address for column in quiet}) == 1


def test_a_hundred_tables_make_batches_of_a_bounded_size(tmp_path: Path) -> None:
    tables = [table_of(f"t{number}", *(Column(f"c{i}", WireType.LONGLONG) for i in range(20))) for number in range(100)]
    log = LogWriter().open()
    log.begin()
    for number, table in enumerate(tables):
        log.map(number + 1, table)
        log.rows(INSERT, number + 1, table, [[row, *range(20)] for row in range(30)])
    log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    batches = batches_of(path, layout_of(tables))
    assert sum(batch.num_rows for batch in batches) == 3000
    assert max(batch.nbytes for batch in batches) < 24 << 20
    for row in rows_of(batches)[::97]:
        own = row[row["_table"].removeprefix("shop.")]
        assert own == {"id": row["_row"] & 0xFFFF_FFFF} | {f"c{i}": i for i in range(20)}


def test_a_column_that_was_renamed_is_absent_under_its_other_name(tmp_path: Path) -> None:
    renamed = table_of("item", Column("title", WireType.VARCHAR, size=200, charset="utf8mb4"))
    path = written(tmp_path, [(INSERT, ITEM, [[1, "a"]])], [(INSERT, renamed, [[2, "b"]])])
    before, after = (rows_of(batches_of(path, layout_of([table]))) for table in (ITEM, renamed))
    assert [(row["item"]["name"], row["_absent"]) for row in before] == [("a", None), (None, ["name"])]
    assert [(row["item"]["title"], row["_absent"]) for row in after] == [(None, ["title"]), ("b", None)]


@pytest.mark.parametrize("option", ["table", "tables"])
def test_a_decimal_that_spark_has_no_type_for_is_the_same_text_in_every_shape(tmp_path: Path, option: str) -> None:
    """In changes and in the rows of a snapshot; never with an exponent."""
    texts = [f"0.{'0' * 30}", f"-0.{'0' * 29}1", f"1.5{'0' * 29}"]
    name, values = LONG_DECIMAL.name, [Decimal(text) for text in texts]
    fields = arrow_fields_of_table(LONG_DECIMAL)
    layout = TableLayout(ReadOptions.of({"server": "127.0.0.1:1", option: str(name)}), {name: fields})
    path = written(tmp_path, [(INSERT, LONG_DECIMAL, [[number, value] for number, value in enumerate(values)])])
    snapshot = pa.RecordBatch.from_arrays(
        [pa.array(range(3), pa.int32()), pa.array(values, fields.field("n").type)], schema=fields
    )
    for batches in (batches_of(path, layout), layout.snapshot_batches(name, snapshot, Position("binlog.000001", 4))):
        rows = rows_of(list(batches))
        assert [row["n"] if option == "table" else row["long_decimal"]["n"] for row in rows] == texts


def test_a_block_without_changes_of_these_tables_gives_nothing(tmp_path: Path) -> None:
    assert batches_of(written(tmp_path, [(INSERT, OTHER, [[1]])]), layout_of(TABLES)) == []
