"""Lines out of pieces: constants, and columns of text of which each line takes one.

A column is written once for all rows of a block; a line says by number which row it takes, so that images before and
after a change need no arrays of their own, and nothing is copied but into the line itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.render import line_kernels as kernels
from penstock.render.text import bytes_of, of_bytes, of_list, validity


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A column as text: each value between `before` and `after`, a null as `null`."""

    texts: pa.Array
    null: str = ""
    before: str = ""
    after: str = ""

    def at(self, rows: NDArray[np.int64]) -> "Chosen":
        return Chosen(self, rows)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Line i takes row rows[i] of a column."""

    column: Written
    rows: NDArray[np.int64]


Line = Sequence[str | Chosen]
_ROOM = 96  # bytes after the last mark: kernels copy short texts in chunks


class Layout:
    """The pieces of `count` lines in the form that kernels read.

    layout = Layout(["id=", ids.at(rows)], rows.size)
    layout.write(places, out)  # line i takes layout.sizes[i] bytes from places[i] on
    """

    def __init__(self, line: Line, count: int) -> None:
        chosen, tail = _merged(line)
        if tail:  # there is no column at all
            chosen = [Written(of_list([tail])).at(np.zeros(count, np.int64))]
        if any(piece.rows.size != count for piece in chosen):
            raise ValueError(f"a piece of {count} lines says for another number of lines which rows they take")
        self._alive: list[Any] = []
        self._marks = bytearray()
        self._pieces = np.array([self._piece(piece) for piece in chosen], np.int64).reshape(-1, kernels.CELLS)
        self._marks += bytes(_ROOM)
        self.sizes = np.zeros(count, np.int64)
        kernels.measure_lines(self._pieces, self.sizes)

    def write(self, places: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Write each line into `out` from its place on."""
        kernels.write_lines(self._pieces, np.frombuffer(self._marks, np.uint8), places, self.sizes, out)

    def _piece(self, piece: Chosen) -> list[int]:
        column = piece.column
        (data, bounds), valid = bytes_of(column.texts), validity(column.texts)
        arrays = [data, bounds, valid, np.ascontiguousarray(piece.rows, np.int64)]
        self._alive += arrays
        texts, ends, are_valid, rows = (array.ctypes.data for array in arrays)
        cells = [texts, data.size, ends, bounds.size - 1, are_valid, valid.size, rows]
        for mark in (column.before, column.after, column.null):
            raw = mark.encode()
            cells += [len(self._marks), len(raw)]
            self._marks += raw
        return cells


def _merged(line: Line) -> tuple[list[Chosen], str]:
    """Constants as part of the column after them: each piece goes over all lines once."""
    found: list[Chosen] = []
    constant = ""
    for piece in line:
        if isinstance(piece, str):
            constant += piece
        else:
            column = piece.column
            before, null = constant + column.before, constant + column.null
            found.append(Chosen(replace(column, before=before, null=null), piece.rows))
            constant = ""
    if found and constant:
        last = found[-1].column
        found[-1] = Chosen(replace(last, after=last.after + constant, null=last.null + constant), found[-1].rows)
        constant = ""
    return found, constant


def weave(line: Line, count: int) -> pa.Array:
    """`count` lines, as an array."""
    layout = Layout(line, count)
    bounds = bounds_of(layout.sizes)
    out = np.empty(int(bounds[-1]), np.uint8)
    layout.write(bounds[:-1], out)
    return of_bytes(bounds, out)


def bounds_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where texts of these sizes begin when they lie side by side, and where the last one ends."""
    bounds = np.empty(sizes.size + 1, np.int64)
    bounds[0] = 0
    np.cumsum(sizes, out=bounds[1:])
    return bounds
