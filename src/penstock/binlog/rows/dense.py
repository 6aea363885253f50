"""The walk over whole row images: only the fields of variable length are noted, the others follow from them."""

from typing import Any

import numpy as np

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_2D,
    I64,
    I64S,
    I64S_2D_IN,
    I64S_IN,
    TRIPLE,
    kernel,
    read_little_endian,
    u16,
)
from penstock.binlog.rows.heads import (
    BYTE,
    ENDS_EARLY,
    EVENT,
    NO_ROOM,
    NOT_DENSE,
    PARTIAL_UPDATE,
    ROW,
    has_null,
    skip_head,
)


@kernel(TRIPLE(BYTES, I64S_IN, I64S_IN, I64, I64S, I64, I64S_2D_IN, I64, I64S, I64S, I32S_2D, I32S_2D, I32S, I32S_2D))
def walk_dense(
    data: Any,
    starts: Any,
    ends: Any,
    last: int,
    cursor: Any,
    columns: int,
    steps: Any,
    tail: int,
    null_count: Any,
    first_rows: Any,
    offsets: Any,
    lengths: Any,
    row_start: Any,
    nulls: Any,
) -> Any:
    """Walk the rows events of data[starts[i]:ends[i]] whose images carry all columns; write offsets and lengths of the
    fields of variable length. Return (0 or a stop code, byte, event).

    NOT_DENSE when there are other images, or a NULL in a column of fixed width. Another NULL counts as an empty value
    in its place, and is listed in `nulls`.
    """
    bitmap = (columns + 7) // 8
    variable = steps.shape[0]
    least = tail
    for k in range(variable):
        least += steps[k, 0] + steps[k, 1]
    row = cursor[ROW]
    for e in range(cursor[EVENT], last):
        end, kind = ends[e], data[starts[e] + 4]
        if kind == PARTIAL_UPDATE:
            return NOT_DENSE, starts[e], e
        code, at = skip_head(data, starts[e], end, kind, columns)
        if code:
            return code, at, e
        sides = 2 if kind in (24, 31) else 1
        if at + sides * bitmap > end:
            return ENDS_EARLY, end, e
        for _ in range(sides):
            for c in range(columns):
                if not data[at + (c >> 3)] >> (c & 7) & 1:
                    return NOT_DENSE, at, e
            at += bitmap
        if cursor[BYTE]:
            at = cursor[BYTE]
            cursor[BYTE] = 0
        else:
            first_rows[e] = row
        before = row
        while at < end:
            if row + sides > row_start.size and (row - before) & (sides - 1) == 0:
                cursor[EVENT], cursor[BYTE], cursor[ROW] = e, at, row
                return NO_ROOM, 1, e
            first_byte = at
            at += bitmap
            if at > end:
                return ENDS_EARLY, first_byte, e
            spare = end - at - least
            is_null_there = has_null(data, first_byte, columns)
            if is_null_there:
                # Those in columns of variable length must be all there are.
                left = 0
                for c in range(columns):
                    left += data[first_byte + (c >> 3)] >> (c & 7) & 1
                listed = null_count[0]
                for k in range(variable):
                    if data[first_byte + (steps[k, 2] >> 3)] >> (steps[k, 2] & 7) & 1:
                        left -= 1
                        spare += steps[k, 1]
                        if listed == nulls.shape[1]:
                            return NOT_DENSE, first_byte, e
                        nulls[0, listed], nulls[1, listed] = k, row
                        listed += 1
                if left:
                    return NOT_DENSE, first_byte, e
                null_count[0] = listed
            if spare < 0:
                return ENDS_EARLY, first_byte, e
            row_start[np.uint64(row)] = first_byte
            for k in range(variable):
                at += steps[k, 0]
                prefix = steps[k, 1]
                if is_null_there and data[first_byte + (steps[k, 2] >> 3)] >> (steps[k, 2] & 7) & 1:
                    offsets[k, row], lengths[k, row] = at, 0
                    continue
                if prefix == 1:
                    size = np.int64(data[np.uint64(at)])
                elif prefix == 2:
                    size = u16(data, at)
                else:
                    size = read_little_endian(data, at, prefix)
                at += prefix
                spare -= size
                if spare < 0:
                    return ENDS_EARLY, at, e
                offsets[np.uint64(k), np.uint64(row)] = at
                lengths[np.uint64(k), np.uint64(row)] = size
                at += size
            at += tail
            row += 1
        if sides == 2 and (row - before) & 1:
            return ENDS_EARLY, end, e
    cursor[EVENT], cursor[ROW] = last, row
    return 0, 1, last
