"""How an output format writes a column: a method per kind of value, and the choice between them.

| column                          | array that comes in                  | method                |
|---------------------------------|--------------------------------------|-----------------------|
| integers                        | integer                              | `write_integers`      |
| DECIMAL                         | decimal                              | `write_decimals`      |
| FLOAT, DOUBLE                   | float                                | `write_floats`        |
| text, ENUM, SET                 | string                               | `write_texts`         |
| bytes, GEOMETRY                 | binary                               | `write_binaries`      |
| text in no known charset        | binary                               | `write_guessed_texts` |
| DATE, TIME, DATETIME, TIMESTAMP | string, as the server prints it, UTC | `write_times`         |
| YEAR                            | integer                              | `write_years`         |
| BIT                             | unsigned integer                     | `write_bits`          |
| JSON of MySQL                   | string                               | `write_documents`     |
| VECTOR                          | list of floats                       | `write_vectors`       |
"""

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import to_arrow_numbers
from penstock.inspect.shapes import lacks_charset
from penstock.model import Column, WireType
from penstock.render import text
from penstock.render.weave import FormattedColumn, write_lines

_FOUR = np.array([4], np.int64)
_LARGEST_FLOAT = to_arrow_numbers(np.array([np.finfo(np.float32).max], np.float32))[0]
TIME_TYPES = {
    WireType.DATE, WireType.TIME, WireType.TIME2, WireType.DATETIME, WireType.DATETIME2,
    WireType.TIMESTAMP, WireType.TIMESTAMP2,
}  # fmt: skip


class ValueWriter(ABC):
    """Describes how an output format writes the values of a column: a method per kind of value, and the choice between
    them."""

    null: str

    def write_integers(self, array: pa.Array) -> FormattedColumn:
        """Return integers as this format writes them."""
        return FormattedColumn(text.write_plain(array), self.null)

    def write_decimals(self, array: pa.Array) -> FormattedColumn:
        """Return DECIMAL values as this format writes them."""
        return FormattedColumn(text.write_decimals(array), self.null)

    def write_floats(self, array: pa.Array) -> FormattedColumn:
        """Return FLOAT and DOUBLE values as this format writes them."""
        return FormattedColumn(write_server_floats(array), self.null)

    def write_years(self, array: pa.Array) -> FormattedColumn:
        """Return YEAR values as this format writes them."""
        return self.write_integers(array)

    def write_bits(self, array: pa.Array, width: int) -> FormattedColumn:  # noqa: ARG002 - for languages that show all digits
        """Return BIT values of this width as this format writes them."""
        return self.write_integers(array)

    def write_documents(self, array: pa.Array) -> FormattedColumn:
        """Return JSON documents as this format writes them."""
        return self.write_texts(array)

    @abstractmethod
    def write_texts(self, array: pa.Array) -> FormattedColumn:
        """Return texts, ENUM and SET values as this format writes them."""

    @abstractmethod
    def write_binaries(self, array: pa.Array) -> FormattedColumn:
        """Return binary values as this format writes them."""

    def write_guessed_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts whose charset is unknown: as texts where they are printable UTF-8, otherwise as bytes."""
        marks = text.are_printable(array)
        if marks.all():
            return self.write_printable_texts(text.view_as_text(array))
        if not marks.any():
            return self.write_binaries(array)
        rows = np.arange(len(array))
        # What is no UTF-8 must not be taken for it, even where it is not shown.
        printable = self.write_printable_texts(text.view_as_text(array.take(to_arrow_numbers(np.flatnonzero(marks)))))
        others = self.write_binaries(array.take(to_arrow_numbers(np.flatnonzero(~marks))))
        row_numbers = np.where(marks, np.cumsum(marks) - 1, int(marks.sum()) + np.cumsum(~marks) - 1)
        parts = [
            write_lines([part.pick_rows(rows[: len(part.texts)])], len(part.texts)) for part in (printable, others)
        ]
        return FormattedColumn(pa.concat_arrays(parts).take(to_arrow_numbers(row_numbers.astype(np.int64))))

    def write_printable_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts whose charset is unknown and which are UTF-8."""
        return self.write_texts(array)

    @abstractmethod
    def write_times(self, array: pa.Array, column: Column) -> FormattedColumn:
        """Return DATE, TIME, DATETIME and TIMESTAMP values as this format writes them."""

    @abstractmethod
    def write_vectors(self, array: pa.Array) -> FormattedColumn:
        """Return VECTOR values, lists of float32, as texts of this output format."""

    def write_column(self, column: Column, array: pa.Array) -> FormattedColumn:  # noqa: PLR0911 - a branch per kind of value
        """Return the values of a column as this format writes them, by the method for the column's type."""
        kind = array.type
        if column.type in TIME_TYPES:
            return self.write_times(array, column)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return self.write_guessed_texts(array) if lacks_charset(column) else self.write_binaries(array)
        if pa.types.is_decimal(kind):
            return self.write_decimals(array)
        if pa.types.is_floating(kind):
            return self.write_floats(array)
        if pa.types.is_list(kind):
            return self.write_vectors(array)
        match column.type:
            case WireType.JSON:
                return self.write_documents(array)
            case WireType.BIT:
                return self.write_bits(array, column.size)
            case WireType.YEAR:
                return self.write_years(array)
            case _:
                return self.write_integers(array) if pa.types.is_integer(kind) else self.write_texts(array)


def write_server_floats(array: pa.Array) -> pa.Array:
    """Write floats with the fewest digits that read back as the same number, within the range that servers accept.

    Servers read a FLOAT as a double first, and the fewest digits of the largest float, 3.4028235e38, are slightly
    larger than it: the servers refuse them as out of range. It gets the digits of the double that it is exactly.
    """
    texts = text.write_plain(array)
    if array.type != pa.float32():
        return texts
    is_largest = pc.equal(pc.abs(array), _LARGEST_FLOAT)
    return (
        pc.if_else(is_largest, text.write_plain(array.cast(pa.float64())), texts)
        if pc.any(is_largest).as_py()
        else texts
    )


def vector_bytes(array: pa.Array) -> pa.Array:
    """Return lists of float32 as the little-endian bytes that the server stores."""
    bounds = pc.multiply(array.offsets.cast(pa.int64()), to_arrow_numbers(_FOUR)[0])
    values = array.values.buffers()[1]
    return pa.Array.from_buffers(pa.large_binary(), len(array), [array.buffers()[0], bounds.buffers()[1], values])


def write_vector_texts(array: pa.Array) -> pa.Array:
    """Return lists of float32 as the text inside a JSON array, without its brackets: `[1.0, 0.5]` becomes `1.0,0.5`."""
    nulls = array.is_null() if array.null_count else None
    items = pa.LargeListArray.from_arrays(array.offsets.cast(pa.int64()), write_json_floats(array.values), mask=nulls)
    return pc.binary_join(items, text.make_scalar(","))


def write_json_floats(array: pa.Array) -> pa.Array:
    """Write floats as JSON numbers; infinities and NaN, which a server stores in vectors only, are in quotes: "inf"."""
    texts, is_number = text.write_plain(array), pc.is_finite(array)
    return (
        texts
        if pc.all(is_number).as_py() in {True, None}
        else pc.if_else(is_number, texts, text.join_columns('"', texts, '"'))
    )
