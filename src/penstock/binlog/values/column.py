"""The one table of column types: how a value lies on the wire, and what it becomes in Arrow.

| type                     | on the wire                          | Arrow                                  |
|--------------------------|--------------------------------------|----------------------------------------|
| TINYINT … BIGINT         | 1, 2, 3, 4, 8 bytes little-endian    | int8 … int64, uint8 … uint64           |
| FLOAT, DOUBLE            | IEEE, 4 or 8 bytes                   | float32, float64                       |
| DECIMAL(p,s)             | groups of 9 digits, big-endian       | decimal128(p,s); decimal256 above 38   |
| DATE                     | 3 bytes                              | date32; a zero date is null            |
| TIME(f)                  | 3 bytes + fraction, big-endian       | duration[us]                           |
| DATETIME(f)              | 5 bytes + fraction, big-endian       | timestamp[us]; a zero date is null     |
| TIMESTAMP(f)             | 4 bytes + fraction, big-endian       | timestamp[us, UTC]; zero is null       |
| YEAR                     | 1 byte, years since 1900             | int16                                  |
| CHAR, VARCHAR, TEXT      | length 1–4 bytes, then the bytes     | string                                 |
| BINARY, VARBINARY, BLOB  | the same                             | binary                                 |
| ENUM                     | number, 1 or 2 bytes                 | string, the label                      |
| SET                      | bits, 1–8 bytes                      | string, labels joined by commas        |
| JSON of MariaDB          | it is a LONGTEXT                     | string                                 |

What is not in the table is refused by name when a reader asks for such a column.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

import pyarrow as pa

from penstock.binlog.values.charset import UTF8
from penstock.errors import SchemaError
from penstock.model import Column, TableName, WireType

_INT_WIDTH = {WireType.TINY: 1, WireType.SHORT: 2, WireType.INT24: 3, WireType.LONG: 4, WireType.LONGLONG: 8}
_FIXED_WIDTH = {
    WireType.FLOAT: 4, WireType.DOUBLE: 8, WireType.DATE: 3, WireType.YEAR: 1,
    WireType.TIMESTAMP: 4, WireType.TIME: 3, WireType.DATETIME: 8,
}  # fmt: skip
_SIGNED = {1: pa.int8(), 2: pa.int16(), 3: pa.int32(), 4: pa.int32(), 8: pa.int64()}
_UNSIGNED = {1: pa.uint8(), 2: pa.uint16(), 3: pa.uint32(), 4: pa.uint32(), 8: pa.uint64()}
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class Family(Enum):
    """Which kernel decodes the column."""

    INTEGER = auto()
    REAL = auto()
    DECIMAL = auto()
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    YEAR = auto()
    BYTES = auto()
    ENUM = auto()
    SET = auto()


@dataclass(frozen=True, slots=True)
class Wire:
    """How far a field reaches: `width` bytes, or as many as its first `length_bytes` bytes say."""

    length_bytes: int
    width: int


@lru_cache(maxsize=20_000)
def wire_of(column: Column) -> Wire:
    """Known for every type, so that a reader can step over columns it does not decode."""
    kind = column.type
    if kind in _INT_WIDTH:
        return Wire(0, _INT_WIDTH[kind])
    if kind in _FIXED_WIDTH:
        return Wire(0, _FIXED_WIDTH[kind])
    fraction = (column.size + 1) // 2
    match kind:
        case WireType.NEWDECIMAL:
            return Wire(0, decimal_width(column.precision, column.scale))
        case WireType.TIMESTAMP2:
            return Wire(0, 4 + fraction)
        case WireType.DATETIME2:
            return Wire(0, 5 + fraction)
        case WireType.TIME2:
            return Wire(0, 3 + fraction)
        case WireType.BIT:
            return Wire(0, (column.size + 7) // 8)
        case WireType.ENUM | WireType.SET:
            return Wire(0, column.size)
        case WireType.VARCHAR | WireType.STRING:
            return Wire(1 if column.size < 256 else 2, 0)
        case _:
            return Wire(column.size, 0)


def decimal_width(precision: int, scale: int) -> int:
    whole = precision - scale
    return whole // 9 * 4 + _DIGIT_BYTES[whole % 9] + scale // 9 * 4 + _DIGIT_BYTES[scale % 9]


@lru_cache(maxsize=20_000)
def family_of(column: Column, table: TableName) -> tuple[Family, pa.DataType]:
    """The kernel family and Arrow type, or an error that names the column."""
    kind = column.type
    if kind in _INT_WIDTH:
        return Family.INTEGER, (_UNSIGNED if column.unsigned else _SIGNED)[_INT_WIDTH[kind]]
    match kind:
        case WireType.FLOAT:
            return Family.REAL, pa.float32()
        case WireType.DOUBLE:
            return Family.REAL, pa.float64()
        case WireType.NEWDECIMAL if column.precision <= 38:
            return Family.DECIMAL, pa.decimal128(column.precision, column.scale)
        case WireType.NEWDECIMAL:
            return Family.DECIMAL, pa.decimal256(column.precision, column.scale)
        case WireType.DATE:
            return Family.DATE, pa.date32()
        case WireType.TIME2:
            return Family.TIME, pa.duration("us")
        case WireType.DATETIME2:
            return Family.DATETIME, pa.timestamp("us")
        case WireType.TIMESTAMP2:
            return Family.TIMESTAMP, pa.timestamp("us", "UTC")
        case WireType.YEAR:
            return Family.YEAR, pa.int16()
        case WireType.ENUM | WireType.SET if not any("\ufffd" in label for label in column.labels):
            return (Family.ENUM if kind is WireType.ENUM else Family.SET), pa.string()
        case WireType.VARCHAR | WireType.STRING | WireType.BLOB if column.charset in UTF8:
            return Family.BYTES, pa.string()
        case WireType.VARCHAR | WireType.STRING | WireType.BLOB if column.charset == "binary":
            return Family.BYTES, pa.binary()
        case _:
            what = f"charset {column.charset}" if column.charset else f"type {kind.name}"
            raise SchemaError(
                f"column {table}.{column.name} has {what}, which is not decoded yet:"
                " leave it out with the option `columns`"
            )


def arrow_type(column: Column, table: TableName) -> pa.DataType:
    return family_of(column, table)[1]
