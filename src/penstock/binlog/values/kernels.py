"""Second pass, second half: one typed loop per column family, from field offsets to Arrow value buffers.

Every kernel takes the buffer, the offsets and lengths of one column (a negative length is null: the output cell
is zero and the validity bitmap says so) and fills `out`. The locate pass has checked that all fields lie
inside the buffer and have the width their type asks for.
"""

from typing import Any

import numpy as np
from numba import types

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_IN,
    I64,
    I64S,
    I64S_2D,
    I64S_IN,
    NONE,
    U8S,
    big,
    kernel,
    little,
    shared,
)

_OUTS = [types.Array(t, 1, "C") for t in (types.int8, types.int16, types.int32, types.int64)]
INVALID = np.int64(-(1 << 63))  # out cell of a date that no calendar has: the caller makes it null


@kernel(I64(I64S_IN, U8S))
def pack_validity(lengths: Any, bits: Any) -> Any:
    """Arrow's validity bitmap; gives the number of nulls."""
    nulls = 0
    for i in range(lengths.size):
        if lengths[i] >= 0:
            bits[i >> 3] |= np.uint8(1 << (i & 7))
        else:
            nulls += 1
    return nulls


@kernel([NONE(BYTES, I64S_IN, I64S_IN, I64, I64, out) for out in _OUTS])
def decode_integer(data: Any, offsets: Any, lengths: Any, width: int, signed: int, out: Any) -> None:
    shift = 64 - 8 * width
    for i in range(out.size):
        value = np.int64(0)
        if lengths[i] >= 0:
            value = little(data, offsets[i], width)
            if signed:
                value = value << shift >> shift
        out[i] = value


@kernel(I64(I64S_IN, I32S))
def string_bounds(lengths: Any, bounds: Any) -> Any:
    """Arrow's offsets of a string column; gives the total, or -1 when it passes 2 GiB."""
    total = np.int64(0)
    bounds[0] = 0
    for i in range(lengths.size):
        if lengths[i] > 0:
            total += lengths[i]
            if total > 0x7FFFFFFF:
                return -1
        bounds[i + 1] = total
    return total


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I32S_IN, U8S))
def decode_bytes(data: Any, offsets: Any, lengths: Any, bounds: Any, out: Any) -> None:
    for i in range(lengths.size):
        if lengths[i] > 0:
            copy_bytes(out, np.int64(bounds[i]), data, offsets[i], lengths[i])


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
    """Bytes and 10^digits of each group of a decimal; gives the number of groups."""
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


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I64, I64, I64S_2D))
def decode_decimal(data: Any, offsets: Any, lengths: Any, precision: int, scale: int, out: Any) -> None:
    """Digits in groups of nine (four bytes), a shorter group at each outer end; the sign bit is inverted, and a
    negative number has all its bytes inverted. `out` has one line of 64-bit words per value, lowest first.
    """
    words = out.shape[1]
    sizes, factors = np.empty(16, np.int64), np.empty(16, np.int64)
    groups = _digit_groups(precision, scale, sizes, factors)
    limbs = np.zeros(2 * words, np.int64)  # 32 bits each: a limb times 10^9 fits in 64 bits
    for i in range(out.shape[0]):
        out[i, :] = 0
        if lengths[i] < 0:
            continue
        at = offsets[i]
        flip = np.int64(0) if data[at] & 0x80 else np.int64(-1)
        sign = np.int64(0x80) << 8 * (sizes[0] - 1)
        if precision <= 18:
            value = np.int64(0)
            for g in range(groups):
                mask = (np.int64(1) << 8 * sizes[g]) - 1
                value = value * factors[g] + ((big(data, at, sizes[g]) ^ flip ^ sign) & mask)
                at += sizes[g]
                sign = 0
            out[i, 0] = -value if flip else value
            for w in range(1, words):
                out[i, w] = out[i, 0] >> 63
            continue
        limbs[:] = 0
        for g in range(groups):
            mask = (np.int64(1) << 8 * sizes[g]) - 1
            carry = (big(data, at, sizes[g]) ^ flip ^ sign) & mask
            at += sizes[g]
            sign = 0
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


@shared
def _days(year: int, month: int, day: int) -> Any:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; INVALID when there is no such day."""
    if month < 1 or month > 12 or day < 1:
        return INVALID
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    longest = 31
    if month in (4, 6, 9, 11):
        longest = 30
    elif month == 2:
        longest = 29 if leap else 28
    if day > longest:
        return INVALID
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719468


@shared
def _micros(data: Any, at: int, width: int) -> Any:
    """The fraction of a second: two decimal digits a byte."""
    value = big(data, at, width)
    if width == 1:
        return value * 10_000
    if width == 2:
        return value * 100
    return value


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I64S))
def decode_date(data: Any, offsets: Any, lengths: Any, out: Any) -> None:
    """Three bytes little-endian: day 5 bits, month 4, year 15."""
    for i in range(out.size):
        out[i] = 0
        if lengths[i] >= 0:
            value = little(data, offsets[i], 3)
            out[i] = _days(value >> 9, value >> 5 & 15, value & 31)


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I64, I64S))
def decode_time(data: Any, offsets: Any, lengths: Any, fraction: int, out: Any) -> None:
    """Three bytes and the fraction, one big-endian number offset by half its range; hour 10 bits, minute, second 6."""
    for i in range(out.size):
        out[i] = 0
        if lengths[i] < 0:
            continue
        packed = big(data, offsets[i], 3 + fraction) - (np.int64(0x800000) << 8 * fraction)
        size = abs(packed)
        clock = size >> 8 * fraction
        part = size & ((np.int64(1) << 8 * fraction) - 1)
        if fraction == 1:
            part *= 10_000
        elif fraction == 2:
            part *= 100
        value = ((clock >> 12 & 1023) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)) * 1_000_000 + part
        out[i] = -value if packed < 0 else value


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I64, I64S))
def decode_datetime(data: Any, offsets: Any, lengths: Any, fraction: int, out: Any) -> None:
    """Five bytes big-endian: sign 1, year*13+month 17, day 5, hour 5, minute 6, second 6 bits; then the fraction."""
    for i in range(out.size):
        out[i] = 0
        if lengths[i] < 0:
            continue
        packed = big(data, offsets[i], 5) - 0x8000000000
        months = packed >> 22
        days = _days(months // 13, months % 13, packed >> 17 & 31)
        if days == INVALID:
            out[i] = INVALID
            continue
        seconds = days * 86400 + (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
        out[i] = seconds * 1_000_000 + _micros(data, offsets[i] + 5, fraction)


@kernel(NONE(BYTES, I64S_IN, I64S_IN, I64, I64S))
def decode_timestamp(data: Any, offsets: Any, lengths: Any, fraction: int, out: Any) -> None:
    """Four bytes big-endian, seconds since 1970, then the fraction; all zero is the zero date."""
    for i in range(out.size):
        out[i] = 0
        if lengths[i] < 0:
            continue
        seconds = big(data, offsets[i], 4)
        part = _micros(data, offsets[i] + 4, fraction)
        out[i] = INVALID if seconds == 0 and part == 0 else seconds * 1_000_000 + part
