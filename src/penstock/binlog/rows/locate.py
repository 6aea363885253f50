"""Second pass, first half: where each wanted field of each row image lies.

ROWS event after the header:
  table id 6 | flags 2 | v2: extra length 2 (counts itself), extra | columns n (packed)
  | present bitmap | UPDATE: present bitmap of the after image | row images
row image: null bitmap over the present columns, then each present, non-null value
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I64,
    I64S,
    I64S_2D,
    I64S_2D_IN,
    I64S_IN,
    U8S,
    kernel,
    little,
    shared,
    u16,
)

NULL, ABSENT = -1, -2  # in `lengths`: the value is SQL NULL; the image does not carry the column
ENDS_EARLY, OTHER_COLUMN_COUNT = 1, 2


@dataclass(frozen=True, slots=True)
class Located:
    """`offsets` and `lengths` have one line per wanted column; the others one cell per row image."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    event: NDArray[np.int64]  # index of the row's event among those given
    kind: NDArray[np.uint8]  # ChangeKind
    start: NDArray[np.int64]  # of the row image in the buffer
    number: NDArray[np.int32]  # of the image in its event, from 0

    @property
    def rows(self) -> int:
        return self.kind.size


@shared
def _list_present(data: Any, at: int, columns: int, found: Any) -> Any:
    """Numbers of the columns whose bit is set in the bitmap at `at`; gives how many."""
    count = 0
    for c in range(columns):
        if data[at + (c >> 3)] >> (c & 7) & 1:
            found[count] = c
            count += 1
    return count


@kernel(
    types.UniTuple(I64, 3)(
        BYTES, I64S_IN, I64S_IN, I64, I64S_2D_IN, I64S_IN, I64, I64S_2D, I64S_2D, I64S, U8S, I64S, I32S
    )
)
def _locate(
    data: Any,
    starts: Any,
    sizes: Any,
    checksum: int,
    wires: Any,
    lines: Any,
    store: int,
    offsets: Any,
    lengths: Any,
    row_event: Any,
    row_kind: Any,
    row_start: Any,
    row_number: Any,
) -> Any:
    """Walk all rows; store what is found when `store` is set. Gives (0, 0, rows) or (error, where, event)."""
    columns = wires.shape[0]
    bitmap = (columns + 7) // 8
    present = np.empty((2, columns), np.int64)  # what the before and the after images carry
    counts = np.zeros(2, np.int64)
    row = np.uint64(0)
    for e in range(starts.size):
        at = starts[e]
        end = at + sizes[e] - checksum
        kind = data[at + 4]
        at += 27
        if kind >= 30:
            if at + 2 > end:
                return ENDS_EARLY, end, e
            at += u16(data, at)
        if at + 1 > end:
            return ENDS_EARLY, end, e
        count = np.int64(data[at])
        at += 1
        if count == 252:
            if at + 2 > end:
                return ENDS_EARLY, end, e
            count = u16(data, at)
            at += 2
        if count != columns:
            return OTHER_COLUMN_COUNT, starts[e], e
        is_update = kind in (24, 31)
        sides = 2 if is_update else 1
        if at + sides * bitmap > end:
            return ENDS_EARLY, end, e
        for s in range(sides):
            counts[s] = _list_present(data, at, columns, present[s])
            at += bitmap
        side, number = 0, 0
        while at < end:
            first_byte = at
            shown, list_of = counts[side], present[side]
            at += (shown + 7) // 8
            if at > end or shown == 0:
                return ENDS_EARLY, first_byte, e
            if store and shown < columns:
                for k in range(lengths.shape[0]):
                    offsets[k, row], lengths[k, row] = 0, ABSENT
            for i in range(shown):
                c = np.uint64(list_of[i])
                line = lines[c]
                if data[np.uint64(first_byte + (i >> 3))] >> (i & 7) & 1:
                    if store and line >= 0:
                        offsets[np.uint64(line), row], lengths[np.uint64(line), row] = 0, NULL
                    continue
                prefix, size = wires[c, 0], wires[c, 1]
                if prefix:
                    if at + prefix > end:
                        return ENDS_EARLY, at, e
                    size = little(data, at, prefix)
                    at += prefix
                if size > end - at:
                    return ENDS_EARLY, at, e
                if store and line >= 0:
                    offsets[np.uint64(line), row], lengths[np.uint64(line), row] = at, size
                at += size
            if store:
                row_event[row], row_start[row], row_number[row] = e, first_byte, number
                if is_update:
                    row_kind[row] = 1 + side
                else:
                    row_kind[row] = 0 if kind in (23, 30) else 3
            row += np.uint64(1)
            number += 1
            if is_update:
                side ^= 1
        if side:
            return ENDS_EARLY, end, e
    return 0, 0, np.int64(row)


def locate(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    checksum: int,
    wires: NDArray[np.int64],
    lines: NDArray[np.int64],
) -> Located | tuple[int, int, int]:
    """`wires[c]` is (length bytes, width) of column c, `lines[c]` its line in the result or -1.

    An error comes back as (code, byte, number of the event): the caller knows the names that belong into the message.
    """
    wanted = int(lines.max(initial=-1)) + 1
    nothing = np.empty((wanted, 0), np.int64)
    none = np.empty(0, np.int64)
    empty = (nothing, nothing.copy(), none, np.empty(0, np.uint8), none.copy(), np.empty(0, np.int32))
    error: int
    where: int
    rows: int
    error, where, rows = _locate(data, starts, sizes, checksum, wires, lines, 0, *empty)
    if error:
        return error, where, rows
    found = Located(
        np.empty((wanted, rows), np.int64),
        np.empty((wanted, rows), np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.uint8),
        np.empty(rows, np.int64),
        np.empty(rows, np.int32),
    )
    _locate(
        data, starts, sizes, checksum, wires, lines, 1,
        found.offsets, found.lengths, found.event, found.kind, found.start, found.number,
    )  # fmt: skip
    return found
