"""Every type that the decoder gives has a type of Spark that holds all of its values, and Spark takes batches of it."""

from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table
from penstock.binlog.values.column import DecodeOptions
from penstock.errors import PenstockError
from penstock.model import TableSchema
from penstock.spark.types import cast_for_spark, for_spark, spark_schema
from tests.twins.strategy import examples, tables


def only(kind: pa.DataType) -> pa.DataType:
    return for_spark(pa.schema([pa.field("c", kind)])).field("c").type


@pytest.mark.parametrize(
    ("kind", "largest", "expected"),
    [
        (pa.uint8(), 2**8 - 1, pa.int16()),
        (pa.uint16(), 2**16 - 1, pa.int32()),
        (pa.uint32(), 2**32 - 1, pa.int64()),
        (pa.uint64(), 2**64 - 1, pa.decimal128(20, 0)),
    ],
)
def test_an_unsigned_number_becomes_a_wider_one_that_holds_its_largest_value(
    kind: pa.DataType, largest: int, expected: pa.DataType
) -> None:
    assert only(kind) == expected
    assert pa.array([largest, 0, None], kind).cast(expected).to_pylist() == [largest, 0, None]


def test_a_decimal_beyond_38_digits_becomes_its_text() -> None:
    assert only(pa.decimal128(38, 30)) == pa.decimal128(38, 30)
    assert only(pa.decimal256(65, 30)) == pa.string()
    value = Decimal("12345678901234567890123456789012345.678901234567890123456789012345")
    assert cast_for_spark(pa.array([value], pa.decimal256(65, 30)), pa.string()).to_pylist() == [str(value)]


@pytest.mark.parametrize("scale", [0, 1, 18, 30])
@given(st.data())
@examples(60)
def test_the_text_of_a_decimal_has_all_digits_and_no_exponent(scale: int, data: st.DataObject) -> None:
    numbers = st.integers(1 - 10**65, 10**65 - 1) | st.integers(-(10**4), 10**4) | st.none()
    numbers = data.draw(st.lists(numbers, max_size=8))
    values = [None if number is None else Decimal(number).scaleb(-scale, Context(prec=65)) for number in numbers]
    texts = [None if value is None else f"{value:f}" for value in values]
    array = pa.array(values, pa.decimal256(65, scale))
    assert cast_for_spark(array, pa.string()).to_pylist() == texts
    assert cast_for_spark(array[1:], pa.string()).to_pylist() == texts[1:]


def test_other_types_stay_as_they_are() -> None:
    for kind in (
        pa.int64(),
        pa.float32(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.bool_(),
    ):
        assert only(kind) == kind


def test_items_of_lists_and_members_of_structs_are_translated_too() -> None:
    inner = pa.struct([pa.field("n", pa.uint64()), pa.field("names", pa.list_(pa.uint8()))])
    expected = pa.struct(
        [pa.field("n", pa.decimal128(20, 0)), pa.field("names", pa.list_(pa.field("element", pa.int16())))]
    )
    assert only(inner) == expected
    assert only(pa.list_(inner)) == pa.list_(pa.field("element", expected))


def test_a_map_of_texts_stays_one() -> None:
    assert only(pa.map_(pa.string(), pa.string())) == pa.map_(pa.string(), pa.string())


def test_names_and_their_order_stay_and_metadata_goes() -> None:
    fields = pa.schema([pa.field("b", pa.uint8(), metadata={"declared": "uuid"}), pa.field("a", pa.string())])
    shown = for_spark(fields)
    assert shown.names == ["b", "a"]
    assert shown.field("b").metadata is None


def test_the_change_columns_are_what_spark_expects() -> None:
    fields = for_spark(CHANGE_FIELDS)
    assert to_arrow_schema(spark_schema(fields), timezone="UTC") == fields


@given(tables(st.integers(1, 6)), st.sampled_from((DecodeOptions(), DecodeOptions(dates="text"))))
@examples(60)
def test_columns_of_any_table_are_what_spark_expects(table: TableSchema, choice: DecodeOptions) -> None:
    """Spark refuses a first batch whose Arrow schema is not exactly that of the types that were announced."""
    try:
        fields = arrow_fields_of_table(table, choice=choice)
    except PenstockError:
        return  # a column that cannot be decoded is refused before Spark hears of it
    shown = for_spark(fields)
    assert to_arrow_schema(spark_schema(shown), timezone="UTC") == shown
    assert shown.names == fields.names
