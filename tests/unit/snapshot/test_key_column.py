"""Conditions on keys, in SQL."""

import pytest

from penstock.binlog.values.column import Family
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.snapshot.chunks import Chunk, ChunkSize
from penstock.snapshot.key_column import KeyColumn, after, up_to
from penstock.snapshot.table import SnapshotTable

_ID = KeyColumn("id", Family.INTEGER, "")
_NAME = KeyColumn("na`me", Family.TEXT, "latin1")


def test_a_condition_on_several_columns_begins_with_a_range_of_the_first() -> None:
    assert after((_ID,), ("5",)) == "`id` > 5"
    assert up_to((_ID,), ("5",)) == "`id` <= 5"
    assert after((_ID, _NAME), ("5", "_latin1 x'41'")) == "`id` >= 5 AND (`id` > 5 OR `na``me` > _latin1 x'41')"
    assert up_to((_ID, _NAME), ("5", "x")) == "`id` <= 5 AND (`id` < 5 OR `na``me` <= x)"


@pytest.mark.parametrize(
    ("column", "text", "literal"),
    [
        (_ID, "-7", "-7"),
        (_NAME, "4D75", "_latin1 x'4D75'"),
        (KeyColumn("b", Family.BYTES, "binary"), "00FF", "x'00FF'"),
        (KeyColumn("d", Family.DATE, ""), "2024-02-29", "'2024-02-29'"),
        (KeyColumn("u", Family.UUID, ""), "o'x\\", "'o''x\\\\'"),
    ],
)
def test_literals(column: KeyColumn, text: str, literal: str) -> None:
    assert column.literal(text) == literal


@pytest.mark.parametrize("kind", [WireType.FLOAT, WireType.DOUBLE, WireType.ENUM, WireType.SET, WireType.JSON])
def test_a_type_whose_order_cannot_be_written_exactly_is_no_key(kind: WireType) -> None:
    labels = ("a", "b") if kind in {WireType.ENUM, WireType.SET} else ()
    assert KeyColumn.of(Column("c", kind, size=1, labels=labels)) is None


def _table(rows: int, size: int) -> SnapshotTable:
    schema = TableSchema(TableName("a", "b"), (Column("id", WireType.LONG), Column("na`me", WireType.VARCHAR)))
    return SnapshotTable(schema, schema.columns, (_ID, _NAME), "PRIMARY", rows, size)


def test_a_limit_with_fewer_columns_takes_all_keys_that_begin_with_it() -> None:
    table = _table(10, 100)
    assert Chunk(("3",), ("5", "x")).condition(table) == "(`id` > 3) AND (`id` <= 5 AND (`id` < 5 OR `na``me` <= x))"
    assert Chunk(None, None).condition(table) == "TRUE"


def test_a_chunk_is_bounded_by_rows_and_by_bytes() -> None:
    assert ChunkSize(1000, 1 << 20).rows_for(_table(10_000, 10_000)) == 1000
    assert ChunkSize(1000, 1 << 20).rows_for(_table(10_000, 10_000 << 20)) == 1
    assert ChunkSize(1000, 1 << 20).rows_for(_table(0, 0)) == 1000
