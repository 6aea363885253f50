"""The declaration of kernels, and the reads that they share.

A kernel takes arrays and fills arrays, checks every read against the end it was given, and answers with an error code
and an offset, never with an exception. It allocates nothing and releases the GIL.

numba compiles it. The machine code is cached on disk and loaded at the first call without numba, which takes longer to
import than everything else together (see `native`); `python -m penstock.binlog.compile` fills that cache. So no module
with kernels may import numba: what needs it says so with `lowered`.

numba: cast bytes with np.int64 before arithmetic; uint64 + int64 becomes float64. Index with np.uint64 where it
matters: a signed index may count from the end, and asking costs more than the read. Assign cells, not slices: a slice
assignment can raise.

NUMBA_BOUNDSCHECK=1 checks every read; the tests run the kernels that way too.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
IS_CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in {"", "0"}


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an argument or a result: a number, an array of numbers in C order, or several numbers."""

    dtype: str
    ndim: int = 0
    is_readonly: bool = False  # accepts read-only buffers (Arrow's are) as well as writable ones
    count: int = 1

    def __call__(self, *args: "Type") -> "Signature":
        return Signature(self, args)


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a kernel: its result and its arguments."""

    result: Type
    args: tuple[Type, ...]


NONE = Type("none")
I64 = Type("int64")
PAIR, TRIPLE = Type("int64", count=2), Type("int64", count=3)
BYTES = Type("uint8", 1, is_readonly=True)
U8S, U8S_IN, U8S_2D = Type("uint8", 1), Type("uint8", 1, is_readonly=True), Type("uint8", 2)
U16S_IN, U32S_IN = Type("uint16", 1, is_readonly=True), Type("uint32", 1, is_readonly=True)
I8S, I16S = Type("int8", 1), Type("int16", 1)
I32S, I32S_IN = Type("int32", 1), Type("int32", 1, is_readonly=True)
I32S_2D, I32S_2D_IN = Type("int32", 2), Type("int32", 2, is_readonly=True)
I64S, I64S_IN = Type("int64", 1), Type("int64", 1, is_readonly=True)
I64S_2D, I64S_2D_IN = Type("int64", 2), Type("int64", 2, is_readonly=True)
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)


class Kernel:
    """A function that will be compiled for the given types; other kernels cannot call it (see `shared`).

    A `brief` one keeps the GIL: releasing it and taking it back would take longer than the kernel itself.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature, *, is_brief: bool) -> None:
        update_wrapper(self, function)
        self.function, self.signature, self.is_brief = function, signature, is_brief

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """Return the machine code of the kernel as a callable: loaded from the cache, or compiled."""
        from penstock.binlog.native import callable_of  # noqa: PLC0415 - it needs this module

        return callable_of(self)

    def __call__(self, *args: Any) -> Any:
        return self.compiled(*args)


class Shared:
    """A function that kernels call; compiled into them."""

    def __init__(self, function: Callable[..., Any] | None, name: str = "", **options: Any) -> None:
        self.function, self.options = function, options
        self.__name__ = name or (function.__name__ if function else "")

    @cached_property
    def dispatcher(self) -> Any:
        """Return the function as numba's dispatcher."""
        from penstock.binlog.native import dispatcher_of  # noqa: PLC0415 - it needs this module

        return dispatcher_of(self)

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)


def kernel(signature: Signature) -> Callable[[F], F]:
    """Declare a kernel: a function that will be compiled for these types, with the GIL released while it runs."""
    return lambda function: cast("F", Kernel(function, signature, is_brief=False))


def brief_kernel(signature: Signature) -> Callable[[F], F]:
    """Declare a kernel that runs so briefly that it keeps the GIL."""
    return lambda function: cast("F", Kernel(function, signature, is_brief=True))


def shared(function: F) -> F:
    """Declare a function that kernels call, compiled into each of them."""
    return cast("F", Shared(function))


def inlined(function: F) -> F:
    """Declare a shared function that is inlined where it is called, because a call would pass each array as seven
    arguments."""
    return cast("F", Shared(function, forceinline=True))


def lowered(name: str) -> Any:
    """Return a function of `intrinsics` for kernels, which is imported only when a kernel is compiled."""
    return Shared(None, name)


@shared
def u16(data: Any, at: Any) -> Any:
    """Return the unsigned 16-bit little-endian number at data[at]."""
    k = np.uint64(at)
    return np.int64(data[k]) | np.int64(data[k + _1]) << 8


@shared
def u32(data: Any, at: Any) -> Any:
    """Return the unsigned 32-bit little-endian number at data[at]."""
    k = np.uint64(at)
    return np.int64(data[k]) | np.int64(data[k + _1]) << 8 | np.int64(data[k + _2]) << 16 | np.int64(data[k + _3]) << 24


@shared
def read_little_endian(data: Any, at: Any, width: Any) -> Any:
    """Return the unsigned little-endian number of `width` bytes, up to eight, at data[at]; of eight bytes it may be
    negative."""
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
def read_big_endian(data: Any, at: Any, width: Any) -> Any:
    """Return the unsigned big-endian number of `width` bytes, up to eight, at data[at]; of eight bytes it may be
    negative."""
    value = np.int64(0)
    for k in range(width):
        value = value << 8 | np.int64(data[np.uint64(at + k)])
    return value
