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
from penstock.render.text import get_bytes, get_validity, texts_from_bytes, texts_from_list


@dataclass(frozen=True, slots=True, eq=False)
class FormattedColumn:
    """The values of one column as texts for lines of output; each is put between the constants `before` and `after`,
    and a null is written as `null`."""

    texts: pa.Array
    null: str = ""
    before: str = ""
    after: str = ""

    def pick_rows(self, rows: NDArray[np.int64]) -> "ColumnPiece":
        """Return the piece of output lines that shows the column: line i shows its row rows[i]."""
        return ColumnPiece(self, rows)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPiece:
    """A piece of output lines that shows a column of values: line i shows its row rows[i]."""

    column: FormattedColumn
    rows: NDArray[np.int64]


LinePattern = Sequence[str | ColumnPiece]
_ROOM = 96  # bytes after the last mark: kernels copy short texts in chunks


class LineLayout:
    """The pieces of which `count` output lines consist, in the form that kernels read; `sizes` has the size in bytes of
    each line.

    layout = LineLayout(["id=", ids.pick_rows(rows)], rows.size)
    layout.write(starts, out)  # line i takes layout.sizes[i] bytes from starts[i] on
    """

    def __init__(self, pattern: LinePattern, count: int) -> None:
        chosen, tail = _merge_constants(pattern)
        if tail:  # there is no column at all
            chosen = [FormattedColumn(texts_from_list([tail])).pick_rows(np.zeros(count, np.int64))]
        if any(piece.rows.size != count for piece in chosen):
            raise ValueError(f"a piece of {count} lines says for another number of lines which rows they take")
        self._alive: list[Any] = []
        self._marks = bytearray()
        self._pieces = np.array([self._describe_piece(piece) for piece in chosen], np.int64).reshape(-1, kernels.CELLS)
        self._marks += bytes(_ROOM)
        self.sizes = np.zeros(count, np.int64)
        kernels.measure_lines(self._pieces, self.sizes)

    def write(self, starts: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Write each output line into `out`; line i begins at the byte starts[i]."""
        kernels.write_lines(self._pieces, np.frombuffer(self._marks, np.uint8), starts, self.sizes, out)

    def _describe_piece(self, piece: ColumnPiece) -> list[int]:
        """Return the addresses and sizes of a column's arrays, as the kernels read them."""
        column = piece.column
        (data, bounds), valid = get_bytes(column.texts), get_validity(column.texts)
        arrays = [data, bounds, valid, np.ascontiguousarray(piece.rows, np.int64)]
        self._alive += arrays
        texts, ends, are_valid, rows = (array.ctypes.data for array in arrays)
        cells = [texts, data.size, ends, bounds.size - 1, are_valid, valid.size, rows]
        for mark in (column.before, column.after, column.null):
            raw = mark.encode()
            cells += [len(self._marks), len(raw)]
            self._marks += raw
        return cells


def _merge_constants(pattern: LinePattern) -> tuple[list[ColumnPiece], str]:
    """Return the columns of a pattern with its constants made part of them, and a constant that has no column."""
    pieces: list[ColumnPiece] = []
    constant = ""
    for piece in pattern:
        if isinstance(piece, str):
            constant += piece
        else:
            column = piece.column
            before, null = constant + column.before, constant + column.null
            pieces.append(ColumnPiece(replace(column, before=before, null=null), piece.rows))
            constant = ""
    if pieces and constant:
        last = pieces[-1].column
        pieces[-1] = ColumnPiece(replace(last, after=last.after + constant, null=last.null + constant), pieces[-1].rows)
        constant = ""
    return pieces, constant


def write_lines(pattern: LinePattern, count: int) -> pa.Array:
    """Write `count` lines that consist of the pieces of `pattern`, and return them as an Arrow array of texts."""
    layout = LineLayout(pattern, count)
    bounds = bounds_from_sizes(layout.sizes)
    out = np.empty(int(bounds[-1]), np.uint8)
    layout.write(bounds[:-1], out)
    return texts_from_bytes(bounds, out)


def bounds_from_sizes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where texts of these sizes begin when they lie side by side, and where the last one ends."""
    bounds = np.empty(sizes.size + 1, np.int64)
    bounds[0] = 0
    np.cumsum(sizes, out=bounds[1:])
    return bounds
