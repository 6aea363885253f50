"""Kernels for numbers: from field offsets to Arrow value buffers.

Every kernel takes the buffer and the offsets of one column (a negative one is a value that is not there: the cell is
zero and the validity bitmap says so) and fills `out`. The locate pass has checked that all fields lie inside the buffer
and have the width their type asks for.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.kernel import (
    BYTES,
    I8S,
    I16S,
    I32S,
    I32S_IN,
    I64,
    I64S,
    I64S_2D,
    NONE,
    U8S,
    kernel,
    read_big_endian,
    read_little_endian,
    shared,
    u16,
    u32,
)


@kernel(NONE(I32S_IN, U8S))
def pack_validity(offsets: Any, bits: Any) -> None:
    """Write Arrow's validity bitmap: a bit is set where the offset is not negative."""
    for k in range(bits.size):
        byte = 0
        for b in range(min(8, offsets.size - 8 * k)):
            if offsets[8 * k + b] >= 0:
                byte |= 1 << b
        bits[k] = byte


def _decode_integer(data: Any, offsets: Any, width: int, signed: int, out: Any) -> None:
    """Decode integers of `width` bytes; the usual widths have loops of their own."""
    if width == 1:
        for i in range(out.size):
            at = offsets[i]
            out[i] = np.int64(data[np.uint64(at)]) << 56 >> 56 if at >= 0 else np.int64(0)
    elif width == 2:
        for i in range(out.size):
            at = offsets[i]
            out[i] = u16(data, at) << 48 >> 48 if at >= 0 else np.int64(0)
    elif width == 4:
        for i in range(out.size):
            at = offsets[i]
            out[i] = u32(data, at) << 32 >> 32 if at >= 0 else np.int64(0)
    elif width == 8:
        for i in range(out.size):
            at = offsets[i]
            out[i] = u32(data, at) | u32(data, np.int64(at) + 4) << 32 if at >= 0 else np.int64(0)
    else:
        shift = 64 - 8 * width
        for i in range(out.size):
            at = offsets[i]
            value = read_little_endian(data, np.int64(at), width) if at >= 0 else np.int64(0)
            out[i] = value << shift >> shift if signed else value


_INTEGERS = {
    np.dtype(out.dtype): kernel(NONE(BYTES, I32S_IN, I64, I64, out))(_decode_integer) for out in (I8S, I16S, I32S, I64S)
}


def decode_integer(data: Any, offsets: Any, width: int, signed: int, out: Any) -> None:
    """Write little-endian integers of `width` bytes at these offsets into `out`."""
    _INTEGERS[out.dtype](data, offsets, width, signed, out)


@kernel(NONE(BYTES, I32S_IN, I64, I64S))
def decode_bits(data: Any, offsets: Any, width: int, out: Any) -> None:
    """Write the values of BIT(n), big-endian numbers of up to eight bytes, into `out`. A value of eight bytes may
    become negative."""
    for i in range(out.size):
        at = offsets[i]
        out[i] = read_big_endian(data, np.int64(at), width) if at >= 0 else np.int64(0)


@shared
def _digit_bytes(digits: int) -> int:
    return (digits + 1) // 2 if digits < 7 else 4


@shared
def _power_of_ten(digits: int) -> Any:
    value = np.int64(1)
    for _ in range(digits):
        value *= 10
    return value


@shared
def _digit_groups(precision: int, scale: int, sizes: Any, factors: Any) -> Any:
    """Write the bytes and 10^digits of each digit group of a decimal; return the number of groups."""
    whole, part, count = precision - scale, scale, 0
    while whole + part > 0:
        if whole > 0:
            digits = whole % 9 or 9
            whole -= digits
        else:
            digits = min(9, part)
            part -= digits
        sizes[count], factors[count] = _digit_bytes(digits), _power_of_ten(digits)
        count += 1
    return count


@kernel(I64(BYTES, I32S_IN, I64, I64, I64S_2D, I64S_2D))
def _decode_decimal(data: Any, offsets: Any, precision: int, scale: int, scratch: Any, out: Any) -> Any:
    """Decode decimals. Digits are in groups of nine (four bytes), with a shorter group at each outer end; the sign bit
    is inverted, and a negative number has all its bytes inverted. `out` has one line of 64-bit words per value, lowest
    first.

    Return -1, or the first row with a group that holds more than its digits, which no server writes.
    """
    words = out.shape[1]
    sizes, factors, limbs = scratch[0], scratch[1], scratch[2, : 2 * words]
    groups = _digit_groups(precision, scale, sizes, factors)
    for i in range(out.shape[0]):
        at = np.int64(offsets[i])
        if at < 0:
            for w in range(words):
                out[i, w] = 0
            continue
        flip = np.int64(0) if data[np.uint64(at)] & 0x80 else np.int64(-1)
        sign = np.int64(0x80) << 8 * (sizes[0] - 1)
        if precision <= 18:
            value = np.int64(0)
            for g in range(groups):
                size = sizes[g]
                mask = (np.int64(1) << 8 * size) - 1
                part = (read_big_endian(data, at, size) ^ flip ^ sign) & mask
                if part >= factors[g]:
                    return i
                value = value * factors[g] + part
                at += size
                sign = np.int64(0)
            value = (value ^ flip) - flip
            out[i, 0] = value
            for w in range(1, words):
                out[i, w] = value >> 63
            continue
        for k in range(limbs.size):  # 32 bits each: a limb times 10^9 fits in 64 bits
            limbs[k] = 0
        for g in range(groups):
            mask = (np.int64(1) << 8 * sizes[g]) - 1
            carry = (read_big_endian(data, at, sizes[g]) ^ flip ^ sign) & mask
            if carry >= factors[g]:
                return i
            at += sizes[g]
            sign = np.int64(0)
            for k in range(limbs.size):
                carry += limbs[k] * factors[g]
                limbs[k] = carry & 0xFFFFFFFF
                carry >>= 32
        if flip:
            carry = np.int64(1)
            for k in range(limbs.size):
                carry += ~limbs[k] & 0xFFFFFFFF
                limbs[k] = carry & 0xFFFFFFFF
                carry >>= 32
        for w in range(words):
            out[i, w] = limbs[2 * w] | limbs[2 * w + 1] << 32
    return -1


def decode_decimal(
    data: NDArray[np.uint8], offsets: NDArray[np.int32], precision: int, scale: int, out: NDArray[np.int64]
) -> int:
    """Write the DECIMAL values at these offsets into `out`, as Arrow's 128-bit or 256-bit integers."""
    return _decode_decimal(data, offsets, precision, scale, np.empty((3, 16), np.int64), out)
