"""What kernels do that numba has no words for, in LLVM's own. Imported only when a kernel is compiled."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

CHUNK = 32
_WORD = types.int64
# Of CRC32, bits reversed: x^(512+32), x^(512-32) and x^(128+32), x^(128-32) modulo the polynomial.
_BY_FOUR, _BY_ONE = (0x154442BD4, 0x1C6E41596), (0x1751997D0, 0x0CCAA009E)
_PAIR = ir.VectorType(ir.IntType(64), 2)
_NOT_ASCII = 0x8080808080808080


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the pointer to array[at]."""
    return builder.gep(make_array(kind)(context, builder, value=array).data, [at])


@intrinsic
def memcpy(_typing: Any, out: Any, _to: Any, data: Any, _at: Any, _size: Any) -> Any:
    """Copy `size` bytes from data[at] to out[to]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, to, data, at, size = args
        into = _address(context, builder, signature.args[0], out, to)
        cgutils.raw_memcpy(builder, into, _address(context, builder, signature.args[2], data, at), size, 1)
        return context.get_dummy_value()

    return types.void(out, _WORD, data, _WORD, _WORD), generate


@intrinsic
def copy_chunk(_typing: Any, out: Any, _to: Any, data: Any, _at: Any) -> Any:
    """Copy CHUNK bytes: a size known to the compiler becomes two instructions instead of a call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, to, data, at = args
        into = _address(context, builder, signature.args[0], out, to)
        source = _address(context, builder, signature.args[2], data, at)
        cgutils.raw_memcpy(builder, into, source, ir.IntType(64)(CHUNK), 1)
        return context.get_dummy_value()

    return types.void(out, _WORD, data, _WORD), generate


@intrinsic
def copy_eight(_typing: Any, out: Any, _to: Any, data: Any, _at: Any) -> Any:
    """Copy eight bytes, and return the high bits of those that are not ASCII: 0 when all are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, to, data, at = args
        word = context.get_value_type(_WORD)
        source = _address(context, builder, signature.args[2], data, at)
        value = builder.load(builder.bitcast(source, word.as_pointer()))
        into = _address(context, builder, signature.args[0], out, to)
        store = builder.store(value, builder.bitcast(into, word.as_pointer()))
        value.align = store.align = 1
        return builder.and_(value, context.get_constant(types.uint64, _NOT_ASCII))

    return _WORD(out, _WORD, data, _WORD), generate


def _view(context: Any, builder: Any, kind: Any, address: Any, count: Any) -> Any:
    """Make an array of `kind` over memory that somebody else owns."""
    item = context.get_data_type(kind.dtype)
    width = context.get_constant(types.intp, context.get_abi_sizeof(item))
    made = make_array(kind)(context, builder)
    pointer = builder.inttoptr(address, item.as_pointer())
    populate_array(made, data=pointer, shape=[count], strides=[width], itemsize=width, meminfo=None)
    return made._getvalue()  # noqa: SLF001 - numba's own way


@intrinsic
def bytes_at(_typing: Any, _address: Any, _count: Any) -> Any:
    """Return the read-only array of `count` bytes that begins at a memory address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _view(context, builder, signature.return_type, *args)

    return types.Array(types.uint8, 1, "C", readonly=True)(_WORD, _WORD), generate


@intrinsic
def words_at(_typing: Any, _address: Any, _count: Any) -> Any:
    """Return the read-only array of `count` 64-bit integers that begins at a memory address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _view(context, builder, signature.return_type, *args)

    return types.Array(types.int64, 1, "C", readonly=True)(_WORD, _WORD), generate


@intrinsic
def fold(_typing: Any, data: Any, _at: Any, _steps: Any) -> Any:
    """Return sixteen bytes, as two numbers, that have the same CRC32, begun with 0, as the `steps` × 64 bytes at `at`.

    It folds by carry-less multiplication, after Gopal and others (Intel, 2009).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, at, steps = args
        first = _address(context, builder, signature.args[0], array, at)
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

    return types.UniTuple(_WORD, 2)(data, _WORD, _WORD), generate
