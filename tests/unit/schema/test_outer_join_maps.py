"""Tables as servers log them when a statement with an outer join changes them: every column can be null."""

from dataclasses import replace

from penstock.model import Column, TableName, TableSchema, WireType
from penstock.schema.complete import find_difference

KNOWN = TableSchema(
    TableName("shop", "line"),
    (
        Column("order_id", WireType.LONG, nullable=False),
        Column("position", WireType.SHORT, nullable=False),
        Column("note", WireType.VARCHAR, size=40, charset="utf8mb4", nullable=True),
    ),
    ("order_id", "position"),
)


def logged(*nullable: bool) -> TableSchema:
    """Return the table with columns that can, or cannot, be null."""
    pairs = zip(KNOWN.columns, nullable, strict=True)
    return replace(KNOWN, columns=tuple(replace(column, nullable=is_nullable) for column, is_nullable in pairs))


def test_a_table_all_of_whose_columns_can_be_null_in_the_log_is_the_known_one() -> None:
    assert find_difference(logged(True, True, True), KNOWN) == ""


def test_a_table_some_of_whose_columns_can_be_null_is_another_one() -> None:
    assert "order_id has the property to be null" in find_difference(logged(True, False, True), KNOWN)
    assert "note has the property to be null" in find_difference(logged(False, False, False), KNOWN)
