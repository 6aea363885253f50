"""Lines out of pieces: constants, and columns of text of which each line takes one.

A column is written once for all rows of a block; a line says by number which row it takes, so that images before and
after a change need no arrays of their own, and nothing is copied but into the line itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.render import kernels
from penstock.render.text import bytes_of, of_bytes, validity


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


def sizes_of(line: Line, count: int) -> NDArray[np.int64]:
    """Bytes of each of `count` lines."""
    sizes = np.full(count, sum(len(piece.encode()) for piece in line if isinstance(piece, str)), np.int64)
    for piece in line:
        if isinstance(piece, Chosen):
            column = piece.column
            around = len(column.before.encode()) + len(column.after.encode())
            _, bounds = bytes_of(column.texts)
            valid = validity(column.texts)
            kernels.add_sizes(bounds, valid, around, len(column.null.encode()), piece.rows, sizes)
    return sizes


def fill(line: Line, cursor: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
    """Write each line into `out` from its place in `cursor` on, which moves to its end."""
    chosen, tail = _merged(line)
    for piece in chosen:
        column = piece.column
        data, bounds = bytes_of(column.texts)
        marks = _raw(column.before), _raw(column.after), _raw(column.null)
        kernels.put_texts(data, bounds, validity(column.texts), *marks, piece.rows, cursor, out)
    if tail:
        kernels.put_constant(_raw(tail), cursor, out)


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
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes_of(line, count))])
    out = np.empty(int(bounds[-1]), np.uint8)
    fill(line, bounds[:-1].copy(), out)
    return of_bytes(bounds, out)


def _raw(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)
