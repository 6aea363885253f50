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
from penstock.render.canal.reals import java_reals
from penstock.render.canal.zone import Zone
from penstock.render.dialect import vector_texts

W = WireType
_DIGITS_OF_WORD = 9


class SqlType(IntEnum):
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
    """Of a value, of NULL, and of an unsigned number with its highest bit set."""

    value: int
    null: int
    wide: int

    @property
    def all(self) -> tuple[int, int, int]:
        """In the order of the frames of a column."""
        return self.value, self.null, self.wide


@dataclass(frozen=True, slots=True)
class Values:
    """How values are written; `Decoding` must be `decoding` of it."""

    style: Literal["canal", "penstock"] = "canal"
    zone: Zone = field(default_factory=Zone)

    @property
    def decoding(self) -> DecodeOptions:
        return DecodeOptions(dates="text", labels="number" if self.style == "canal" else "text")

    def types(self, column: Column) -> SqlTypes:
        kind = column.type
        if kind in _LABELLED and self.style == "penstock" and column.labels:
            return SqlTypes(S.VARCHAR, S.VARCHAR, S.VARCHAR)
        match kind:
            case W.SET:
                return SqlTypes(S.BIT, S.BLOB, S.BIT)
            case W.JSON:
                return SqlTypes(S.VARCHAR, S.OTHER, S.VARCHAR)
            case W.STRING | W.VARCHAR | W.VARCHAR_COMPRESSED | W.BLOB | W.BLOB_COMPRESSED:
                found = _type_of_text(column)
                return SqlTypes(found, found, found)
            case _:
                found = _PLAIN[kind]
                return SqlTypes(found, found, _WIDER.get(kind, found) if column.unsigned else found)

    def write(self, column: Column, array: pa.Array) -> pa.Array:  # noqa: PLR0911 - one per kind of value
        """The texts; a null stays null."""
        kind = array.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            is_padded = column.type is W.STRING and self.style == "canal"
            return _latin1(_without_zeros(array) if is_padded else array)
        if pa.types.is_decimal(kind):
            return _decimals(array) if self.style == "canal" else text.decimals(array)
        if pa.types.is_floating(kind):
            return java_reals(array)
        if pa.types.is_list(kind):
            return text.join("[", vector_texts(array), "]")
        if column.type is W.YEAR:
            return _years(array)
        if column.type in _INSTANTS:
            return self.zone.shifted(text.plain(array))
        return text.plain(array)


def are_wide(column: Column, array: pa.Array) -> NDArray[np.bool_] | None:
    """Which numbers have their highest bit set; None where none can."""
    if not column.unsigned or column.type not in _BITS or not pa.types.is_integer(array.type):
        return None
    values = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    values = values[array.offset : array.offset + len(array)]
    found = values >= np.array(1 << _BITS[column.type] - 1, values.dtype)
    return found if found.any() else None


def _type_of_text(column: Column) -> int:
    is_bytes = column.charset in {"", "binary"} and not column.declared
    if is_bytes:
        return S.BLOB
    if column.type in {W.BLOB, W.BLOB_COMPRESSED}:
        return S.CLOB
    return S.CHAR if column.type is W.STRING else S.VARCHAR


def _latin1(array: pa.Array) -> pa.Array:
    """Each byte as the character with its number."""
    data, bounds = text.bytes_of(array)
    size = row_kernels.latin1_size(data, bounds)
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    row_kernels.write_latin1(data, bounds, out_bounds, out)
    return text.like(array, out_bounds, out)


def _without_zeros(array: pa.Array) -> pa.Array:
    """BINARY as the log has it: without the zeros at its end."""
    data, bounds = text.bytes_of(array)
    out, out_bounds = np.empty(int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(array) + 1, np.int64)
    used = row_kernels.strip_zeros(data, bounds, out_bounds, out)
    return text.like(array, out_bounds, out[:used])


def _decimals(array: pa.Array) -> pa.Array:
    """As canal has them: the servers keep nine digits in a word, and those of the last one are left out when they are
    all zero, up to the first behind the point."""
    whole = text.decimals(array)
    scale = array.type.scale
    if not scale % _DIGITS_OF_WORD:
        return whole
    data, bounds = text.bytes_of(whole)
    out, out_bounds = np.empty(int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(whole) + 1, np.int64)
    kept = scale - scale % _DIGITS_OF_WORD
    used = row_kernels.trim_decimals(data, bounds, kept, out_bounds, out)
    return text.like(whole, out_bounds, out[:used])


def _years(array: pa.Array) -> pa.Array:
    texts = text.plain(array)
    is_zero = pc.equal(array, to_arrow_numbers(np.zeros(1, np.int16))[0])
    return pc.if_else(is_zero, text.constant("0000"), texts) if pc.any(is_zero).as_py() else texts
