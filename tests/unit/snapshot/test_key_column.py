"""Conditions on keys, in SQL."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from penstock.binlog.values.column import Family
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.snapshot.chunks import Chunk, ChunkSize
from penstock.snapshot.key_column import KeyColumn, after, up_to, value_text
from penstock.snapshot.table import SnapshotTable

_ID = KeyColumn("id", Family.INTEGER, "")
_NAME = KeyColumn("na`me", Family.TEXT, "latin1")


def test_a_condition_on_several_columns_compares_the_second_beside_one_value_of_the_first() -> None:
    names = _ID.quoted, _NAME.quoted
    assert after(names, ("5",)) == "`id` > 5"
    assert up_to(names, ("5",)) == "`id` <= 5"
    assert after(names, ("5", "_latin1 x'41'")) == "`id` > 5 OR `id` = 5 AND (`na``me` > _latin1 x'41')"
    assert up_to(names, ("5", "x")) == "`id` < 5 OR `id` = 5 AND (`na``me` <= x)"


@pytest.mark.parametrize(
    ("column", "text", "literal"),
    [
        (_ID, "-7", "-7"),
        (_NAME, "4D75", "_latin1 x'4d75'"),
        (KeyColumn("b", Family.BYTES, "binary"), "00FF", "x'00ff'"),
        (KeyColumn("d", Family.DATE, ""), "2024-02-29", "'2024-02-29'"),
        (KeyColumn("u", Family.UUID, ""), "o'x\\", "'o''x\\\\'"),
    ],
)
def test_literals(column: KeyColumn, text: str, literal: str) -> None:
    assert column.literal(text) == literal


@pytest.mark.parametrize("column", [_ID, _NAME, KeyColumn("b", Family.BYTES, "binary")])
@pytest.mark.parametrize("text", ["1 OR 1=1", "41' OR '1'='1", "x", "4"])
def test_a_key_that_a_client_sends_is_never_read_as_sql(column: KeyColumn, text: str) -> None:
    if column is _ID and text == "4":
        assert column.literal(text) == "4"
        return
    with pytest.raises(SchemaError, match="not "):
        column.literal(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (b"\x00\xff", "00ff"),
        (Decimal("1E+3"), "1000"),
        (timedelta(hours=-800, microseconds=-5), "-800:00:00.000005"),
        (datetime(2024, 2, 29, 1, 2, 3, 4, UTC), "2024-02-29 01:02:03.000004"),
        (date(2024, 2, 29), "2024-02-29"),
        ("o'x", "o'x"),
    ],
)
def test_values_as_texts_that_the_database_reads(value: object, text: str) -> None:
    assert value_text(value) == text


def test_a_text_is_compared_in_the_collation_of_its_column() -> None:
    column = KeyColumn("n", Family.TEXT, "latin1", "latin1_swedish_ci")
    assert column.typed_value("ä'") == "CONVERT(_utf8mb4 x'c3a427' USING latin1) COLLATE latin1_swedish_ci"


@pytest.mark.parametrize("kind", [WireType.FLOAT, WireType.DOUBLE, WireType.ENUM, WireType.SET, WireType.JSON])
def test_a_type_whose_order_cannot_be_written_exactly_is_no_key(kind: WireType) -> None:
    labels = ("a", "b") if kind in {WireType.ENUM, WireType.SET} else ()
    assert KeyColumn.of(Column("c", kind, size=1, labels=labels)) is None


def _table(rows: int, size: int) -> SnapshotTable:
    schema = TableSchema(TableName("a", "b"), (Column("id", WireType.LONG), Column("na`me", WireType.VARCHAR)))
    return SnapshotTable(schema, schema, schema.columns, (_ID, _NAME), "PRIMARY", ("id", "na`me"), rows, size)


def test_a_limit_with_fewer_columns_takes_all_keys_that_begin_with_it() -> None:
    table = _table(10, 100)
    assert Chunk(("3",), ("5", "41")).condition(table) == (
        "(`id` > 3) AND (`id` < 5 OR `id` = 5 AND (`na``me` <= _latin1 x'41'))"
    )
    assert Chunk(None, None).condition(table) == "TRUE"


def test_a_chunk_is_bounded_by_rows_and_by_bytes() -> None:
    assert ChunkSize(1000, 1 << 20).rows_for(_table(10_000, 10_000)) == 1000
    assert ChunkSize(1000, 1 << 20).rows_for(_table(10_000, 10_000 << 20)) == 1
    assert ChunkSize(1000, 1 << 20).rows_for(_table(0, 0)) == 1000
