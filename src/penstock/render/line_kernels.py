"""Kernels that write lines out of columns of text, one line after the other.

A line visits all its pieces before the next line begins, so that each cache line of the output is written once. How
many columns there are differs from table to table, and a kernel takes a fixed number of arrays: so one table of
integers, one row per piece, tells where each column lies in memory. Whoever makes that table keeps the columns alive.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_before
from penstock.binlog.kernel import BYTES, I64S, I64S_2D_IN, I64S_IN, NONE, U8S, kernel, lowered

# One row of the table of pieces: addresses and sizes of the column, then where its constants lie among the marks.
DATA, DATA_SIZE, BOUNDS, COUNT, VALID, VALID_SIZE, ROWS = range(7)
BEFORE, BEFORE_SIZE, AFTER, AFTER_SIZE, NULL, NULL_SIZE = range(7, 13)
CELLS = 13
_1 = np.uint64(1)
_bytes_at, _words_at = lowered("bytes_at"), lowered("words_at")


@kernel(NONE(I64S_2D_IN, I64S))
def measure_lines(pieces: Any, sizes: Any) -> None:
    """Add the size in bytes of output line i to sizes[i], so that `write_lines` knows where each line begins. A line is
    the texts that its pieces (columns of text) have for it, one after the other."""
    for k in range(pieces.shape[0]):
        bounds = _words_at(pieces[k, BOUNDS], pieces[k, COUNT] + 1)
        valid = _bytes_at(pieces[k, VALID], pieces[k, VALID_SIZE])
        rows = _words_at(pieces[k, ROWS], sizes.size)
        around, null = pieces[k, BEFORE_SIZE] + pieces[k, AFTER_SIZE], pieces[k, NULL_SIZE]
        for i in range(sizes.size):
            row = np.uint64(rows[np.uint64(i)])
            if valid.size and not valid[row]:
                sizes[i] += null
            else:
                sizes[i] += bounds[row + _1] - bounds[row] + around


@kernel(NONE(I64S_2D_IN, BYTES, I64S_IN, I64S_IN, U8S))
def write_lines(pieces: Any, marks: Any, starts: Any, sizes: Any, out: Any) -> None:
    """Write output line i at out[starts[i]]; sizes[i] is its size in bytes, by `measure_lines`. Other bytes of `out`
    stay as they are."""
    for i in range(starts.size):
        at = starts[i]
        end = at + sizes[i]
        for k in range(pieces.shape[0]):
            row = np.uint64(_words_at(pieces[k, ROWS], starts.size)[np.uint64(i)])
            if pieces[k, VALID_SIZE] and not _bytes_at(pieces[k, VALID], pieces[k, VALID_SIZE])[row]:
                copy_before(out, at, end, marks, pieces[k, NULL], pieces[k, NULL_SIZE])
                at += pieces[k, NULL_SIZE]
                continue
            if pieces[k, BEFORE_SIZE]:
                copy_before(out, at, end, marks, pieces[k, BEFORE], pieces[k, BEFORE_SIZE])
                at += pieces[k, BEFORE_SIZE]
            bounds = _words_at(pieces[k, BOUNDS], pieces[k, COUNT] + 1)
            first = bounds[row]
            size = bounds[row + _1] - first
            copy_before(out, at, end, _bytes_at(pieces[k, DATA], pieces[k, DATA_SIZE]), first, size)
            at += size
            if pieces[k, AFTER_SIZE]:
                copy_before(out, at, end, marks, pieces[k, AFTER], pieces[k, AFTER_SIZE])
                at += pieces[k, AFTER_SIZE]
