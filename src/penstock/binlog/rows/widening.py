"""Types that hold every value of two others, exactly: for tables that were altered."""

import pyarrow as pa

_MAX_DIGITS = 76
_WHOLE_FLOAT_BITS, _WHOLE_DOUBLE_BITS = 24, 53  # integers of up to this many bits are exact
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the narrowest Arrow type that holds every value of both types; None when no type does."""
    if left == right:
        return left
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return _integer(left, right)
    if pa.types.is_floating(left) and pa.types.is_floating(right):
        return pa.float64()
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        real, whole = (left, right) if pa.types.is_floating(left) else (right, left)
        return _real(real, whole) if pa.types.is_integer(whole) else None
    if all(pa.types.is_decimal(kind) or pa.types.is_integer(kind) for kind in (left, right)):
        return _decimal(left, right)
    return None


def widen(array: pa.Array, to: pa.DataType) -> pa.Array | None:
    """Return the values of an array in the type `to`; None when that type cannot hold every value of the array's
    type."""
    return array.cast(to) if common_type(array.type, to) == to else None


def _integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_signed_integer(left) == pa.types.is_signed_integer(right):
        return left if left.bit_width >= right.bit_width else right
    signed, unsigned = (left, right) if pa.types.is_signed_integer(left) else (right, left)
    bits = max(signed.bit_width, 2 * unsigned.bit_width)
    return _SIGNED[bits] if bits in _SIGNED else pa.decimal128(_DIGITS[64], 0)


def _real(real: pa.DataType, whole: pa.DataType) -> pa.DataType | None:
    bits = whole.bit_width - pa.types.is_signed_integer(whole)
    if real == pa.float32() and bits <= _WHOLE_FLOAT_BITS:
        return pa.float32()
    return pa.float64() if bits <= _WHOLE_DOUBLE_BITS else None


def _decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    shapes = [
        (kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (_DIGITS[kind.bit_width], 0)
        for kind in (left, right)
    ]
    whole, scale = (max(sizes) for sizes in zip(*shapes, strict=True))
    if whole + scale > _MAX_DIGITS:
        return None
    make = pa.decimal128 if whole + scale <= 38 else pa.decimal256
    return make(whole + scale, scale)
