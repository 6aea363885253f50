"""How a column of a table is compared with that of its mirror: both become one Arrow type first, so that equal values
have equal bytes, whichever type the mirror has for them.

| column of the table                       | type in the mirror                              | compared as          |
|-------------------------------------------|-------------------------------------------------|----------------------|
| integers, YEAR, BIT                       | integers, decimals without a fraction, booleans | text of the number   |
| FLOAT, DOUBLE                             | floats                                          | float64              |
| DECIMAL                                   | decimals, integers; text above 38 digits        | text, all digits     |
| DATE, TIME, DATETIME, TIMESTAMP           | the same; TIME also as integer microseconds     | the number behind it |
| the same, where the mirror has text       | text                                            | text of the server   |
| CHAR, TEXT, ENUM, SET, JSON, UUID, INET   | text                                            | text                 |
| BINARY, BLOB, GEOMETRY                    | binary                                          | bytes                |
| VECTOR                                    | lists of floats                                 | float32              |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.errors import SchemaError
from penstock.model import Column
from penstock.render.digest import digest_spans
from penstock.render.text import TEXT, get_bytes, get_validity, write_decimals, write_hex, write_plain
from penstock.snapshot.key_column import value_text

_NUMBERS = {Family.INTEGER, Family.YEAR, Family.BIT}
_TIMES = {Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP}
_MOST_DIGITS = 76
_WIDE_INTEGER = pa.decimal128(20, 0)
_COMPARED_AS = {
    Family.DATE: pa.date32(),
    Family.TIME: pa.duration("us"),
    Family.BYTES: pa.large_binary(),
    Family.VECTOR: pa.list_(pa.float32()),
}
_NULL = np.array([0x5BD1E995A1B2C3D4, 0x1F83D9ABFB41BD6B], np.int64)  # what a null has instead of a digest


@dataclass(frozen=True, slots=True)
class MirrorColumn:
    """A column of a table and of its mirror.

    pair = MirrorColumn.of(column, pa.int32(), pa.int64())
    digests = digest_values(pair.convert(array))
    """

    column: Column
    family: Family
    scale: int  # of decimals: that of the side with more digits behind the point
    is_json: bool  # documents are equal whatever their spaces and the order of keys

    @classmethod
    def of(cls, column: Column, source: pa.DataType, mirror: pa.DataType, *, is_json: bool = False) -> "MirrorColumn":
        """Pair a column, which is read from the database as one type, with the type of its mirror. Raises SchemaError
        for types whose values cannot be compared."""
        family = kernel_family_of(column)[0]
        if family in {Family.ENUM, Family.SET}:  # labels, or numbers where they are not known
            family = Family.INTEGER if pa.types.is_integer(source) else Family.TEXT
        if not _ACCEPTS[family](mirror):
            raise SchemaError(
                f"column {column.name} is {source} in the database and {mirror} in the mirror: they cannot be compared"
            )
        scale = max((kind.scale for kind in (source, mirror) if pa.types.is_decimal(kind)), default=0)
        if family is Family.DECIMAL and max(_whole_digits(source), _whole_digits(mirror)) + scale > _MOST_DIGITS:
            raise SchemaError(f"column {column.name} has too many digits to be compared: {source}, mirror {mirror}")
        return cls(column, family, scale, is_json or family is Family.JSON)

    @property
    def name(self) -> str:
        """Return the name of the column."""
        return self.column.name

    def convert(self, array: pa.Array) -> pa.Array:
        """Return values of either side in the type in which they are compared."""
        if self.family in _NUMBERS:
            return _write_integers(array)
        if is_text(array.type):
            return _cut_fractions(array.cast(TEXT)) if self.family in _TIMES else array.cast(TEXT)
        if self.family is Family.DECIMAL:
            return self._write_decimals(array)
        if self.family is Family.REAL:
            return pc.add(array.cast(pa.float64()), 0.0)  # -0.0 equals 0.0
        if self.family in {Family.DATETIME, Family.TIMESTAMP}:
            # Both are compared in UTC, and the database has no more than microseconds.
            moments = array.cast(pa.timestamp("us", array.type.tz), safe=False)
            return moments.cast(pa.int64()).cast(pa.timestamp("us"))
        return array.cast(_COMPARED_AS[self.family], safe=False)

    def _write_decimals(self, array: pa.Array) -> pa.Array:
        """Return decimals as texts with the same number of digits behind the point."""
        if pa.types.is_integer(array.type):
            array = array.cast(_WIDE_INTEGER)
        if array.type.scale < self.scale:
            array = array.cast(pa.decimal256(_MOST_DIGITS, self.scale))
        return write_decimals(array)

    def key_texts(self, converted: pa.Array) -> pa.Array:
        """Return converted values of a key as texts, of which `KeyColumn.typed_value` makes SQL again."""
        kind = converted.type
        if kind == TEXT:
            return converted
        if pa.types.is_large_binary(kind):
            return write_hex(converted)
        if pa.types.is_duration(kind):
            texts = [None if value is None else value_text(value) for value in converted.to_pylist()]
            return pa.array(texts, TEXT)
        return converted.cast(TEXT)


def show_values(converted: pa.Array) -> list[str | None]:
    """Return converted values as texts for people; equal values have equal texts, and no others."""
    kind = converted.type
    if pa.types.is_large_binary(kind):
        return write_hex(converted).to_pylist()
    if pa.types.is_list(kind):
        return [None if value is None else str(value) for value in converted.to_pylist()]
    return (converted.cast(pa.int64()) if pa.types.is_duration(kind) else converted).cast(TEXT).to_pylist()


def digest_values(converted: pa.Array) -> NDArray[np.int64]:
    """Return the digest of each converted value as two numbers of 64 bits; null has one of its own."""
    kind, count = converted.type, len(converted)
    if pa.types.is_list(kind):
        offsets = np.frombuffer(converted.buffers()[1] or b"", np.int32)[converted.offset :][: count + 1]
        data, bounds = _bytes_of(converted.values), (offsets.astype(np.int64) + converted.values.offset) * 4
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        data, bounds = get_bytes(converted)
    else:
        width = kind.bit_width // 8
        data, bounds = _bytes_of(converted), (np.arange(count + 1, dtype=np.int64) + converted.offset) * width
    digests = np.zeros((count, 2), np.int64)
    if count:
        digest_spans(data, bounds, digests)
    if converted.null_count:
        digests[get_validity(converted) == 0] = _NULL
    return digests


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def is_time(column: Column) -> bool:
    """Return whether a column has dates or times, which may be read as texts."""
    return kernel_family_of(column)[0] in _TIMES


def _write_integers(array: pa.Array) -> pa.Array:
    """Return integers of any type as texts."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if pa.types.is_decimal(array.type):
        return write_decimals(array)
    return write_plain(array) if pa.types.is_integer(array.type) else array.cast(TEXT)


