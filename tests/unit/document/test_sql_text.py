"""Literals and conditions of document queries, and values of row images."""

import base64
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.sql_text import (
    Key,
    KeyValue,
    can_be_key,
    condition_in,
    literal,
    order_literal,
    quote_table,
    split_keys,
    value_from_json,
)
from penstock.errors import SchemaError
from penstock.model import Column, TableName, WireType
from tests.support.document_shop import integer, text

DATE, DATETIME, TIMESTAMP, TIME = (
    Column("c", kind) for kind in (WireType.DATE, WireType.DATETIME2, WireType.TIMESTAMP2, WireType.TIME2)
)
DECIMAL = Column("c", WireType.NEWDECIMAL, precision=10, scale=2)
BYTES = Column("c", WireType.VARCHAR, charset="binary")


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (7, "7"),
        (-7, "-7"),
        (2**64 - 1, "18446744073709551615"),
        (Decimal("-0.10"), "-0.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-7"), "0.0000001"),
        ("a", "'a'"),
        ("", "''"),
        ("it's", "'it''s'"),
        ("a\\", "'a\\\\'"),
        ("\\'; DROP", "'\\\\''; DROP'"),
        ('"', "'\"'"),
        ("漢\n", "'漢\n'"),
        (b"", "x''"),
        (b"\x00'\xff", "x'0027ff'"),
    ],
)
def test_literals(value: KeyValue, sql: str) -> None:
    assert literal(value) == sql


@given(st.text())
def test_a_text_ends_where_its_literal_ends(value: str) -> None:
    sql = literal(value)
    assert sql[0] == sql[-1] == "'"
    inside = sql[1:-1].replace("\\\\", "").replace("''", "")
    assert "'" not in inside
    assert "\\" not in inside


def test_tables_are_quoted() -> None:
    assert quote_table(TableName("sh`op", "a.b")) == "`sh``op`.`a.b`"


def test_conditions_of_one_and_of_several_columns() -> None:
    assert condition_in(["c.`id`"], [(1,), ("x'y",)]) == "c.`id` IN (1, 'x''y')"
    assert condition_in(["a", "b"], [(1, "x"), (2, b"\x01")]) == "((a = 1 AND b = 'x') OR (a = 2 AND b = x'01'))"


@given(st.lists(st.tuples(st.integers())), st.integers(1, 9))
def test_keys_are_split_into_lists_of_bounded_size(keys: list[Key], size: int) -> None:
    parts = list(split_keys(keys, size))
    assert [key for part in parts for key in part] == keys
    assert all(1 <= len(part) <= size for part in parts)
    assert len(parts) == -(-len(keys) // size)


IMAGES: list[tuple[Column, Any, Any]] = [
    (integer("c"), None, None),
    (text("c"), None, None),
    (integer("c"), 7, 7),
    (Column("c", WireType.LONGLONG, unsigned=True), 2**64 - 1, 2**64 - 1),
    (Column("c", WireType.YEAR), 2024, 2024),
    (Column("c", WireType.BIT, size=8), 5, 5),
    (DECIMAL, "12.50", Decimal("12.50")),
    (text("c"), "a\\'b", "a\\'b"),
    (text("c"), "", ""),
    (text("c"), "1T2Z", "1T2Z"),
    (BYTES, base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
    (DATE, "2024-02-29", "2024-02-29"),
    (DATETIME, "2024-02-29T10:11:12.500", "2024-02-29 10:11:12.500"),
    (TIMESTAMP, "2024-02-29T10:11:12Z", "2024-02-29 10:11:12"),
    (DATETIME, "0000-00-00T00:00:00", "0000-00-00 00:00:00"),
    (TIME, "-10:11:12", "-10:11:12"),
    (Column("c", WireType.ENUM, size=1, labels=("on", "off")), "off", "off"),
]


@pytest.mark.parametrize(("column", "value", "expected"), IMAGES, ids=[str(number) for number in range(len(IMAGES))])
def test_values_of_row_images(column: Column, value: Any, expected: Any) -> None:
    read = value_from_json(column, value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (integer("c"), "seven"),
        (integer("c"), [1]),
        (DECIMAL, "many"),
        (DECIMAL, {}),
        (BYTES, "not base64!"),
        (BYTES, 7),
    ],
)
def test_a_value_of_another_type_is_named(column: Column, value: Any) -> None:
    with pytest.raises(SchemaError, match=r"column c has the value .* which is not of its type"):
        value_from_json(column, value)


@pytest.mark.parametrize(
    ("column", "can"),
    [
        (integer("c"), True),
        (text("c"), True),
        (DECIMAL, True),
        (BYTES, True),
        (DATETIME, True),
        (Column("c", WireType.ENUM, size=1, labels=("a",)), True),
        (Column("c", WireType.FLOAT, size=4), False),
        (Column("c", WireType.DOUBLE, size=8), False),
        (Column("c", WireType.JSON, size=4), False),
        (Column("c", WireType.VECTOR, size=4), False),
    ],
)
def test_rows_are_found_by_exact_values_only(column: Column, can: bool) -> None:
    assert can_be_key(column) == can


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_that_the_log_has_as_bytes_is_read_as_its_text(raw: bytes) -> None:
    column = Column("c", WireType.STRING, size=16, charset="binary", declared="uuid")
    text = str(uuid.UUID(bytes=raw))
    assert value_from_json(column, base64.b64encode(raw).decode()) == text
    assert value_from_json(column, text) == text


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("inet4", b"\x0a", "10.0.0.0"),
        ("inet4", b"\x01\x02\x03\x04", "1.2.3.4"),
        ("inet6", bytes(15) + b"\x01", "::1"),
        ("inet6", b"", "::"),
    ],
)
def test_an_address_that_the_log_has_as_bytes_is_read_as_the_server_prints_it(kind: str, raw: bytes, text: str) -> None:
    """The log leaves out zeros at the end."""
    column = Column("c", WireType.STRING, size=4 if kind == "inet4" else 16, charset="binary", declared=kind)
    assert value_from_json(column, base64.b64encode(raw).decode()) == text
    with pytest.raises(SchemaError, match="which is not of its type"):
        value_from_json(column, "no base64")


KIND = Column("kind", WireType.ENUM, size=1, labels=("z", "a", "1"))
MARKS = Column("marks", WireType.SET, size=1, labels=("y", "b", "2"))


@pytest.mark.parametrize(
    ("column", "value", "number"),
    [(KIND, "z", "1"), (KIND, "1", "3"), (KIND, "", "0"), (MARKS, "", "0"), (MARKS, "y,2", "5"), (MARKS, "b", "2")],
)
def test_labels_are_ordered_by_their_numbers(column: Column, value: str, number: str) -> None:
    assert order_literal(column, value) == number


@pytest.mark.parametrize("column", [KIND, MARKS])
def test_a_label_that_was_added_meanwhile_is_an_error_and_no_other_number(column: Column) -> None:
    with pytest.raises(SchemaError, match="has the label 'new' since its table was read"):
        order_literal(column, "new")
