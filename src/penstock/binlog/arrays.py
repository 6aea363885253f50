"""Arrow arrays over numpy's memory and back.

`pyarrow.array` and `to_numpy` import pandas where that is installed, which takes longer than all the rest of a start.
For the same reason `pyarrow.compute` is imported at the first use of `compute`: it takes as long as all our modules.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyarrow import compute as compute  # noqa: PLC0414 - the others import it from here
else:

    class _Compute:
        """Stands for `pyarrow.compute` until one of its functions is called."""

        def __getattr__(self, name: str) -> Any:
            import pyarrow.compute  # noqa: PLC0415 - see above

            return getattr(pyarrow.compute, name)

    compute = _Compute()

_FEW = 64


def to_arrow_numbers(values: NDArray[Any]) -> pa.Array:
    """Return an Arrow array over the values, without a copy: they must not change afterwards."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(values)])


def to_arrow_booleans(values: NDArray[np.bool_]) -> pa.Array:
    """Return a mask as an Arrow array of booleans."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), values.size, [None, pa.py_buffer(bits)])


def distinct(values: NDArray[Any]) -> list[int]:
    """Return the sorted values, each once. For the few values of one commit, numpy would take longer than a set."""
    return sorted(set(values.tolist())) if values.size < _FEW else distinct_values(values).tolist()


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted values, each once. (`numpy.unique` would import numpy.ma, which a start can do without.)"""
    ordered = np.sort(values, axis=None)
    is_new = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def to_mask(array: pa.Array) -> NDArray[np.bool_]:
    """Return an Arrow array of booleans as a mask; null is false. (Arrow's own way imports pandas.)"""
    mask = np.ones(len(array), np.bool_)
    for buffer in array.buffers():
        if buffer is not None:
            bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
            mask &= bits[array.offset : array.offset + len(array)].astype(np.bool_)
    return mask


def to_arrow_strings(values: Sequence[str]) -> pa.Array:
    """Return an Arrow array of these strings."""
    raw = [value.encode() for value in values]
    bounds = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(raw))])


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """Return the memory of an Arrow array of numbers without nulls as a numpy array, without a copy."""
    buffer = array.buffers()[1]
    dtype: Any = array.type.to_pandas_dtype()
    whole = np.frombuffer(buffer if buffer is not None else b"", dtype)
    return whole[array.offset : array.offset + len(array)]
