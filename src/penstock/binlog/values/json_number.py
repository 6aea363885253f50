"""Numbers as the server prints them in JSON: integers, doubles in the fewest digits, exact decimals.

The writers put text at `to`, where ROOM bytes are free, and give the offset after it, or BROKEN (-1).

A double has the fewest digits that read back as the same double, and of those the nearest to it. Where `point` counts
the digits before its decimal point:

  from -14 to 15, or above with digits after it   123.25, 0.00012, and 100.0 (in 5.7: 100)
  else                                            1.5e100, 1e-16

The digits are found the way Raffaello Giulietti describes in "The Schubfach way to render doubles": scale the double
and the borders of what rounds to it by a power of ten, known to 128 bits, so that the interval holds one to ten
integers; then look whether it holds a multiple of ten, and if not, which of two integers is in it or nearer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.kernel import inlined, read_big_endian, shared

_MIN_POWER, _MAX_POWER = -292, 324
_0, _1, _2, _4, _10, _40, _100 = (np.uint64(n) for n in (0, 1, 2, 4, 10, 40, 100))
_32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_PAIRS = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8)
_POINT, _MINUS, _ZERO, _E = (np.uint8(ord(c)) for c in ".-0e")
MAX_DIGITS = 81  # of a decimal


def _powers_of_ten() -> NDArray[np.uint64]:
    """Return the upper and lower half of each power of ten, scaled to 128 bits and rounded up."""
    halves: list[tuple[int, int]] = []
    for power in range(_MIN_POWER, _MAX_POWER + 1):
        number = 10 ** abs(power)
        bits = number.bit_length()
        if power < 0:
            scaled = -(-(1 << 127 + bits) // number)
        else:
            scaled = number << 128 - bits if bits <= 128 else -(-number >> bits - 128)
        halves.append((scaled >> 64, scaled & (1 << 64) - 1))
    return np.array(halves, np.uint64)


_POWERS = _powers_of_ten()


@inlined
def _upper_half(a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the product of two 64-bit numbers."""
    low, left, right = (a & _LOW) * (b & _LOW), (a >> _32) * (b & _LOW), (a & _LOW) * (b >> _32)
    middle = (low >> _32) + (left & _LOW) + (right & _LOW)
    return (a >> _32) * (b >> _32) + (left >> _32) + (right >> _32) + (middle >> _32)


@shared
def _count_digits(value: Any) -> Any:
    """Return the number of decimal digits of a value, at least 1."""
    count, most = np.int64(1), _10
    while value >= most and count < 20:
        count += 1
        most *= _10
    return count


@shared
def write_digits(value: Any, digits: Any, out: Any, to: Any) -> Any:
    """Write an unsigned value with exactly `digits` digits to out[to]; return where they end."""
    at = to + digits
    while at > to + 1:
        at -= 2
        rest = value // _100
        pair = (value - rest * _100) * _2
        out[np.uint64(at)], out[np.uint64(at + 1)] = _PAIRS[pair], _PAIRS[pair + _1]
        value = rest
    if at > to:
        out[np.uint64(to)] = np.uint8(value % _10) + _ZERO
    return to + digits


@shared
def write_unsigned(value: Any, out: Any, to: Any) -> Any:
    """Write an unsigned number as digits to out[to]; return where they end."""
    return write_digits(value, _count_digits(value), out, to)


@shared
def write_signed(value: Any, out: Any, to: Any) -> Any:
    """Write a signed number as digits to out[to]; return where they end."""
    if value < 0:
        out[np.uint64(to)] = _MINUS
        return write_unsigned(_0 - np.uint64(value), out, to + 1)
    return write_unsigned(np.uint64(value), out, to)


@inlined
def _multiply_by_power(power: Any, factor: Any) -> Any:
    """Return the upper 64 of the 192 bits of the product of a power of ten (128 bits) and a factor (64 bits).

    The lowest bit is set when a bit below it is ("round to odd"), so that later comparisons still see that the product
    is no whole number. It scales a double and the borders of its rounding interval.
    """
    upper, lower = _POWERS[power, 0], _POWERS[power, 1]
    middle = upper * factor
    total = middle + _upper_half(lower, factor)
    high = _upper_half(upper, factor)
    if total < middle:
        high += _1
    return high | _1 if total > _1 else high


