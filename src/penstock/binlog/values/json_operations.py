"""JSON diffs of partial updates → lists of operations, where the document that they change is not in the log.

With `binlog_row_image=MINIMAL` or `NOBLOB` an update may carry diffs (`json_patch` has their layout) without the
document before them. What it did is known all the same: operation, path and new value, in the order in which they are
applied. All operations of a column are split off with one kernel call, and their values are rendered with another.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_numbers, to_arrow_strings
from penstock.binlog.kernel import BYTES, I64S, I64S_2D, I64S_IN, TRIPLE, kernel, shared
from penstock.binlog.values.json_format import JsonError, JsonFault
from penstock.binlog.values.json_patch import DOLLAR, INSERT, REMOVE, read_length
from penstock.binlog.values.json_string import character_bytes
from penstock.binlog.values.json_text import render_json

OPERATIONS = ("replace", "insert", "remove", "array_insert")
ARRAY_INSERT = OPERATIONS.index("array_insert")  # an insert whose path ends in a cell of an array
_MIN_BYTES = 3  # of a diff: operation, length, "$"
_CODE, _PATH, _PATH_SIZE, _VALUE, _VALUE_SIZE, _CELLS = range(6)
_BRACKET = ord("]")
_BROKEN_DIFF = np.int64(JsonFault.BROKEN_DIFF)


@shared
def _is_text(data: Any, at: Any, size: Any) -> Any:
    """Return whether data[at:at + size] is UTF-8."""
    end = at + size
    while at < end:
        width = np.int64(1)
        if data[np.uint64(at)] > 127:
            width = np.int64(character_bytes(data, at, end - at))
            if width == 0 or (data[np.uint64(at)] == 0xED and data[np.uint64(at + 1)] >= 0xA0):
                return False
        at += width
    return True


@kernel(TRIPLE(BYTES, I64S_IN, I64S_IN, I64S, I64S_2D))
def _split(data: Any, offsets: Any, lengths: Any, counts: Any, lines: Any) -> Any:
    """Note each diff of each row in a line of `lines`; return (0, diffs, 0) or (fault, row, where)."""
    count = np.int64(0)
    for row in range(lengths.size):
        first = count
        at, end = offsets[row], offsets[row] + lengths[row]
        while at < end:
            start = at
            code = np.int64(data[np.uint64(at)])
            path, size = read_length(data, at + 1, end)
            if code > REMOVE or size < 1 or data[np.uint64(path)] != DOLLAR or not _is_text(data, path, size):
                return _BROKEN_DIFF, row, start
            at = path + size
            value, value_size = at, np.int64(-1)
            if code != REMOVE:
                value, value_size = read_length(data, at, end)
                if value_size < 1:
                    return _BROKEN_DIFF, row, start
                at = value + value_size
            if code == INSERT and data[np.uint64(path + size - 1)] == _BRACKET:
                code = np.int64(ARRAY_INSERT)
            lines[count, _CODE], lines[count, _PATH], lines[count, _PATH_SIZE] = code, path, size
            lines[count, _VALUE], lines[count, _VALUE_SIZE] = value, value_size
            count += 1
        counts[row] = count - first
    return 0, count, 0


@dataclass(frozen=True, slots=True, eq=False)
class JsonOperations:
    """The operations of a column, one row after the other; those of row i are `counts[i]`."""

    data: NDArray[np.uint8]
    counts: NDArray[np.int64]
    lines: NDArray[np.int64]
    values: pa.Array  # as JSON text; null for a removal

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Return the bounds of the rows: the operations of row i lie between bounds[i] and bounds[i + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    @property
    def codes(self) -> NDArray[np.int64]:
        """Return the code of each operation: its index in OPERATIONS."""
        return self.lines[:, _CODE]

    @property
    def names(self) -> pa.Array:
        """Return the name of each operation."""
        return to_arrow_strings(OPERATIONS).take(to_arrow_numbers(self.codes.copy()))

    @property
    def paths(self) -> pa.Array:
        """Return the JSON path of each operation."""
        sizes = self.lines[:, _PATH_SIZE]
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        inside = np.arange(int(bounds[-1])) - np.repeat(bounds[:-1], sizes)
        raw = self.data[np.repeat(self.lines[:, _PATH], sizes) + inside]
        buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(raw)]
        return pa.Array.from_buffers(pa.string(), sizes.size, buffers)

    @property
    def sql_values(self) -> pa.Array:
        """Return the new value of each operation as an SQL expression; null for JSON_REMOVE."""
        return _render(self.data, self.lines, as_sql=True)


def read_operations(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64], *, point_zero: bool = True
) -> JsonOperations:
    """Read the diffs of each row, which lie at `offsets`; a row without any has a length below 1."""
    counts = np.zeros(lengths.size, np.int64)
    most = int((np.maximum(lengths, 0) // _MIN_BYTES).sum())
    lines = np.empty((most, _CELLS), np.int64)
    fault, row, where = _split(data, offsets, lengths, counts, lines)
    if fault:
        raise JsonError(JsonFault(fault), row, where)
    lines = lines[:row].copy()
    try:
        return JsonOperations(data, counts, lines, _render(data, lines, point_zero=point_zero))
    except JsonError as error:
        row_of = np.repeat(np.arange(counts.size), counts)
        raise JsonError(error.fault, int(row_of[error.row]), error.where) from None


def _render(data: NDArray[np.uint8], lines: NDArray[np.int64], **style: bool) -> pa.Array:
    sizes = lines[:, _VALUE_SIZE].copy()
    bounds, text = render_json(data, lines[:, _VALUE].copy(), sizes, **style)
    valid = to_arrow_booleans(sizes >= 0).buffers()[1] if (sizes < 0).any() else None
    return pa.Array.from_buffers(pa.string(), sizes.size, [valid, pa.py_buffer(bounds), pa.py_buffer(text)])
