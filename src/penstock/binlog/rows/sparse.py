"""The walk over row images of any kind: each wanted field is noted."""

from typing import Any

import numpy as np

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_2D,
    I64,
    I64S,
    I64S_2D,
    I64S_2D_IN,
    I64S_IN,
    TRIPLE,
    U8S_2D,
    kernel,
    read_little_endian,
    shared,
)
from penstock.binlog.rows.heads import BYTE, ENDS_EARLY, EVENT, NO_ROOM, PARTIAL_UPDATE, ROW, has_null, skip_head
from penstock.binlog.rows.located import ABSENT, NULL


@shared
def _list_present(data: Any, at: Any, columns: Any, numbers: Any) -> Any:
    """Write the numbers of the columns whose bit is set in the bitmap at `at` into `numbers`; return how many there
    are."""
    count = 0
    for c in range(columns):
        if data[at + (c >> 3)] >> (c & 7) & 1:
            numbers[count] = c
            count += 1
    return count


@kernel(
    TRIPLE(
        BYTES, I64S_IN, I64S_IN, I64, I64S, I64S_2D_IN, I64S_2D, I64S, I64S, I32S_2D, I32S_2D, I32S, U8S_2D,
    )
)  # fmt: skip
def walk_sparse(
    data: Any,
    starts: Any,
    ends: Any,
    last: int,
    cursor: Any,
    wires: Any,
    scratch: Any,
    missing: Any,
    first_rows: Any,
    offsets: Any,
    lengths: Any,
    row_start: Any,
    partial: Any,
) -> Any:
    """Walk rows events of any kind from the cursor up to the event `last`; write offsets and lengths of the wanted
    fields. Return (0 or NO_ROOM, whether all images were whole, event) or (error, byte, event).
    """
    columns = wires.shape[0]
    bitmap = (columns + 7) // 8
    present, counts = scratch[:2], scratch[2]  # what the before and the after images carry, and how much
    least = np.int64(0)
    for c in range(columns):
        least += wires[c, 0] or wires[c, 1]
    is_whole, row = 1, cursor[ROW]
    for e in range(cursor[EVENT], last):
        end, kind = ends[e], data[starts[e] + 4]
        code, at = skip_head(data, starts[e], end, kind, columns)
        if code:
            return code, at, e
        is_update = kind in (24, 31, 39)
        sides = 2 if is_update else 1
        if at + sides * bitmap > end:
            return ENDS_EARLY, end, e
        for s in range(sides):
            counts[s] = _list_present(data, at, columns, present[s])
            at += bitmap
        if cursor[BYTE]:
            at = cursor[BYTE]
            cursor[BYTE] = 0
        else:
            first_rows[e] = row
        side = 0
        # A row that carries nothing has no bytes. Of an event without any, it is the only one.
        is_empty = counts[0] == 0 and not is_update and at == end
        while at < end or (is_empty and row == first_rows[e]) or (side and counts[1] == 0 and kind != PARTIAL_UPDATE):
            if side == 0 and row + sides > row_start.size:
                cursor[EVENT], cursor[BYTE], cursor[ROW] = e, at, row
                return NO_ROOM, is_whole, e
            first_byte = at
            shown, list_of = counts[side], present[side]
            partial_bits = np.int64(-1)
            if kind == PARTIAL_UPDATE and side:
                options = np.int64(data[at])
                at += 1
                if options > 1:
                    return ENDS_EARLY, first_byte, e
                if options:
                    documents = 0
                    for c in range(columns):
                        documents += wires[c, 4]
                    partial_bits = at
                    at += (documents + 7) // 8
            nulls = at
            at += (shown + 7) // 8
            if at > end or (shown == 0 and not is_empty and counts[0] + (counts[1] if is_update else 0) == 0):
                return ENDS_EARLY, first_byte, e
            if shown == columns and partial_bits < 0 and not has_null(data, nulls, shown):
                # All values are there: only those of variable length can reach too far.
                spare = end - at - least
                if spare < 0:
                    return ENDS_EARLY, at, e
                for c in range(columns):
                    prefix, size, line = wires[c, 0], wires[c, 1], wires[c, 2]
                    if prefix:
                        size = read_little_endian(data, at, prefix)
                        at += prefix
                        spare -= size
                        if spare < 0:
                            return ENDS_EARLY, at, e
                        if line >= 0:
                            lengths[np.uint64(wires[c, 3]), np.uint64(row)] = size
                    if line >= 0:
                        offsets[np.uint64(line), np.uint64(row)] = at
                    at += size
            else:
                if shown < columns:
                    is_whole = 0
                    for k in range(offsets.shape[0]):
                        offsets[k, row] = ABSENT
                        missing[k] += 1
                    for k in range(lengths.shape[0]):
                        lengths[k, row] = 0
                document = 0
                c = 0
                for i in range(shown):
                    if partial_bits >= 0:
                        while c < list_of[i]:
                            document += wires[c, 4]
                            c += 1
                    c = list_of[i]
                    line = wires[c, 2]
                    if line >= 0 and shown < columns:
                        missing[line] -= 1
                    if data[nulls + (i >> 3)] >> (i & 7) & 1:
                        if line >= 0:
                            offsets[line, row] = NULL
                            missing[line] += 1
                            if wires[c, 3] >= 0:
                                lengths[wires[c, 3], row] = 0
                        continue
                    prefix, size = wires[c, 0], wires[c, 1]
                    if prefix:
                        if at + prefix > end:
                            return ENDS_EARLY, at, e
                        size = read_little_endian(data, at, prefix)
                        at += prefix
                    if size > end - at:
                        return ENDS_EARLY, at, e
                    if line >= 0:
                        offsets[line, row] = at
                        if prefix:
                            lengths[wires[c, 3], row] = size
                        if partial_bits >= 0 and wires[c, 4]:
                            partial[line, row] = data[partial_bits + (document >> 3)] >> (document & 7) & 1
                    at += size
            row_start[row] = first_byte
            row += 1
            if is_update:
                side ^= 1
        if side:
            return ENDS_EARLY, end, e
    cursor[EVENT], cursor[ROW] = last, row
    return 0, is_whole, last
