"""Rows of many tables as JSON objects, and which columns an update changed or an image does not carry.

Images, cells and programs are those of `binlog.rows.mixed`. A program has two texts for each column: what comes before
its value in the object, and its name. marks[2k] and marks[2k + 1] stand around each value of kind k.
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
    PAIR,
    U8S,
    U8S_IN,
    kernel,
    shared,
)
from penstock.binlog.rows.programs import KIND

TEXTS = 2  # of a column
_NULL, _ABSENT = -1, -2
_NULL_TEXT = b"null"


@kernel(NONE(I64S_IN, I64S_IN, I32S_IN, I32S_IN, I32S_IN, I64S_IN, I64S_IN, I64S_2D_IN, I64S_IN, I64S_IN, I64, I64S))
def measure_objects(
    text_starts: Any,
    text_ends: Any,
    cells: Any,
    image_event: Any,
    image_cell: Any,
    program: Any,
    bounds: Any,
    columns: Any,
    heads: Any,
    marks: Any,
    skips_absent: int,
    ends: Any,
) -> None:
    """Measure each image as a JSON object, and write to ends[i] where the object of image i ends. A column that an
    image does not carry is null, or is left out.
    """
    written = np.int64(0)
    for i in range(image_event.size):
        first = bounds[program[image_event[i]]]
        count = bounds[program[image_event[i]] + 1] - first
        at, shown = np.int64(image_cell[i]), 0
        for c in range(count):
            kind = columns[np.uint64(first + c), KIND]
            if kind < 0 or (skips_absent and cells[at + c] == _ABSENT):
                continue
            shown += 1
            head = TEXTS * (first + c)
            written += heads[head + 1] - heads[head]
            if cells[at + c] >= 0:
                field = np.uint64(cells[at + c])
                written += text_ends[field] - text_starts[field] + marks[2 * kind + 2] - marks[2 * kind]
            else:
                written += len(_NULL_TEXT)
        written += 1 if shown else 2
        ends[i] = written


@kernel(
    NONE(
        BYTES, I64S_IN, I64S_IN, I32S_IN, I32S_IN, I32S_IN, I64S_IN, I64S_IN, I64S_2D_IN, I64S_IN, BYTES, I64S_IN,
        BYTES, I64, U8S,
    )
)  # fmt: skip
def write_objects(
    texts: Any,
    text_starts: Any,
    text_ends: Any,
    cells: Any,
    image_event: Any,
    image_cell: Any,
    program: Any,
    bounds: Any,
    columns: Any,
    heads: Any,
    head_texts: Any,
    marks: Any,
    mark_texts: Any,
    skips_absent: int,
    out: Any,
) -> None:
    """Write the objects that `measure_objects` measured. A head begins with a brace or a comma, whichever the object
    needs there.
    """
    to = np.int64(0)
    for i in range(image_event.size):
        first = bounds[program[image_event[i]]]
        count = bounds[program[image_event[i]] + 1] - first
        at, shown = np.int64(image_cell[i]), 0
        for c in range(count):
            kind = columns[np.uint64(first + c), KIND]
            if kind < 0 or (skips_absent and cells[at + c] == _ABSENT):
                continue
            shown += 1
            head = TEXTS * (first + c)
            size = heads[head + 1] - heads[head]
            copy_next(out, to, head_texts, heads[head], size)
            if skips_absent and shown == 1:
                out[np.uint64(to)] = 123
            to += size
            if cells[at + c] >= 0:
                field = np.uint64(cells[at + c])
                for k in range(marks[2 * kind], marks[2 * kind + 1]):
                    out[np.uint64(to)] = mark_texts[np.uint64(k)]
                    to += 1
                size = text_ends[field] - text_starts[field]
                copy_next(out, to, texts, text_starts[field], size)
                to += size
                for k in range(marks[2 * kind + 1], marks[2 * kind + 2]):
                    out[np.uint64(to)] = mark_texts[np.uint64(k)]
                    to += 1
            else:
                for k in range(len(_NULL_TEXT)):
                    out[np.uint64(to + k)] = _NULL_TEXT[k]
                to += len(_NULL_TEXT)
        if not shown:
            out[np.uint64(to)] = 123
            to += 1
        out[np.uint64(to)] = 125
        to += 1


@shared
def _is_unchanged(data: Any, offsets: Any, lengths: Any, left: Any, right: Any) -> Any:
    """Tell whether the value after an update is the one before it; what it does not carry has not changed."""
    if left < 0 or right < 0:
        return right in (left, _ABSENT)
    a, b, size = np.int64(offsets[left]), np.int64(offsets[right]), np.int64(lengths[left])
    if size != lengths[right]:
        return False
    for k in range(size):  # noqa: SIM110 - kernels have no generators
        if data[np.uint64(a + k)] != data[np.uint64(b + k)]:
            return False
    return True


@kernel(
    PAIR(
        BYTES, I32S_IN, I32S_IN, I32S_IN, I32S_IN, I32S_IN, I64S_IN, U8S_IN, I64S_IN, I64S_2D_IN,
        I32S, I32S, I32S, I32S,
    )
)  # fmt: skip
def list_differences(
    data: Any,
    offsets: Any,
    lengths: Any,
    cells: Any,
    image_event: Any,
    image_cell: Any,
    program: Any,
    event_kind: Any,
    bounds: Any,
    columns: Any,
    changed_ends: Any,
    changed: Any,
    absent_ends: Any,
    absent: Any,
) -> Any:
    """List the columns, by number among those of all programs, that image i changed (as the image after an update) or
    does not carry.

    Writes them to `changed` and `absent`; those of image i end at changed_ends[i] and absent_ends[i]. Returns how many
    there are.
    """
    change_count, absent_count, side = np.int64(0), np.int64(0), 0
    for i in range(image_event.size):
        e = image_event[i]
        if i and image_event[i - 1] != e:
            side = 0
        first = bounds[program[e]]
        at = np.int64(image_cell[i])
        for c in range(bounds[program[e] + 1] - first):
            if columns[np.uint64(first + c), KIND] < 0:
                continue
            if cells[at + c] == _ABSENT:
                absent[absent_count] = first + c
                absent_count += 1
            if side:
                before = np.int64(cells[np.int64(image_cell[i - 1]) + c])
                if not _is_unchanged(data, offsets, lengths, before, np.int64(cells[at + c])):
                    changed[change_count] = first + c
                    change_count += 1
        changed_ends[i], absent_ends[i] = change_count, absent_count
        if event_kind[e] in (24, 31):
            side ^= 1
    return change_count, absent_count
