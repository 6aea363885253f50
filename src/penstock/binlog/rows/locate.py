"""Second pass, first half: where each wanted field of each row image lies."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.rows.dense import walk_dense
from penstock.binlog.rows.heads import BYTE, EVENT, NO_ROOM, NOT_DENSE, PARTIAL_UPDATE, ROW
from penstock.binlog.rows.located import LocatedRows, RowLayout
from penstock.binlog.rows.sparse import walk_sparse

MAX_CELLS = 1 << 22  # values in one piece, if it has more than one change
_FIRST_ROWS = 1024
_ROOM = 1.25  # times what the first event makes us expect


class RowsProblemError(Exception):
    """Rows that no server writes. The caller knows the names that belong into a message."""

    def __init__(self, code: int, byte: int, event: int) -> None:
        super().__init__(code, byte, event)
        self.code, self.byte, self.event = code, byte, event


def locate(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    layout: RowLayout,
    most_cells: int = MAX_CELLS,
) -> Iterator[LocatedRows]:
    """Locate the fields of the rows events that lie at data[starts[i]:ends[i]], without checksums; usually all in one
    piece."""
    most_rows = max(2, most_cells // max(1, layout.wanted, layout.steps.shape[0]))
    begin, seen, is_dense = np.zeros(3, np.int64), 0, True
    while begin[EVENT] < starts.size:
        cursor = begin.copy()
        walk: _Walk = (_Dense if is_dense else _Sparse)(data, starts, ends, layout)
        first = int(begin[EVENT])
        try:
            located, first_rows = _piece(walk, cursor, seen, most_rows)
        except RowsProblemError as problem:
            if problem.code != NOT_DENSE:
                raise
            is_dense = False
            continue
        yield located
        seen = int(cursor[ROW] - first_rows[cursor[EVENT] - first]) if cursor[BYTE] else 0
        cursor[ROW] = 0
        begin = cursor


class _Walk(Protocol):
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    layout: RowLayout

    def room(self, rows: int) -> list[NDArray[Any]]:
        """Return empty arrays for this many rows."""
        ...

    def walk(
        self, last: int, cursor: NDArray[np.int64], first_rows: NDArray[np.int64], arrays: list[NDArray[Any]]
    ) -> tuple[int, int, int]:
        """Walk the rows events from the cursor up to the event `last`, and return the kernel's answer."""
        ...

    def fill(self, located: LocatedRows, arrays: list[NDArray[Any]], *, is_whole: bool) -> None:
        """Set the fields of the located rows from the arrays that the kernel has filled."""
        ...


def _piece(walk: _Walk, cursor: NDArray[np.int64], seen: int, most_rows: int) -> tuple[LocatedRows, NDArray[np.int64]]:
    """Return as many rows as may be; `seen` rows of the first event were in an earlier piece. The first event is walked
    alone, which tells how many rows to expect of the others."""
    starts, ends = walk.starts, walk.ends
    first, count = int(cursor[EVENT]), starts.size
    first_rows = np.zeros(count, np.int64)
    first_rows[first] = -seen
    capacity = min(_FIRST_ROWS, most_rows)
    arrays, last, is_whole = walk.room(capacity), first + 1, 1
    while True:
        code, where, event = walk.walk(last, cursor, first_rows, arrays)
        if code == NO_ROOM:
            is_whole &= where
            if capacity == most_rows:
                break
            expected = 2 * capacity
        elif code:
            raise RowsProblemError(code, where, event)
        else:
            is_whole &= where
            if last == count:
                break
            share = (int(ends[-1]) - int(starts[first])) / max(1, int(ends[first]) - int(starts[first]))
            expected, last = int(cursor[ROW] * share * _ROOM) + 64, count
        if expected > capacity:
            expected = min(expected, most_rows)
            larger = walk.room(expected)
            for old, new in zip(arrays, larger, strict=True):
                new[..., :capacity] = old  # all of it: there may be more NULLs than rows
            arrays, capacity = larger, expected
    stop = int(cursor[EVENT]) + (1 if cursor[BYTE] else 0)
    first_rows = first_rows[first:stop]
    located = LocatedRows(walk.layout, int(cursor[ROW]), first, first_rows, walk.data[starts[first:stop] + 4])
    walk.fill(located, arrays, is_whole=bool(is_whole))
    return located, first_rows


def _empty_arrays(offsets: int, lengths: int, rows: int) -> list[NDArray[Any]]:
    return [np.empty((offsets, rows), np.int32), np.empty((lengths, rows), np.int32), np.empty(rows, np.int32)]


class _Dense(_Walk):
    def __init__(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], layout: RowLayout
    ) -> None:
        self.data, self.starts, self.ends, self.layout = data, starts, ends, layout
        self._null_count = np.zeros(1, np.int64)

    def room(self, rows: int) -> list[NDArray[Any]]:
        """Return empty arrays for this many rows."""
        steps = self.layout.steps.shape[0]
        return [*_empty_arrays(steps, steps, rows), np.empty((2, rows), np.int32)]

    def walk(
        self, last: int, cursor: NDArray[np.int64], first_rows: NDArray[np.int64], arrays: list[NDArray[Any]]
    ) -> tuple[int, int, int]:
        """Walk the rows events from the cursor up to the event `last`, and return the kernel's answer."""
        layout = self.layout
        return walk_dense(
            self.data, self.starts, self.ends, last, cursor,
            layout.wires.shape[0], layout.steps, layout.tail, self._null_count, first_rows, *arrays,
        )  # fmt: skip

    def fill(self, located: LocatedRows, arrays: list[NDArray[Any]], *, is_whole: bool) -> None:
        """Set the fields of the located rows from the arrays that the kernel has filled."""
        del is_whole  # it is
        offsets, lengths, start, nulls = arrays
        located.note(offsets, lengths, start, is_dense=True)
        located.note_nulls(nulls[:, : self._null_count[0]])


class _Sparse(_Walk):
    def __init__(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], layout: RowLayout
    ) -> None:
        self.data, self.starts, self.ends, self.layout = data, starts, ends, layout
        self._missing = np.zeros(layout.wanted, np.int64)
        self._scratch = np.empty((3, max(layout.wires.shape[0], 2)), np.int64)
        self._has_partial = bool((data[starts + 4] == PARTIAL_UPDATE).any())

    def room(self, rows: int) -> list[NDArray[Any]]:
        """Return empty arrays for this many rows."""
        partial = np.zeros((self.layout.wanted if self._has_partial else 0, rows), np.uint8)
        return [*_empty_arrays(self.layout.wanted, self.layout.variable, rows), partial]

    def walk(
        self, last: int, cursor: NDArray[np.int64], first_rows: NDArray[np.int64], arrays: list[NDArray[Any]]
    ) -> tuple[int, int, int]:
        """Walk the rows events from the cursor up to the event `last`, and return the kernel's answer."""
        return walk_sparse(
            self.data, self.starts, self.ends, last, cursor,
            self.layout.wires, self._scratch, self._missing, first_rows, *arrays,
        )  # fmt: skip

    def fill(self, located: LocatedRows, arrays: list[NDArray[Any]], *, is_whole: bool) -> None:
        """Set the fields of the located rows from the arrays that the kernel has filled."""
        offsets, lengths, start, partial = arrays
        located.note(offsets, lengths, start, is_dense=False)
        located.missing, located.partial = self._missing, partial[:, : located.rows]
        located.is_whole = is_whole
        located.mark_unknown()