def _cut_fractions(texts: pa.Array) -> pa.Array:
    """Return texts of times without zeros at their ends: columns may have different numbers of digits for them."""
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1"), r"\.0+$", "")


def _bytes_of(array: pa.Array) -> NDArray[np.uint8]:
    """Return the memory of an array of values of one width."""
    return np.frombuffer(array.buffers()[1] or b"", np.uint8)


def _whole_digits(kind: pa.DataType) -> int:
    """Return how many digits a number may have before its point."""
    return kind.precision - kind.scale if pa.types.is_decimal(kind) else 20


def _is_bytes(kind: pa.DataType) -> bool:
    """Return whether a type is one of bytes."""
    return any(
        check(kind) for check in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    ) or (str(kind) == "binary_view")


def _is_whole(kind: pa.DataType) -> bool:
    """Return whether a type is one of integers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind) or (pa.types.is_decimal(kind) and not kind.scale)


def _is_vector(kind: pa.DataType) -> bool:
    """Return whether a type is one of lists of floats."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return is_list and pa.types.is_floating(kind.value_type)


_ACCEPTS: dict[Family, Callable[[pa.DataType], bool]] = {
    Family.INTEGER: _is_whole,
    Family.YEAR: _is_whole,
    Family.BIT: _is_whole,
    Family.REAL: pa.types.is_floating,
    Family.DECIMAL: lambda kind: pa.types.is_decimal(kind) or pa.types.is_integer(kind) or is_text(kind),
    Family.DATE: lambda kind: pa.types.is_date(kind) or is_text(kind),
    Family.TIME: lambda kind: pa.types.is_duration(kind) or pa.types.is_int64(kind) or is_text(kind),
    Family.DATETIME: lambda kind: pa.types.is_timestamp(kind) or is_text(kind),
    Family.TIMESTAMP: lambda kind: pa.types.is_timestamp(kind) or is_text(kind),
    Family.BYTES: _is_bytes,
    Family.VECTOR: _is_vector,
    **dict.fromkeys((Family.TEXT, Family.JSON, Family.UUID, Family.INET4, Family.INET6), is_text),
}  # fmt: skip
