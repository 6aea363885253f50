"""How one language writes a column: a method per kind of value, and the choice between them.

| column                          | array that comes in                  | method     |
|---------------------------------|--------------------------------------|------------|
| integers                        | integer                              | `number`   |
| DECIMAL                         | decimal                              | `decimal`  |
| FLOAT, DOUBLE                   | float                                | `real`     |
| text, ENUM, SET                 | string                               | `text`     |
| bytes, GEOMETRY                 | binary                               | `binary`   |
| text in no known charset        | binary                               | `guessed`  |
| DATE, TIME, DATETIME, TIMESTAMP | string, as the server prints it, UTC | `moment`   |
| YEAR                            | integer                              | `year`     |
| BIT                             | unsigned integer                     | `bits`     |
| JSON of MySQL                   | string                               | `document` |
| VECTOR                          | list of floats                       | `vector`   |
"""

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import to_arrow_numbers
from penstock.inspect.shapes import lacks_charset
from penstock.model import Column, WireType
from penstock.render import text
from penstock.render.weave import Written, weave

_FOUR = np.array([4], np.int64)
_LARGEST_FLOAT = to_arrow_numbers(np.array([np.finfo(np.float32).max], np.float32))[0]
MOMENTS = {
    WireType.DATE, WireType.TIME, WireType.TIME2, WireType.DATETIME, WireType.DATETIME2,
    WireType.TIMESTAMP, WireType.TIMESTAMP2,
}  # fmt: skip


class Dialect(ABC):
    null: str

    def number(self, array: pa.Array) -> Written:
        return Written(text.plain(array), self.null)

    def decimal(self, array: pa.Array) -> Written:
        return Written(text.decimals(array), self.null)

    def real(self, array: pa.Array) -> Written:
        return Written(server_reals(array), self.null)

    def year(self, array: pa.Array) -> Written:
        return self.number(array)

    def bits(self, array: pa.Array, width: int) -> Written:  # noqa: ARG002 - for languages that show all digits
        return self.number(array)

    def document(self, array: pa.Array) -> Written:
        return self.text(array)

    @abstractmethod
    def text(self, array: pa.Array) -> Written: ...

    @abstractmethod
    def binary(self, array: pa.Array) -> Written: ...

    def guessed(self, array: pa.Array) -> Written:
        """Write texts whose charset nobody knows: as texts where they are printable UTF-8, else as bytes."""
        marks = text.are_printable(array)
        if marks.all():
            return self.printable(text.as_text(array))
        if not marks.any():
            return self.binary(array)
        every = np.arange(len(array))
        # What is no UTF-8 must not be taken for it, even where it is not shown.
        shown = self.printable(text.as_text(array.take(to_arrow_numbers(np.flatnonzero(marks)))))
        others = self.binary(array.take(to_arrow_numbers(np.flatnonzero(~marks))))
        places = np.where(marks, np.cumsum(marks) - 1, int(marks.sum()) + np.cumsum(~marks) - 1)
        parts = [weave([part.at(every[: len(part.texts)])], len(part.texts)) for part in (shown, others)]
        return Written(pa.concat_arrays(parts).take(to_arrow_numbers(places.astype(np.int64))))

    def printable(self, array: pa.Array) -> Written:
        """Write texts whose charset nobody knows, and which are UTF-8."""
        return self.text(array)

    @abstractmethod
    def moment(self, array: pa.Array, column: Column) -> Written: ...

    @abstractmethod
    def vector(self, array: pa.Array) -> Written: ...

    def write(self, column: Column, array: pa.Array) -> Written:  # noqa: PLR0911 - a branch per kind of value
        kind = array.type
        if column.type in MOMENTS:
            return self.moment(array, column)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return self.guessed(array) if lacks_charset(column) else self.binary(array)
        if pa.types.is_decimal(kind):
            return self.decimal(array)
        if pa.types.is_floating(kind):
            return self.real(array)
        if pa.types.is_list(kind):
            return self.vector(array)
        match column.type:
            case WireType.JSON:
                return self.document(array)
            case WireType.BIT:
                return self.bits(array, column.size)
            case WireType.YEAR:
                return self.year(array)
            case _:
                return self.number(array) if pa.types.is_integer(kind) else self.text(array)


def server_reals(array: pa.Array) -> pa.Array:
    """Numbers with the fewest digits that read back as the same number, within the range that servers take.

    They read a FLOAT as a double first, and the fewest digits of the largest float, 3.4028235e38, are a little larger
    than it: the servers refuse them as out of range. It gets the digits of the double that it is exactly.
    """
    texts = text.plain(array)
    if array.type != pa.float32():
        return texts
    is_largest = pc.equal(pc.abs(array), _LARGEST_FLOAT)
    return pc.if_else(is_largest, text.plain(array.cast(pa.float64())), texts) if pc.any(is_largest).as_py() else texts


def vector_bytes(array: pa.Array) -> pa.Array:
    """Lists of float32 as the little-endian bytes that the server keeps."""
    bounds = pc.multiply(array.offsets.cast(pa.int64()), to_arrow_numbers(_FOUR)[0])
    values = array.values.buffers()[1]
    return pa.Array.from_buffers(pa.large_binary(), len(array), [array.buffers()[0], bounds.buffers()[1], values])


def vector_texts(array: pa.Array) -> pa.Array:
    """Lists of float32 as numbers with commas between them, as JSON has them."""
    nulls = array.is_null() if array.null_count else None
    items = pa.LargeListArray.from_arrays(array.offsets.cast(pa.int64()), real_texts(array.values), mask=nulls)
    return pc.binary_join(items, text.constant(","))


def real_texts(array: pa.Array) -> pa.Array:
    """Numbers as JSON has them; what is none (a server stores it in vectors only) is in quotes: "inf"."""
    texts, is_number = text.plain(array), pc.is_finite(array)
    return (
        texts if pc.all(is_number).as_py() in {True, None} else pc.if_else(is_number, texts, text.join('"', texts, '"'))
    )
