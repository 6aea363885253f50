"""memcpy inside kernels: a slice assignment costs several times as much for texts as short as most columns hold."""

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core.cgutils import raw_memcpy
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from penstock.binlog.kernel import I64, shared

_CHUNK = 32


def _pointers(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """Of out[to] and data[at]."""
    out, to, data, at = args[:4]
    into = make_array(signature.args[0])(context, builder, value=out).data
    source = make_array(signature.args[2])(context, builder, value=data).data
    return builder.gep(into, [to]), builder.gep(source, [at])


@intrinsic
def _memcpy(_typing: Any, out: Any, _to: Any, data: Any, _at: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        raw_memcpy(builder, *_pointers(context, builder, signature, args), args[4], 1)
        return context.get_dummy_value()

    return types.void(out, I64, data, I64, I64), generate


@intrinsic
def _copy_chunk(_typing: Any, out: Any, _to: Any, data: Any, _at: Any) -> Any:
    """_CHUNK bytes: a size known to the compiler becomes two instructions instead of a call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        raw_memcpy(builder, *_pointers(context, builder, signature, args), ir.IntType(64)(_CHUNK), 1)
        return context.get_dummy_value()

    return types.void(out, I64, data, I64), generate


@shared
def _by_byte(out: Any, to: int, data: Any, at: int, size: int) -> None:
    for k in range(size):
        out[to + k] = data[at + k]


@shared
def _by_chunk(out: Any, to: int, data: Any, at: int, size: int) -> None:
    if size <= _CHUNK and to + _CHUNK <= out.size and at + _CHUNK <= data.size:
        _copy_chunk(out, to, data, at)
    else:
        _memcpy(out, to, data, at, size)


# Copies `size` bytes at data[at] to out[to]; byte by byte where the bounds check must see every read and write.
copy_bytes: Any = _by_byte if config.BOUNDSCHECK else _memcpy
# The same for an `out` that is filled from its start to its end: bytes after the copied ones may change.
copy_next: Any = _by_byte if config.BOUNDSCHECK else _by_chunk
