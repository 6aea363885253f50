"""Second pass, first half: where each wanted field of each row image lies.

ROWS event after the header:
  table id 6 | flags 2 | v2: extra length 2 (counts itself), extra | columns n (packed)
  | present bitmap | UPDATE: present bitmap of the after image | row images
row image: null bitmap over the present columns, then each present, non-null value
PARTIAL_UPDATE_ROWS: as UPDATE v2; an after image begins with options (packed; 1: some JSON values are partial) and then
  a bitmap over all JSON columns of the table that says which are; the partial ones are lists of differences
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    little,
    shared,
    u16,
)
from penstock.binlog.rows.located import ABSENT, NULL, Layout, Located

ENDS_EARLY, OTHER_COLUMN_COUNT, NO_ROOM, NOT_DENSE = 1, 2, 3, 4
_ROOM = 1.25  # times what the first event makes us expect
_PARTIAL_UPDATE = 39


@shared
def _skip_head(data: Any, first: Any, end: Any, kind: Any, columns: Any) -> Any:
    """Of the event at `first`, up to behind the number of columns; an error code, or 0, and where."""
    at = first + 27
    if kind >= 30:
        if at + 2 > end or u16(data, at) < 2:
            return ENDS_EARLY, at
        at += u16(data, at)
    if at + 1 > end:
        return ENDS_EARLY, end
    count = np.int64(data[at])
    at += 1
    if count == 252:
        if at + 2 > end:
            return ENDS_EARLY, end
        count = u16(data, at)
        at += 2
    if count != columns or columns == 0:
        return OTHER_COLUMN_COUNT, first
    return 0, at


@shared
def _list_present(data: Any, at: Any, columns: Any, found: Any) -> Any:
    """Numbers of the columns whose bit is set in the bitmap at `at`; gives how many."""
    count = 0
    for c in range(columns):
        if data[at + (c >> 3)] >> (c & 7) & 1:
            found[count] = c
            count += 1
    return count


@shared
def _has_null(data: Any, at: Any, count: Any) -> Any:
    """Whether one of the first `count` bits is set; those that fill up the last byte may be anything."""
    whole = count >> 3
    for k in range(whole):
        if data[np.uint64(at + k)]:
            return True
    return bool(count & 7 and data[np.uint64(at + whole)] & ((1 << (count & 7)) - 1))


@kernel(
    TRIPLE(
        BYTES, I64S_IN, I64S_IN, I64, I64, I64, I64S_2D_IN, I64S_2D, I64S, I32S_2D, I32S_2D, I64S, U8S_2D, I32S,
    )
)  # fmt: skip
def _locate(
    data: Any,
    starts: Any,
    ends: Any,
    event: int,
    last: int,
    row: int,
    wires: Any,
    scratch: Any,
    first_rows: Any,
    offsets: Any,
    lengths: Any,
    missing: Any,
    partial: Any,
    row_start: Any,
) -> Any:
    """Walk the rows of events `event` … `last` - 1, stored from `row` on.

    Gives (0, is whole, rows), (error, byte, event) or, when the cells are used up, (NO_ROOM, rows before, event).
    """
    columns = wires.shape[0]
    bitmap = (columns + 7) // 8
    present, counts = scratch[:2], scratch[2]  # what the before and the after images carry, and how much
    least = np.int64(0)
    for c in range(columns):
        least += wires[c, 0] or wires[c, 1]
    is_whole = 1
    for e in range(event, last):
        first_rows[e] = row
        end, kind = ends[e], data[starts[e] + 4]
        code, at = _skip_head(data, starts[e], end, kind, columns)
        if code:
            return code, at, e
        is_update = kind in (24, 31, 39)
        sides = 2 if is_update else 1
        if at + sides * bitmap > end:
            return ENDS_EARLY, end, e
        for s in range(sides):
            counts[s] = _list_present(data, at, columns, present[s])
            at += bitmap
            if counts[s] < columns:
                is_whole = 0
        side = 0
        while at < end:
            if row == row_start.size:
                return NO_ROOM, first_rows[e], e
            first_byte = at
            shown, list_of = counts[side], present[side]
            partial_bits = np.int64(-1)
            if kind == 39 and side:
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
            if at > end or (shown == 0 and counts[0] + (counts[1] if is_update else 0) == 0):
                return ENDS_EARLY, first_byte, e
            if shown == columns and partial_bits < 0 and not _has_null(data, nulls, shown):
                # All values are there: only those of variable length can reach too far.
                spare = end - at - least
                if spare < 0:
                    return ENDS_EARLY, at, e
                for c in range(columns):
                    prefix, size, line = wires[c, 0], wires[c, 1], wires[c, 2]
                    if prefix:
                        size = little(data, at, prefix)
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
                        size = little(data, at, prefix)
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
    return 0, is_whole, row


@kernel(
    TRIPLE(BYTES, I64S_IN, I64S_IN, I64, I64, I64, I64, I64S_2D_IN, I64, I64S, I64S, I32S_2D, I32S_2D, I32S, I32S_2D)
)
def _locate_dense(
    data: Any,
    starts: Any,
    ends: Any,
    event: int,
    last: int,
    row: int,
    columns: int,
    steps: Any,
    tail: int,
    first_rows: Any,
    null_count: Any,
    offsets: Any,
    lengths: Any,
    row_start: Any,
    nulls: Any,
) -> Any:
    """As `_locate` for whole images, and only the fields of variable length.

    NOT_DENSE when there are other images, or a NULL in a column of fixed width. Another NULL counts as an empty value
    in its place, and is listed in `nulls`.
    """
    bitmap = (columns + 7) // 8
    variable = steps.shape[0]
    least = tail
    for k in range(variable):
        least += steps[k, 0] + steps[k, 1]
    for e in range(event, last):
        first_rows[e] = row
        end, kind = ends[e], data[starts[e] + 4]
        if kind == 39:
            return NOT_DENSE, starts[e], e
        code, at = _skip_head(data, starts[e], end, kind, columns)
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
        before = row
        while at < end:
            if row == row_start.size:
                return NO_ROOM, first_rows[e], e
            first_byte = at
            at += bitmap
            if at > end:
                return ENDS_EARLY, first_byte, e
            spare = end - at - least
            has_null = _has_null(data, first_byte, columns)
            if has_null:
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
                if has_null and data[first_byte + (steps[k, 2] >> 3)] >> (steps[k, 2] & 7) & 1:
                    offsets[k, row], lengths[k, row] = at, 0
                    continue
                if prefix == 1:
                    size = np.int64(data[np.uint64(at)])
                elif prefix == 2:
                    size = u16(data, at)
                else:
                    size = little(data, at, prefix)
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
    return 0, 1, row


def locate(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], layout: Layout
) -> Located | tuple[int, int, int]:
    """Of the rows events that lie at data[starts[i]:ends[i]], checksums left out.

    An error comes back as (code, byte, number of the event): the caller knows the names that belong into the message.
    """
    columns = layout.wires.shape[0]

    null_count = np.zeros(1, np.int64)
    steps = layout.steps.shape[0]

    def dense(event: int, last: int, row: int, first_rows: Any, cells: list[NDArray[Any]]) -> tuple[int, int, int]:
        before = null_count[0]
        answer = _locate_dense(
            data, starts, ends, event, last, row, columns, layout.steps, layout.tail, first_rows, null_count, *cells
        )
        if answer[0] == NO_ROOM:
            null_count[0] = before
        return answer

    found = _walk(starts, ends, dense, lambda rows: [*_cells(steps, steps, rows), np.empty((2, rows), np.int32)])
    if isinstance(found, _Walked):
        located = Located(layout, found.rows, found.first_rows, data[starts + 4])
        offsets, lengths, start, nulls = found.cells
        located.note(offsets, lengths, start, is_dense=True)
        located.note_nulls(nulls[:, : null_count[0]])
        return located
    if found[0] != NOT_DENSE:
        return found

    kinds = data[starts + 4]
    has_partial = bool((kinds == _PARTIAL_UPDATE).any())
    missing = np.zeros(layout.wanted, np.int64)
    scratch = np.empty((3, max(columns, 2)), np.int64)

    def sparse(event: int, last: int, row: int, first_rows: Any, cells: list[NDArray[Any]]) -> tuple[int, int, int]:
        before = missing.copy()
        offsets, lengths, start, partial = cells
        answer = _locate(
            data, starts, ends, event, last, row, layout.wires, scratch,
            first_rows, offsets, lengths, missing, partial, start,
        )  # fmt: skip
        if answer[0] == NO_ROOM:
            missing[:] = before
        return answer

    def room(rows: int) -> list[NDArray[Any]]:
        partial = np.zeros((layout.wanted if has_partial else 0, rows), np.uint8)
        return [*_cells(layout.wanted, layout.variable, rows), partial]

    found = _walk(starts, ends, sparse, room)
    if not isinstance(found, _Walked):
        return found
    located = Located(layout, found.rows, found.first_rows, kinds)
    offsets, lengths, start, partial = found.cells
    located.note(offsets, lengths, start, is_dense=False)
    located.missing, located.partial, located.is_whole = missing, partial[:, : found.rows], found.is_whole
    located.mark_unknown()
    return located


@dataclass(frozen=True, slots=True)
class _Walked:
    rows: int
    is_whole: bool
    first_rows: NDArray[np.int64]
    cells: list[NDArray[Any]]


def _walk(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    walk: Callable[[int, int, int, Any, list[NDArray[Any]]], tuple[int, int, int]],
    room: Callable[[int], list[NDArray[Any]]],
) -> _Walked | tuple[int, int, int]:
    """Let a kernel walk all events: the first alone, which tells how many rows to expect of the others."""
    count = starts.size
    first_rows = np.zeros(count, np.int64)
    cells, capacity = room(1024), 1024
    whole, event, done, last = 1, 0, 0, min(1, count)
    while event < count:
        code, where, found = walk(event, last, done, first_rows, cells)
        if code == NO_ROOM:
            expected = 2 * capacity
        elif code:
            return code, where, found
        else:
            whole &= where
            done, event, last = found, last, count
            share = (int(ends[-1]) - int(starts[0])) / max(1, int(ends[event - 1]) - int(starts[0]))
            expected = int(done * share * _ROOM) + 64
            if event == count or expected <= capacity:
                continue
        larger = room(expected)
        for old, new in zip(cells, larger, strict=True):
            new[..., :capacity] = old  # all of it: there may be more NULLs than rows
        cells, capacity = larger, expected
    return _Walked(done, bool(whole), first_rows, cells)


def _cells(offsets: int, lengths: int, rows: int) -> list[NDArray[Any]]:
    return [np.empty((offsets, rows), np.int32), np.empty((lengths, rows), np.int32), np.empty(rows, np.int32)]
