"""Rows as canal's RowData: measured first, then written one after the other.

    RowChange.rowDatas (12): RowData
    RowData:  beforeColumns (1): Column, …, afterColumns (2): Column, …
    Column:   index (1), sqlType (2), name (3), isKey (4) | updated (5) | isNull (6) | value (8) | mysqlType (10)

Of a Column only what is between the bars differs from row to row. The rest is its frame: a head for values, one for
NULL, one for unsigned numbers whose highest bit is set, since the sqlType differs; and a tail.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes, copy_next
from penstock.binlog.kernel import BYTES, I32S_2D, I64, I64S, I64S_2D_IN, I64S_IN, NONE, U8S, U8S_2D, kernel, shared
from penstock.canal.protobuf import varint_size, write_varint
from penstock.canal.schema import tag_of

VALUE, NULL, WIDE, ABSENT = 0, 1, 2, 3  # what a cell is
FRAMES, TAIL = 4, 3  # of a column
# Tags: numbers when this is imported, constants in a kernel.
ROW_DATA = tag_of("RowChange", "rowDatas")
BEFORE, AFTER = tag_of("RowData", "beforeColumns"), tag_of("RowData", "afterColumns")
UPDATED, IS_NULL, VALUE_TAG = (tag_of("Column", name) for name in ("updated", "isNull", "value"))


@shared
def _is_same_value(texts: Any, bounds: Any, cells: Any, column: Any, left: Any, right: Any) -> Any:
    """Tell whether two images have the same text in a column, or are both NULL there."""
    if (cells[column, left] == NULL) != (cells[column, right] == NULL):
        return False
    at, to = bounds[column, left], bounds[column, right]
    size = bounds[column, left + 1] - at
    if size != bounds[column, right + 1] - to:
        return False
    for k in range(size):  # noqa: SIM110 - numba has no generators here
        if texts[np.uint64(at + k)] != texts[np.uint64(to + k)]:
            return False
    return True


@shared
def frame_size(frames: Any, which: Any) -> Any:
    """Return the size of frame number `which`."""
    return frames[which + 1] - frames[which]


@shared
def _measure_image(bounds: Any, cells: Any, frames: Any, updated: Any, sizes: Any, image: Any) -> Any:
    """Measure all columns of an image, and return their encoded size."""
    total = np.int64(0)
    for column in range(cells.shape[0]):
        cell = cells[column, image]
        if cell == ABSENT:
            sizes[image, column] = 0
            continue
        # isNull takes two bytes
        size = frame_size(frames, FRAMES * column + cell) + frame_size(frames, FRAMES * column + TAIL) + 2
        if updated[image, column]:
            size += 2
        length = bounds[column, image + 1] - bounds[column, image]
        if cell != NULL and length:
            size += 1 + varint_size(length) + length
        sizes[image, column] = size
        total += 1 + varint_size(size) + size
    return total


@kernel(NONE(BYTES, I64S_2D_IN, U8S_2D, I64S_IN, I64S_IN, I64S_IN, U8S_2D, I32S_2D, I64S, I64S))
def measure_rows(
    texts: Any,
    bounds: Any,
    cells: Any,
    frames: Any,
    before: Any,
    after: Any,
    updated: Any,
    sizes: Any,
    inner: Any,
    ends: Any,
) -> None:
    """Measure the RowData of each row.

    Row i is the images before[i] and after[i], of which one may be -1. `bounds` and `cells` have a line per column.
    Writes to `updated` and `sizes` one cell per image and column, to inner[i] the size of RowData i, and to ends[i]
    where it ends including its tag.
    """
    written = np.int64(0)
    for i in range(before.size):
        size = np.int64(0)
        if before[i] >= 0:
            for column in range(cells.shape[0]):
                updated[before[i], column] = 0
            size += _measure_image(bounds, cells, frames, updated, sizes, before[i])
        if after[i] >= 0:
            for column in range(cells.shape[0]):
                is_same = (
                    before[i] >= 0
                    and cells[column, before[i]] != ABSENT
                    and _is_same_value(texts, bounds, cells, column, before[i], after[i])
                )
                updated[after[i], column] = 0 if is_same else 1
            size += _measure_image(bounds, cells, frames, updated, sizes, after[i])
        inner[i] = size
        written += 1 + varint_size(size) + size
        ends[i] = written


@shared
def write_frame(frames: Any, frame_texts: Any, which: Any, out: Any, at: Any) -> Any:
    """Copy frame number `which`, and return where it ends."""
    size = frame_size(frames, which)
    copy_next(out, at, frame_texts, frames[which], size)
    return at + size


@shared
def _write_image(
    tag: Any, texts: Any, bounds: Any, cells: Any, frames: Any, frame_texts: Any, updated: Any, sizes: Any, image: Any,
    out: Any, at: Any,
) -> Any:  # fmt: skip
    """Write all columns of an image with this field tag, and return where they end."""
    for column in range(cells.shape[0]):
        cell = cells[column, image]
        if cell == ABSENT:
            continue
        out[np.uint64(at)] = tag
        at = write_varint(sizes[image, column], out, at + 1)
        at = write_frame(frames, frame_texts, FRAMES * column + cell, out, at)
        if updated[image, column]:
            out[np.uint64(at)], out[np.uint64(at + 1)] = UPDATED, 1
            at += 2
        out[np.uint64(at)], out[np.uint64(at + 1)] = IS_NULL, 1 if cell == NULL else 0
        at += 2
        length = bounds[column, image + 1] - bounds[column, image]
        if cell != NULL and length:
            out[np.uint64(at)] = VALUE_TAG
            at = write_varint(length, out, at + 1)
            copy_next(out, at, texts, bounds[column, image], length)
            at += length
        at = write_frame(frames, frame_texts, FRAMES * column + TAIL, out, at)
    return at


@kernel(NONE(BYTES, I64S_2D_IN, U8S_2D, I64S_IN, BYTES, I64S_IN, I64S_IN, U8S_2D, I32S_2D, I64S_IN, U8S))
def write_row_data(
    texts: Any, bounds: Any, cells: Any, frames: Any, frame_texts: Any, before: Any, after: Any, updated: Any,
    sizes: Any, inner: Any, out: Any,
) -> None:  # fmt: skip
    """Write the RowData that `measure_rows` measured; `out` has as many bytes as the last row's end says."""
    at = np.int64(0)
    for i in range(before.size):
        out[np.uint64(at)] = ROW_DATA
        at = write_varint(inner[i], out, at + 1)
        if before[i] >= 0:
            at = _write_image(BEFORE, texts, bounds, cells, frames, frame_texts, updated, sizes, before[i], out, at)
        if after[i] >= 0:
            at = _write_image(AFTER, texts, bounds, cells, frames, frame_texts, updated, sizes, after[i], out, at)


