"""What the table of types says of a column: how far its field reaches, which kernel decodes it, to which Arrow type."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import pyarrow as pa

from penstock.binlog.values.type_table import TYPES, ColumnType, Family
from penstock.model import Column, WireType

W = WireType
_BY_NAME = {each.name.split("(")[0].split(" ")[0]: each for each in TYPES if each.name != "JSON (MariaDB)"}


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """The choices of a reader: how dates, labels and partial JSON are decoded.

    options = DecodeOptions(dates="text", labels="number")
    batches = decode_changes(block, table, fields, options)
    """

    dates: Literal["null", "text", "error"] = "null"  # dates that no calendar has; `text` makes the whole column text
    labels: Literal["text", "number"] = "text"  # ENUM and SET
    json_doubles: Literal["1.0", "1"] = "1.0"  # how a double without a fraction is printed; MySQL 5.7 prints 1
    # Changes to a JSON document that the log does not have: an error, or operations in `_partial`.
    partial_json: Literal["error", "operations"] = "error"


DEFAULT = DecodeOptions()

_INT_WIDTH = {W.TINY: 1, W.SHORT: 2, W.INT24: 3, W.LONG: 4, W.LONGLONG: 8}
_FIXED_WIDTH = {W.FLOAT: 4, W.DOUBLE: 8, W.DATE: 3, W.YEAR: 1, W.TIMESTAMP: 4, W.TIME: 3, W.DATETIME: 8}
_SIGNED = {1: pa.int8(), 2: pa.int16(), 3: pa.int32(), 4: pa.int32(), 8: pa.int64()}
_UNSIGNED = {1: pa.uint8(), 2: pa.uint16(), 3: pa.uint32(), 4: pa.uint32(), 8: pa.uint64()}
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_NAMES = {
    W.TINY: "TINYINT", W.SHORT: "SMALLINT", W.INT24: "MEDIUMINT", W.LONG: "INT", W.LONGLONG: "BIGINT",
    W.FLOAT: "FLOAT", W.DOUBLE: "DOUBLE", W.NEWDECIMAL: "DECIMAL", W.BIT: "BIT", W.YEAR: "YEAR", W.DATE: "DATE",
    W.TIME: "TIME", W.TIME2: "TIME", W.DATETIME: "DATETIME", W.DATETIME2: "DATETIME",
    W.TIMESTAMP: "TIMESTAMP", W.TIMESTAMP2: "TIMESTAMP", W.ENUM: "ENUM", W.SET: "SET", W.JSON: "JSON",
    W.GEOMETRY: "GEOMETRY", W.VECTOR: "VECTOR",
}  # fmt: skip
_TEXTS = {
    W.STRING: ("CHAR", "BINARY"), W.VARCHAR: ("VARCHAR", "VARBINARY"), W.VARCHAR_COMPRESSED: ("VARCHAR", "VARBINARY"),
    W.BLOB: ("TINYTEXT", "TINYBLOB"), W.BLOB_COMPRESSED: ("TINYTEXT", "TINYBLOB"),
}  # fmt: skip
_TEMPORAL = {Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP}
_PLAIN_ARROW = {
    Family.BIT: pa.uint64(), Family.YEAR: pa.int16(), Family.DATE: pa.date32(), Family.TIME: pa.duration("us"),
    Family.DATETIME: pa.timestamp("us"), Family.TIMESTAMP: pa.timestamp("us", "UTC"), Family.BYTES: pa.binary(),
    Family.VECTOR: pa.list_(pa.field("item", pa.float32(), nullable=False)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WireSize:
    """The size of a column's value in a row of the binlog: `width` bytes, or as many as its first `length_bytes` bytes
    say."""

    length_bytes: int
    width: int


@lru_cache(maxsize=12_000)
def wire_size_of(column: Column) -> WireSize:
    """Return how many bytes a value of this column takes in a row of the binlog, or which of its bytes say that."""
    kind = column.type
    if kind in _INT_WIDTH:
        return WireSize(0, _INT_WIDTH[kind])
    if kind in _FIXED_WIDTH:
        return WireSize(0, _FIXED_WIDTH[kind])
    fraction = (column.size + 1) // 2
    match kind:
        case W.NEWDECIMAL:
            return WireSize(0, decimal_width(column.precision, column.scale))
        case W.TIMESTAMP2:
            return WireSize(0, 4 + fraction)
        case W.DATETIME2:
            return WireSize(0, 5 + fraction)
        case W.TIME2:
            return WireSize(0, 3 + fraction)
        case W.BIT:
            return WireSize(0, (column.size + 7) // 8)
        case W.ENUM | W.SET:
            return WireSize(0, column.size)
        case W.VARCHAR | W.STRING | W.VARCHAR_COMPRESSED:
            return WireSize(1 if column.size < 256 else 2, 0)
        case _:
            return WireSize(column.size, 0)


def decimal_width(precision: int, scale: int) -> int:
    """Return how many bytes a DECIMAL of this precision and scale takes in a row of the binlog."""
    whole = precision - scale
    return whole // 9 * 4 + _DIGIT_BYTES[whole % 9] + scale // 9 * 4 + _DIGIT_BYTES[scale % 9]


def type_of(column: Column) -> ColumnType:
    """Return the line of the table of types for a column."""
    if column.declared:
        return _BY_NAME[column.declared.upper()]
    if column.type in _TEXTS:
        text, binary = _TEXTS[column.type]
        return _BY_NAME[text if column.charset not in {"", "binary"} else binary]
    return _BY_NAME[_NAMES[column.type]]


@lru_cache(maxsize=12_000)
def kernel_family_of(column: Column, choice: DecodeOptions = DEFAULT) -> tuple[Family, pa.DataType]:
    """Return the kernel family that decodes a column, and the Arrow type of the result."""
    family = type_of(column).family
    if family is Family.INTEGER:
        return family, (_UNSIGNED if column.unsigned else _SIGNED)[_INT_WIDTH[column.type]]
    if family is Family.REAL:
        return family, pa.float32() if column.type is W.FLOAT else pa.float64()
    if family is Family.DECIMAL:
        wide = column.precision > 38
        return family, (pa.decimal256 if wide else pa.decimal128)(column.precision, column.scale)
    if family in _TEMPORAL and choice.dates == "text":
        return family, pa.string()
    if family in {Family.ENUM, Family.SET} and (choice.labels == "number" or not column.labels):
        return family, pa.uint16() if family is Family.ENUM else pa.uint64()
    return family, _PLAIN_ARROW.get(family, pa.string())


def arrow_type(column: Column, choice: DecodeOptions = DEFAULT) -> pa.DataType:
    """Return the Arrow type that a column is decoded to."""
    return kernel_family_of(column, choice)[1]
