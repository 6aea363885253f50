"""Arrow arrays over numpy's memory and back.

`pyarrow.array` and `to_numpy` import pandas where that is installed, which takes longer than all the rest of a start.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_FEW = 64


def numbers(values: NDArray[Any]) -> pa.Array:
    """Without a copy; the values must stay as they are."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(values)])


def flags(values: NDArray[np.bool_]) -> pa.Array:
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), values.size, [None, pa.py_buffer(bits)])


def distinct(values: NDArray[Any]) -> list[int]:
    """In their order. Of the few that one commit has, numpy would take longer."""
    return sorted(set(values.tolist())) if values.size < _FEW else distinct_values(values).tolist()


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted values, each once. (`numpy.unique` would import numpy.ma, which a start can do without.)"""
    ordered = np.sort(values, axis=None)
    is_new = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def texts(values: Sequence[str]) -> pa.Array:
    raw = [value.encode() for value in values]
    bounds = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(raw))])


def view(array: pa.Array) -> NDArray[Any]:
    """Of numbers without nulls."""
    buffer = array.buffers()[1]
    dtype: Any = array.type.to_pandas_dtype()
    whole = np.frombuffer(buffer if buffer is not None else b"", dtype)
    return whole[array.offset : array.offset + len(array)]
