"""A column of texts that several parts write, each into rows of its own: nothing is copied but into the column."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.render.weave import LineLayout, bounds_from_sizes


@dataclass(frozen=True, slots=True, eq=False)
class LongTexts:
    """Texts that together may be larger than one Arrow array of strings can hold."""

    bounds: NDArray[np.int64]
    data: NDArray[np.uint8]
    is_there: NDArray[np.bool_]

    def slice_texts(self, first: int, stop: int) -> pa.Array:
        """Return some of the texts as an array of strings; null where none was written."""
        start, end = int(self.bounds[first]), int(self.bounds[stop])
        bounds = (self.bounds[first : stop + 1] - start).astype(np.int32)
        is_there = self.is_there[first:stop]
        valid = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
        buffers = [valid, pa.py_buffer(bounds), pa.py_buffer(self.data[start:end])]
        return pa.Array.from_buffers(pa.string(), stop - first, buffers)


class TextColumnBuilder:
    """Builds one column of texts from several parts. Each part writes other rows of the column; rows that no part
    writes are null. All parts are measured first, then written into one buffer.

    column = TextColumnBuilder(3)
    column.add(np.array([2, 0]), LineLayout(pattern, 2))
    column.write().slice_texts(0, 3)  # row 1 is null
    """

    def __init__(self, rows: int) -> None:
        self._sizes, self._is_there = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        self._parts: list[tuple[NDArray[np.int64], LineLayout, str]] = []

    def add(self, rows: NDArray[np.int64], layout: LineLayout, first: str = "") -> None:
        """Add a part: line i of `layout` is written as row `rows[i]` of the column. If `first` is set, it replaces the
        first character of each of these texts. JSON objects of rows without some columns need it: each of their members
        is written with a comma before it, and the first comma becomes the opening brace."""
        self._sizes[rows] = layout.sizes
        self._is_there[rows] = True
        self._parts.append((rows, layout, first))

    def write(self) -> LongTexts:
        """Write all parts that were added, and return the column."""
        bounds = bounds_from_sizes(self._sizes)
        out = np.empty(int(bounds[-1]), np.uint8)
        for rows, layout, first in self._parts:
            starts = bounds[rows]
            layout.write(starts, out)
            if first:
                out[starts] = ord(first)
        return LongTexts(bounds, out, self._is_there)
