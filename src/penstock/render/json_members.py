"""Members of many JSON objects by column, as slices of the objects' own text: what is written again is not parsed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.render.member_kernels import find_members
from penstock.render.text import TEXT, get_bytes, texts_from_list
from penstock.render.weave import ColumnPiece, FormattedColumn

_QUOTE = ord('"')


@dataclass(frozen=True, slots=True, eq=False)
class JsonMember:
    """The values of one member of JSON objects; value i is data[bounds[2 * i]:bounds[2 * i + 1]].

    A null of JSON is the text `null`. The value of an object that has no such member is empty, which no value is.
    """

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return self.bounds.size // 2

    @property
    def starts(self) -> NDArray[np.int64]:
        """Return where each value begins."""
        return self.bounds[::2]

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Return which objects have the member."""
        return self.bounds[1::2] > self.bounds[::2]

    @property
    def first_bytes(self) -> NDArray[np.uint8]:
        """Return the first byte of each value, which says what kind of value it is; 0 where there is none."""
        first = np.zeros(len(self), np.uint8)
        first[self.is_there] = self.data[self.starts[self.is_there]]
        return first

    def without_quotes(self) -> "JsonMember":
        """Return the member with strings as what is between their quotes; other values stay as they are."""
        shift = (self.first_bytes == _QUOTE).astype(np.int64)
        bounds = self.bounds.copy()
        bounds[::2] += shift
        bounds[1::2] -= shift
        return JsonMember(self.data, bounds)

    def slice_value(self, number: int) -> bytes:
        """Return one value as JSON."""
        return self.data[int(self.bounds[2 * number]) : int(self.bounds[2 * number + 1])].tobytes()

    def to_texts(self) -> pa.Array:
        """Return the values as an array of texts."""
        if not len(self):
            return texts_from_list([])
        return self._slices(None).take(to_arrow_numbers(np.arange(len(self)) * 2))

    def pick_rows(self, rows: NDArray[np.int64], is_null: NDArray[np.bool_] | None = None) -> ColumnPiece:
        """Return the piece of output lines that shows the values: line i that of object rows[i], and `null` where
        `is_null` marks it."""
        return FormattedColumn(self._slices(is_null), "null").pick_rows(rows * 2)

    def _slices(self, is_null: NDArray[np.bool_] | None) -> pa.Array:
        """Return the texts of values, and between each two of them what is between them: nothing is copied."""
        valid = None
        if is_null is not None and is_null.any():
            marks = np.ones(self.bounds.size - 1, np.bool_)
            marks[::2] = ~is_null
            valid = pa.py_buffer(np.packbits(marks, bitorder="little"))
        buffers = [valid, pa.py_buffer(np.ascontiguousarray(self.bounds)), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(TEXT, self.bounds.size - 1, buffers)


def find_json_members(objects: pa.Array, rows: NDArray[np.int64], names: Sequence[str]) -> list[JsonMember]:
    """Return members of the JSON objects in these rows of an array of texts, which rise, for each name one."""
    data, bounds = get_bytes(objects)
    distinct = list(dict.fromkeys(names))
    raw = [json.dumps(name, ensure_ascii=False).encode() for name in distinct]
    name_bounds = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    spans = np.empty((len(raw), 2 * rows.size), np.int64)
    find_members(data, bounds, rows, np.frombuffer(b"".join(raw), np.uint8), name_bounds, spans)
    return [JsonMember(data, spans[distinct.index(name)]) for name in names]
