"""memcpy inside kernels: a slice assignment costs several times as much for texts as short as most columns hold."""

from typing import Any

from numba import config, types
from numba.core.cgutils import raw_memcpy
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from penstock.binlog.kernel import I64, shared


@intrinsic
def _memcpy(_typing: Any, out: Any, _to: Any, data: Any, _at: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, to, data, at, size = args
        into = make_array(signature.args[0])(context, builder, value=out).data
        source = make_array(signature.args[2])(context, builder, value=data).data
        raw_memcpy(builder, builder.gep(into, [to]), builder.gep(source, [at]), size, 1)
        return context.get_dummy_value()

    return types.void(out, I64, data, I64, I64), generate


@shared
def _by_byte(out: Any, to: int, data: Any, at: int, size: int) -> None:
    for k in range(size):
        out[to + k] = data[at + k]


# copy_bytes(out, to, data, at, size); byte by byte where the bounds check must see every read and write
copy_bytes: Any = _by_byte if config.BOUNDSCHECK else _memcpy
