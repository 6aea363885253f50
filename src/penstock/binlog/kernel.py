"""How kernels are compiled, and the reads they share.

A kernel takes arrays and fills arrays, checks every read against the end it was given, and answers with an
error code and a place, never with an exception. It releases the GIL. Explicit signatures compile it at
import, from the disk cache when that is there.

The cache notices changes in a kernel's own file only: after changing a helper in this file, delete
`__pycache__`. (numba: cast bytes with np.int64 before arithmetic; uint64 + int64 becomes float64. Index with
np.uint64 where it matters: a signed index may count from the end, and asking costs more than the read.)

NUMBA_BOUNDSCHECK=1, with a cache folder of its own, checks every read; the tests run the kernels that way too.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types

F = TypeVar("F", bound=Callable[..., Any])

# Argument types. BYTES accepts read-only buffers (Arrow's are) as well as writable ones.
BYTES: Any = types.Array(types.uint8, 1, "C", readonly=True)
I64: Any = types.int64
I64S: Any = types.Array(types.int64, 1, "C")
I64S_IN: Any = types.Array(types.int64, 1, "C", readonly=True)
I64S_2D: Any = types.Array(types.int64, 2, "C")
I64S_2D_IN: Any = types.Array(types.int64, 2, "C", readonly=True)
I32S: Any = types.Array(types.int32, 1, "C")
I32S_IN: Any = types.Array(types.int32, 1, "C", readonly=True)
I32S_2D: Any = types.Array(types.int32, 2, "C")
I32S_2D_IN: Any = types.Array(types.int32, 2, "A", readonly=True)  # a part of each line may be all that counts
U8S: Any = types.Array(types.uint8, 1, "C")
U8S_IN: Any = types.Array(types.uint8, 1, "C", readonly=True)
U8S_2D: Any = types.Array(types.uint8, 2, "C")
U32S_IN: Any = types.Array(types.uint32, 1, "C", readonly=True)
NONE: Any = types.void
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)


def kernel(signature: Any) -> Callable[[F], F]:
    """Compile ahead of the first call; without a writable cache folder, compile in memory."""

    def compile_it(function: F) -> F:
        try:
            return cast("F", njit(signature, nogil=True, cache=True)(function))
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return cast("F", njit(signature, nogil=True)(function))

    return compile_it


def shared(function: F) -> F:
    """A read used inside kernels; compiled into them."""
    return cast("F", njit(nogil=True, inline="never")(function))


@shared
def u16(data: Any, at: Any) -> Any:
    k = np.uint64(at)
    return np.int64(data[k]) | np.int64(data[k + _1]) << 8


@shared
def u32(data: Any, at: Any) -> Any:
    k = np.uint64(at)
    return np.int64(data[k]) | np.int64(data[k + _1]) << 8 | np.int64(data[k + _2]) << 16 | np.int64(data[k + _3]) << 24


@shared
def little(data: Any, at: Any, width: Any) -> Any:
    """Unsigned little-endian of up to eight bytes; eight fill the sign bit."""
    if width == 1:
        return np.int64(data[np.uint64(at)])
    if width == 2:
        return u16(data, at)
    if width == 4:
        return u32(data, at)
    if width == 8:
        return u32(data, at) | u32(data, at + 4) << 32
    value = np.int64(0)
    for k in range(width):
        value |= np.int64(data[np.uint64(at + k)]) << (8 * k)
    return value


@shared
def big(data: Any, at: Any, width: Any) -> Any:
    """Unsigned big-endian of up to seven bytes."""
    value = np.int64(0)
    for k in range(width):
        value = value << 8 | np.int64(data[np.uint64(at + k)])
    return value