@kernel(I64(BYTES, I64S_IN))
def latin1_size(data: Any, bounds: Any) -> Any:
    """Return how many bytes the values take as UTF-8 when each byte is read as Latin-1: bytes from 128 on take two."""
    size = bounds[bounds.size - 1] - bounds[0]
    for at in range(bounds[0], bounds[bounds.size - 1]):
        size += np.int64(data[np.uint64(at)] >> 7)
    return size


@kernel(NONE(BYTES, I64S_IN, I64S, U8S))
def write_latin1(data: Any, bounds: Any, out_bounds: Any, out: Any) -> None:
    """Write each byte as the UTF-8 of the Latin-1 character with its number; value i goes to `out` at out_bounds[i]."""
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        for at in range(bounds[i], bounds[i + 1]):
            byte = data[np.uint64(at)]
            if byte < 128:
                out[np.uint64(written)] = byte
                written += 1
            else:
                out[np.uint64(written)], out[np.uint64(written + 1)] = 0xC0 | byte >> 6, 0x80 | byte & 0x3F
                written += 2
        out_bounds[i + 1] = written


@kernel(I64(BYTES, I64S_IN, I64S, U8S))
def strip_zeros(data: Any, bounds: Any, out_bounds: Any, out: Any) -> Any:
    """Copy each value without the zero bytes at its end; `out` has as many bytes as all values. Returns how many were
    used.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        first, stop = bounds[i], bounds[i + 1]
        while stop > first and data[np.uint64(stop - 1)] == 0:
            stop -= 1
        copy_bytes(out, written, data, first, stop - first)
        written += stop - first
        out_bounds[i + 1] = written
    return written


@kernel(I64(BYTES, I64S_IN, I64, I64S, U8S))
def trim_decimals(data: Any, bounds: Any, kept: Any, out_bounds: Any, out: Any) -> Any:
    """Copy decimals, without the zeros after the first `kept` fraction digits if only zeros follow; one fraction digit
    always stays.

    `out` has as many bytes as the texts. Returns how many were used.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        first, end = bounds[i], bounds[i + 1]
        point = first
        while point < end and data[np.uint64(point)] != 46:
            point += 1
        stop = end
        if point < end:
            while stop > point + 1 + kept and data[np.uint64(stop - 1)] == 48:
                stop -= 1
            if stop > point + 1 + kept:
                stop = end
            elif stop == point + 1:
                stop += 1
        copy_bytes(out, written, data, first, stop - first)
        written += stop - first
        out_bounds[i + 1] = written
    return written
