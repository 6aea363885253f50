"""Rows of many tables as canal's RowData, in the order of the log; `row_kernels` has the form of a row, and those of
one table.

Each image has a cell for each column of its table: the number of its field, NULL or ABSENT. The text of field f lies
between text_starts[f] and text_ends[f]; its column's frame is found through the program of its table.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_next
from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_IN,
    I64,
    I64S,
    I64S_2D_IN,
    I64S_IN,
    NONE,
    U8S,
    U8S_IN,
    kernel,
    shared,
)
from penstock.binlog.rows.programs import KIND
from penstock.canal.protobuf import varint_size, write_varint
from penstock.render.canal.row_kernels import (
    ABSENT,
    AFTER,
    BEFORE,
    FRAMES,
    IS_NULL,
    NULL,
    ROW_DATA,
    TAIL,
    UPDATED,
    VALUE,
    VALUE_TAG,
    WIDE,
    frame_size,
    write_frame,
)

_NULL_CELL = -1


@shared
def _cell_state(cells: Any, wide: Any, at: Any) -> Any:
    """Return the state of a cell: VALUE, WIDE, NULL or ABSENT."""
    field = cells[np.uint64(at)]
    if field >= 0:
        return WIDE if wide[np.uint64(field)] else VALUE
    return NULL if field == _NULL_CELL else ABSENT


@shared
def _is_same_value(texts: Any, text_starts: Any, text_ends: Any, left: Any, right: Any) -> Any:
    """Tell whether two cells have the same text, or are both NULL."""
    if left < 0 or right < 0:
        return left == right
    at, to = text_starts[np.uint64(left)], text_starts[np.uint64(right)]
    size = text_ends[np.uint64(left)] - at
    if size != text_ends[np.uint64(right)] - to:
        return False
    for k in range(size):  # noqa: SIM110 - numba has no generators here
        if texts[np.uint64(at + k)] != texts[np.uint64(to + k)]:
            return False
    return True


@shared
def _measure_image(
    text_starts: Any, text_ends: Any, wide: Any, cells: Any, at: Any, columns: Any, first: Any, count: Any, frames: Any,
    updated: Any, sizes: Any,
) -> Any:  # fmt: skip
    """Measure all columns of the image whose cells begin at `at`, and return the size of the image."""
    total = np.int64(0)
    for c in range(count):
        state = _cell_state(cells, wide, at + c)
        if state == ABSENT or columns[np.uint64(first + c), KIND] < 0:
            sizes[at + c] = 0
            continue
        frame = FRAMES * (first + c)
        size = frame_size(frames, frame + state) + frame_size(frames, frame + TAIL) + 2  # isNull takes two bytes
        if updated[at + c]:
            size += 2
        if state != NULL:
            field = np.uint64(cells[at + c])
            length = text_ends[field] - text_starts[field]
            if length:
                size += 1 + varint_size(length) + length
        sizes[at + c] = size
        total += 1 + varint_size(size) + size
    return total


@kernel(
    I64(
        BYTES, I64S_IN, I64S_IN, U8S_IN, I32S_IN, I32S_IN, I32S_IN, I64S_IN, U8S_IN, I64S_IN, I64S_2D_IN, I64S_IN,
        U8S, I32S, I64S, I64S, I64S, I64S,
    )
)  # fmt: skip
def measure_mixed(
    texts: Any,
    text_starts: Any,
    text_ends: Any,
    wide: Any,
    cells: Any,
    image_event: Any,
    image_cell: Any,
    program: Any,
    event_kind: Any,
    bounds: Any,
    columns: Any,
    frames: Any,
    updated: Any,
    sizes: Any,
    inner: Any,
    event_first: Any,
    event_last: Any,
    event_rows: Any,
) -> Any:
    """Measure the RowData of rows of many tables.

    Writes whether each cell was updated to `updated` and its encoded size to `sizes`; the size of the RowData of row r
    to inner[r]; the range and the number of the rows of event e to event_first[e], event_last[e] and event_rows[e].
    Returns the number of rows.
    """
    written, image, row = np.int64(0), np.int64(0), np.int64(0)
    for e in range(program.size):
        event_first[e], event_rows[e] = written, 0
        first = bounds[program[e]]
        count = bounds[program[e] + 1] - first
        is_update = event_kind[e] in (24, 31)
        is_insert = event_kind[e] in (23, 30)
        while image < image_event.size and image_event[image] == e:
            at = np.int64(image_cell[image])
            for c in range(count):
                updated[at + c] = 1 if is_insert else 0
            size = _measure_image(
                text_starts, text_ends, wide, cells, at, columns, first, count, frames, updated, sizes
            )
            image += 1
            if is_update:
                after = np.int64(image_cell[image])
                for c in range(count):
                    cell_before, cell_after = np.int64(cells[at + c]), np.int64(cells[after + c])
                    is_same = cell_before >= _NULL_CELL and _is_same_value(
                        texts, text_starts, text_ends, cell_before, cell_after
                    )
                    updated[after + c] = 0 if is_same else 1
                size += _measure_image(
                    text_starts, text_ends, wide, cells, after, columns, first, count, frames, updated, sizes
                )
                image += 1
            inner[row] = size
            written += 1 + varint_size(size) + size
            row += 1
            event_rows[e] += 1
        event_last[e] = written
    return row


@shared
def _write_image(
    tag: Any, texts: Any, text_starts: Any, text_ends: Any, wide: Any, cells: Any, at: Any, first: Any, count: Any,
    frames: Any, frame_texts: Any, updated: Any, sizes: Any, out: Any, to: Any,
) -> Any:  # fmt: skip
    """Write all columns of an image with this field tag, and return where they end."""
    for c in range(count):
        if not sizes[at + c]:
            continue
        state, frame = _cell_state(cells, wide, at + c), FRAMES * (first + c)
        out[np.uint64(to)] = tag
        to = write_varint(sizes[at + c], out, to + 1)
        to = write_frame(frames, frame_texts, frame + state, out, to)
        if updated[at + c]:
            out[np.uint64(to)], out[np.uint64(to + 1)] = UPDATED, 1
            to += 2
        out[np.uint64(to)], out[np.uint64(to + 1)] = IS_NULL, 1 if state == NULL else 0
        to += 2
        if state != NULL:
            field = np.uint64(cells[at + c])
            length = text_ends[field] - text_starts[field]
            if length:
                out[np.uint64(to)] = VALUE_TAG
                to = write_varint(length, out, to + 1)
                copy_next(out, to, texts, text_starts[field], length)
                to += length
        to = write_frame(frames, frame_texts, frame + TAIL, out, to)
    return to


@kernel(
    NONE(
        BYTES, I64S_IN, I64S_IN, U8S_IN, I32S_IN, I32S_IN, I32S_IN, I64S_IN, U8S_IN, I64S_IN, I64S_IN, BYTES,
        U8S, I32S, I64S_IN, U8S,
    )
)  # fmt: skip
def write_mixed(
    texts: Any,
    text_starts: Any,
    text_ends: Any,
    wide: Any,
    cells: Any,
    image_event: Any,
    image_cell: Any,
    program: Any,
    event_kind: Any,
    bounds: Any,
    frames: Any,
    frame_texts: Any,
    updated: Any,
    sizes: Any,
    inner: Any,
    out: Any,
) -> None:
    """Write the RowData that `measure_mixed` measured; `out` has as many bytes as the last event's end says."""
    to, image, row = np.int64(0), np.int64(0), np.int64(0)
    while image < image_event.size:
        e = image_event[image]
        first = bounds[program[e]]
        count = bounds[program[e] + 1] - first
        out[np.uint64(to)] = ROW_DATA
        to = write_varint(inner[row], out, to + 1)
        row += 1
        is_insert, is_update = event_kind[e] in (23, 30), event_kind[e] in (24, 31)
        for side in range(2 if is_update else 1):
            to = _write_image(
                AFTER if is_insert or side else BEFORE, texts, text_starts, text_ends, wide, cells,
                np.int64(image_cell[image]), first, count, frames, frame_texts, updated, sizes, out, to,
            )  # fmt: skip
            image += 1
