"""A column of row images → the texts that canal's clients get, and the type they are said to be of.

`sqlType` is a number of java.sql.Types. An unsigned number whose highest bit is set is said to be of the next wider
type, since a client would read it with the type's own range.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.values.column import DecodeOptions
from penstock.model import Column, WireType
from penstock.render import text
from penstock.render.canal import row_kernels
from penstock.render.canal.reals import write_java_floats
from penstock.render.canal.zone import TimeZone
from penstock.render.dialect import write_vector_texts

W = WireType
_DIGITS_OF_WORD = 9


class SqlType(IntEnum):
    """A type number of java.sql.Types."""

    BIT = -7
    TINYINT = -6
    BIGINT = -5
    CHAR = 1
    DECIMAL = 3
    INTEGER = 4
    SMALLINT = 5
    REAL = 7
    DOUBLE = 8
    VARCHAR = 12
    DATE = 91
    TIME = 92
    TIMESTAMP = 93
    OTHER = 1111
    BLOB = 2004
    CLOB = 2005


S = SqlType
_PLAIN = {
    W.TINY: S.TINYINT, W.SHORT: S.SMALLINT, W.INT24: S.INTEGER, W.LONG: S.INTEGER, W.LONGLONG: S.BIGINT,
    W.NEWDECIMAL: S.DECIMAL, W.FLOAT: S.REAL, W.DOUBLE: S.DOUBLE, W.BIT: S.BIT, W.YEAR: S.VARCHAR, W.DATE: S.DATE,
    W.TIME: S.TIME, W.TIME2: S.TIME, W.DATETIME: S.TIMESTAMP, W.DATETIME2: S.TIMESTAMP, W.TIMESTAMP: S.TIMESTAMP,
    W.TIMESTAMP2: S.TIMESTAMP, W.GEOMETRY: S.BLOB, W.ENUM: S.INTEGER, W.VECTOR: S.VARCHAR,
}  # fmt: skip
_WIDER = {W.TINY: S.SMALLINT, W.SHORT: S.INTEGER, W.INT24: S.INTEGER, W.LONG: S.BIGINT, W.LONGLONG: S.DECIMAL}
_BITS = {W.TINY: 8, W.SHORT: 16, W.INT24: 24, W.LONG: 32, W.LONGLONG: 64}
_INSTANTS = {W.TIMESTAMP, W.TIMESTAMP2}
_LABELLED = {W.ENUM, W.SET}


@dataclass(frozen=True, slots=True)
class SqlTypes:
    """The `sqlType` that canal gives a column for a value, for NULL, and for an unsigned number with its highest bit
    set.
    """

    value: int
    null: int
    wide: int

    @property
    def all(self) -> tuple[int, int, int]:
        """Return the three types in the order of the frames of a column."""
        return self.value, self.null, self.wide


@dataclass(frozen=True, slots=True)
class CanalValueWriter:
    """Writes values as the texts that canal's clients expect, in canal's style or in Penstock's.

    writer = CanalValueWriter(zone=Zone("Asia/Shanghai"))
    writer.write_column(column, array)  # an array of texts
    """

    style: Literal["canal", "penstock"] = "canal"
    zone: TimeZone = field(default_factory=TimeZone)

    @property
    def decoding(self) -> DecodeOptions:
        """Return how rows must be decoded for this writer."""
        return DecodeOptions(dates="text", labels="number" if self.style == "canal" else "text")

    def sql_types(self, column: Column) -> SqlTypes:
        """Return the types that canal gives a column."""
        kind = column.type
        if kind in _LABELLED and self.style == "penstock" and column.labels:
            return SqlTypes(S.VARCHAR, S.VARCHAR, S.VARCHAR)
        match kind:
            case W.SET:
                return SqlTypes(S.BIT, S.BLOB, S.BIT)
            case W.JSON:
                return SqlTypes(S.VARCHAR, S.OTHER, S.VARCHAR)
            case W.STRING | W.VARCHAR | W.VARCHAR_COMPRESSED | W.BLOB | W.BLOB_COMPRESSED:
                sql_type = _text_sql_type(column)
                return SqlTypes(sql_type, sql_type, sql_type)
            case _:
                sql_type = _PLAIN[kind]
                return SqlTypes(sql_type, sql_type, _WIDER.get(kind, sql_type) if column.unsigned else sql_type)

    def write_column(self, column: Column, array: pa.Array) -> pa.Array:  # noqa: PLR0911 - one per kind of value
        """Write the values of a column as texts; a null stays null."""
        kind = array.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            is_padded = column.type is W.STRING and self.style == "canal"
            return _decode_latin1(_strip_padding(array) if is_padded else array)
        if pa.types.is_decimal(kind):
            return _trim_decimals(array) if self.style == "canal" else text.write_decimals(array)
        if pa.types.is_floating(kind):
            return write_java_floats(array)
        if pa.types.is_list(kind):
            return text.join_columns("[", write_vector_texts(array), "]")
        if column.type is W.YEAR:
            return _write_years(array)
        if column.type in _INSTANTS:
            return self.zone.convert_from_utc(text.write_plain(array))
        return text.write_plain(array)


def are_wide(column: Column, array: pa.Array) -> NDArray[np.bool_] | None:
    """Return which unsigned numbers have their highest bit set; None if there is none."""
    if not column.unsigned or column.type not in _BITS or not pa.types.is_integer(array.type):
        return None
    values = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    values = values[array.offset : array.offset + len(array)]
    is_wide = values >= np.array(1 << _BITS[column.type] - 1, values.dtype)
    return is_wide if is_wide.any() else None


def _text_sql_type(column: Column) -> int:
    """Return the java.sql.Types number of a text or binary column."""
    is_bytes = column.charset in {"", "binary"} and not column.declared
    if is_bytes:
        return S.BLOB
    if column.type in {W.BLOB, W.BLOB_COMPRESSED}:
        return S.CLOB
    return S.CHAR if column.type is W.STRING else S.VARCHAR


def _decode_latin1(array: pa.Array) -> pa.Array:
    """Write each byte as the Latin-1 character with its number."""
    data, bounds = text.get_bytes(array)
    size = row_kernels.latin1_size(data, bounds)
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    row_kernels.write_latin1(data, bounds, out_bounds, out)
    return text.texts_from_bytes_like(array, out_bounds, out)


def _strip_padding(array: pa.Array) -> pa.Array:
    """Return BINARY values without the zero bytes at their end, as the log has them."""
    data, bounds = text.get_bytes(array)
    out, out_bounds = np.empty(int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(array) + 1, np.int64)
    used = row_kernels.strip_zeros(data, bounds, out_bounds, out)
    return text.texts_from_bytes_like(array, out_bounds, out[:used])


def _trim_decimals(array: pa.Array) -> pa.Array:
    """Write decimals as canal does.

    Servers store nine digits per word; the digits of the last word are left out if all of them are zero, except for the
    first after the point.
    """
    whole = text.write_decimals(array)
    scale = array.type.scale
    if not scale % _DIGITS_OF_WORD:
        return whole
    data, bounds = text.get_bytes(whole)
    out, out_bounds = np.empty(int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(whole) + 1, np.int64)
    kept = scale - scale % _DIGITS_OF_WORD
    used = row_kernels.trim_decimals(data, bounds, kept, out_bounds, out)
    return text.texts_from_bytes_like(whole, out_bounds, out[:used])


def _write_years(array: pa.Array) -> pa.Array:
    """Write years as texts; the zero year is 0000."""
    texts = text.write_plain(array)
    is_zero = pc.equal(array, to_arrow_numbers(np.zeros(1, np.int16))[0])
    return pc.if_else(is_zero, text.make_scalar("0000"), texts) if pc.any(is_zero).as_py() else texts
