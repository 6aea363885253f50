"""Some of many byte strings, copied side by side. Arrow's `take` does the same, but its library takes long to load."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import BYTES, I32S, I32S_IN, I64S_IN, NONE, U8S, kernel

MAX_BYTES = (1 << 31) - 1  # that 32-bit bounds can tell


@kernel(NONE(BYTES, I32S_IN, I64S_IN, I32S, U8S))
def gather(data: Any, bounds: Any, rows: Any, out_bounds: Any, out: Any) -> None:
    """Copy data[bounds[row]:bounds[row + 1]] for each row; `out` has room for all. Neighbours are copied at once."""
    written = np.int64(0)
    out_bounds[0] = 0
    first = end = np.int64(0)  # what is to be copied next
    start = np.int64(0)  # and where it goes
    for i in range(rows.size):
        at, stop = np.int64(bounds[rows[i]]), np.int64(bounds[rows[i] + 1])
        if at != end:
            copy_bytes(out, start, data, first, end - first)
            first, start = at, written
        end = stop
        written += stop - at
        out_bounds[i + 1] = written
    copy_bytes(out, start, data, first, end - first)


def gather_bytes(
    data: NDArray[np.uint8], bounds: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of these rows and the bounds of each in them."""
    size = int((bounds[rows + 1].astype(np.int64) - bounds[rows]).sum())
    if size > MAX_BYTES:
        raise OverflowError(f"{size} bytes are more than 32-bit bounds can tell")
    out, out_bounds = np.empty(size, np.uint8), np.empty(rows.size + 1, np.int32)
    gather(data, bounds, rows, out_bounds, out)
    return out, out_bounds


def take_texts(texts: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Return these rows of an array of strings, nulls included."""
    bits, bounds, data = texts.buffers()
    all_bounds = np.frombuffer(bounds, np.int32)[texts.offset :] if bounds is not None else np.zeros(1, np.int32)
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    out, out_bounds = gather_bytes(raw, all_bounds, np.ascontiguousarray(rows, np.int64))
    valid = None
    if texts.null_count:
        marks = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[texts.offset :]
        valid = pa.py_buffer(np.packbits(marks[rows], bitorder="little"))
    return pa.Array.from_buffers(texts.type, rows.size, [valid, pa.py_buffer(out_bounds), pa.py_buffer(out)])
