"""CRC32 as zlib computes it, inside kernels, so that an event is verified without leaving the loop.

Long stretches are folded by carry-less multiplication, 64 bytes a step, where the processor has it; the method is
Gopal's and others' (Intel, 2009). What is left, and everything on other processors, goes through sixteen tables.
"""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from penstock.binlog.kernel import I64, shared, u32

IS_FOLDED = bool(not config.BOUNDSCHECK and not config.CPU_NAME and binding.get_host_cpu_features().get("pclmul"))
_FOLD_FROM = 128  # bytes from which folding pays
_BY_FOUR = (0x154442BD4, 0x1C6E41596)  # x^(512+32), x^(512-32) modulo the polynomial, bits reversed
_BY_ONE = (0x1751997D0, 0x0CCAA009E)  # x^(128+32), x^(128-32)
_PAIR = ir.VectorType(ir.IntType(64), 2)


def _tables() -> "np.ndarray[Any, np.dtype[np.uint32]]":
    table = np.zeros((16, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        table[0, value] = crc
    for k in range(1, 16):
        before = table[k - 1]
        table[k] = before >> 8 ^ table[0, before & 0xFF]
    return table.reshape(-1)


TABLES = _tables()
_BYTE, _8, _16, _24 = np.uint32(0xFF), np.uint32(8), np.uint32(16), np.uint32(24)


@intrinsic
def _fold(_typing: Any, data: Any, _at: Any, _steps: Any) -> Any:
    """Sixteen bytes, as two numbers, that have the checksum (begun with 0) of `steps` × 64 bytes at `at`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, at, steps = args
        first = builder.gep(make_array(signature.args[0])(context, builder, value=array).data, [at])
        multiply = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_PAIR, [_PAIR, _PAIR, ir.IntType(8)]), "llvm.x86.pclmulqdq"
        )

        def sixteen(offset: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(first, [offset]), _PAIR.as_pointer()), align=1)

        def folded(value: Any, factors: tuple[int, int], onto: Any) -> Any:
            pair = ir.Constant(_PAIR, list(factors))
            low = builder.call(multiply, [value, pair, ir.IntType(8)(0x00)])
            high = builder.call(multiply, [value, pair, ir.IntType(8)(0x11)])
            return builder.xor(builder.xor(low, high), onto)

        word = ir.IntType(64)
        lanes = [cgutils.alloca_once_value(builder, sixteen(word(16 * k))) for k in range(4)]
        start = ir.Constant(_PAIR, [0xFFFFFFFF, 0])
        builder.store(builder.xor(builder.load(lanes[0]), start), lanes[0])
        with cgutils.for_range_slice(builder, word(1), steps, word(1)) as (step, _):
            offset = builder.mul(step, word(64))
            for k, lane in enumerate(lanes):
                onto = sixteen(builder.add(offset, word(16 * k)))
                builder.store(folded(builder.load(lane), _BY_FOUR, onto), lane)
        value = builder.load(lanes[0])
        for lane in lanes[1:]:
            value = folded(value, _BY_ONE, builder.load(lane))
        halves = [builder.extract_element(value, ir.IntType(32)(k)) for k in range(2)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.int64, 2)(data, I64, I64), generate


@shared
def _no_fold(data: Any, at: int, steps: int) -> Any:  # noqa: ARG001 - stands in for the other
    return np.int64(0), np.int64(0)


_fold_bytes: Any = _fold if IS_FOLDED else _no_fold


@shared
def _four(tables: Any, first: int, word: Any) -> Any:
    """What four bytes do to the sum, with the table of the last of them at `first`."""
    return (
        tables[np.uint64(first + 768 + (word & _BYTE))]
        ^ tables[np.uint64(first + 512 + (word >> _8 & _BYTE))]
        ^ tables[np.uint64(first + 256 + (word >> _16 & _BYTE))]
        ^ tables[np.uint64(first + (word >> _24))]
    )


@shared
def _sixteen(tables: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (
        _four(tables, 3072, np.uint32(a))
        ^ _four(tables, 2048, np.uint32(b))
        ^ _four(tables, 1024, np.uint32(c))
        ^ _four(tables, 0, np.uint32(d))
    )


@shared
def crc32(data: Any, at: int, end: int, tables: Any) -> Any:
    crc = np.uint32(0xFFFFFFFF)
    if IS_FOLDED and end - at >= _FOLD_FROM:
        steps = (end - at) // 64
        low, high = _fold_bytes(data, at, steps)
        crc = _sixteen(tables, low & 0xFFFFFFFF, low >> 32 & 0xFFFFFFFF, high & 0xFFFFFFFF, high >> 32 & 0xFFFFFFFF)
        at += 64 * steps
    while at + 16 <= end:
        crc = _sixteen(tables, crc ^ np.uint32(u32(data, at)), u32(data, at + 4), u32(data, at + 8), u32(data, at + 12))
        at += 16
    while at < end:
        crc = tables[np.uint64((crc ^ np.uint32(data[np.uint64(at)])) & _BYTE)] ^ crc >> _8
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))
