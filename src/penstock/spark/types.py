"""Arrow types of the decoder → Arrow types that Spark has.

Spark has no unsigned integers and no decimals beyond 38 digits: an unsigned integer becomes the next wider signed
one (64 bits: decimal(20,0)), a longer decimal its text, the same as everywhere else.
"""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def for_spark(fields: pa.Schema) -> pa.Schema:
    """Return the same fields in types that Spark can hold, with the names that Spark gives list items."""
    return pa.schema([pa.field(field.name, _type(field.type)) for field in fields])


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal256(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _type(field.type)) for field in kind])
    return _WIDER.get(kind, kind)


def cast_for_spark(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array in the type that Spark has for it. The text of a decimal has all digits of its fraction: Arrow
    would write small ones with an exponent."""
    if array.type == kind:
        return array
    if pa.types.is_decimal(array.type) and pa.types.is_string(kind):
        from penstock.render.text import write_decimals  # noqa: PLC0415 - brings kernels, which planning does without

        array = write_decimals(array)
    return array.cast(kind)


def spark_schema(fields: pa.Schema) -> StructType:
    """Return an Arrow schema as a Spark schema; timestamps without a time zone stay without one."""
    return from_arrow_schema(fields, prefer_timestamp_ntz=True)