@shared
def _shortest(bits: Any) -> Any:
    """Return the fewest digits that stand for a positive, finite double, and their power of ten."""
    fraction, exponent = np.uint64(bits & 0xFFFFFFFFFFFFF), bits >> 52 & 2047
    if exponent:
        c, q = fraction | np.uint64(1 << 52), exponent - 1075
    else:
        c, q = fraction, np.int64(-1074)
    # Next to a power of two, the doubles below lie twice as close.
    is_edge = fraction == _0 and exponent > 1
    k = (q * 1262611 - (524031 if is_edge else 0)) >> 22  # floor(log10(2^q)), at the edge of 3/4 of that
    power = np.uint64(-k - _MIN_POWER)
    h = np.uint64(q + (-k * 1741647 >> 19) + 1)
    middle = _multiply_by_power(power, c * _4 << h)
    lower = _multiply_by_power(power, (c * _4 - (_1 if is_edge else _2)) << h)
    upper = _multiply_by_power(power, (c * _4 + _2) << h)
    if c & _1:  # the borders themselves round to the neighbours
        lower += _1
        upper -= _1
    s = middle // _4
    if s >= _10:
        ten = s // _10
        is_low_in, is_high_in = lower <= ten * _40, ten * _40 + _40 <= upper
        if is_low_in != is_high_in:
            return ten + _1 if is_high_in else ten, k + 1
    is_low_in, is_high_in = lower <= s * _4, s * _4 + _4 <= upper
    if is_low_in != is_high_in:
        return s + _1 if is_high_in else s, k
    half = s * _4 + _2
    return s + _1 if middle > half or (middle == half and s & _1) else s, k


@shared
def write_double(bits: Any, whole: Any, out: Any, to: Any) -> Any:
    """Write a double as the server prints it to out[to]; return where it ends, -1 when it is not finite. With `whole`,
    a double that is an integer keeps its `.0`."""
    if bits < 0:
        out[np.uint64(to)] = _MINUS
        to += 1
        bits &= 0x7FFFFFFFFFFFFFFF
    if bits >= 0x7FF << 52:
        return np.int64(-1)
    value, power = _0, np.int64(0)
    if bits:
        value, power = _shortest(bits)
        while True:
            rest = value // _10
            if rest * _10 != value:
                break
            value = rest
            power += 1
    digits = np.int64(_count_digits(value))
    point = digits + power
    if (point > 15 and digits <= point) or point < -14:
        end = write_digits(value, digits, out, to + 1)
        out[np.uint64(to)] = out[np.uint64(to + 1)]
        out[np.uint64(to + 1)] = _POINT
        to = end if digits > 1 else to + 1
        out[np.uint64(to)] = _E
        return write_signed(point - 1, out, to + 1)
    if point <= 0:
        for k in range(2 - point):
            out[np.uint64(to + k)] = _ZERO
        out[np.uint64(to + 1)] = _POINT
        return write_digits(value, digits, out, to + 2 - point)
    if point < digits:
        end = write_digits(value, digits, out, to + 1)
        for k in range(to, to + point):
            out[np.uint64(k)] = out[np.uint64(k + 1)]
        out[np.uint64(to + point)] = _POINT
        return end
    to = write_digits(value, digits, out, to)
    for _ in range(power):
        out[np.uint64(to)] = _ZERO
        to += 1
    if whole:
        out[np.uint64(to)], out[np.uint64(to + 1)] = _POINT, _ZERO
        to += 2
    return to


@shared
def _digit_bytes(digits: Any) -> Any:
    return (digits + 1) // 2 if digits < 7 else 4


@shared
def write_decimal(data: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    """Write an exact decimal of `size` bytes to out[to]; return where it ends, -1 when the bytes are not one. It has
    precision, scale, then digits in groups of nine (four bytes), a shorter one at each outer end; the sign bit is
    inverted, and a negative number has all its bytes inverted."""
    if size < 3:
        return np.int64(-1)
    precision, scale = np.int64(data[np.uint64(at)]), np.int64(data[np.uint64(at + 1)])
    whole = precision - scale
    if whole < 0 or precision == 0 or precision > MAX_DIGITS:
        return np.int64(-1)
    parts = _digit_bytes(whole % 9) + whole // 9 * 4 + scale // 9 * 4 + _digit_bytes(scale % 9)
    if size != 2 + parts:
        return np.int64(-1)
    at += 2
    flip, sign = np.int64(-1), np.int64(0x80)
    if data[np.uint64(at)] & 0x80:
        flip = np.int64(0)
    else:
        out[np.uint64(to)] = _MINUS
        to += 1
    first, left = to, whole
    has_point = False
    while left + scale > 0:
        if left == 0 and not has_point:
            has_point = True
            if to == first:
                out[np.uint64(to)] = _ZERO
                to += 1
            out[np.uint64(to)] = _POINT
            to += 1
        digits = (left % 9 or 9) if left else min(9, scale)
        width = _digit_bytes(digits)
        mask = (np.int64(1) << 8 * width) - 1
        value = np.uint64((read_big_endian(data, at, width) ^ flip ^ sign << 8 * (width - 1)) & mask)
        sign = 0
        at += width
        if _count_digits(value) > digits:
            return np.int64(-1)
        if left:
            left -= digits
            if to > first:
                to = write_digits(value, digits, out, to)
            elif value:
                to = write_unsigned(value, out, to)
        else:
            scale -= digits
            to = write_digits(value, digits, out, to)
    if to == first:
        out[np.uint64(to)] = _ZERO
        to += 1
    return to
