"""Kernels that turn values of the binary protocol into the form in which the log has them.

    date, datetime   length 1 (0, 4, 7, 11) | year 2 | month 1 | day 1 | hour 1 | minute 1 | second 1 | microseconds 4
    time             length 1 (0, 8, 12) | is negative 1 | days 4 | hour 1 | minute 1 | second 1 | microseconds 4
    year             2 bytes
    decimal          text, such as -12.50

What the log's kernels then make of them is what they make of the same value in the log.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import BYTES, I32S_IN, I64, I64S_2D, NONE, U8S, kernel, shared, u16, u32

DATE_WIDTH, YEAR_WIDTH = 3, 1
_MINUS, _POINT, _ZERO = 45, 46, 48
_GROUP, _NARROW = 1_000_000_000, 18  # digits that are put in `out` at once; digits that fit in one word


@shared
def _write_big(value: Any, width: Any, out: Any, to: Any) -> None:
    """Write a big-endian number of `width` bytes."""
    for k in range(width):
        out[to + k] = value >> 8 * (width - 1 - k) & 255


@shared
def _scale_fraction(micros: Any, width: Any) -> Any:
    """Return microseconds in the unit of a fraction of `width` bytes."""
    if width == 1:
        return micros // 10_000
    if width == 2:
        return micros // 100
    return micros


@kernel(NONE(BYTES, I32S_IN, U8S))
def pack_dates(data: Any, offsets: Any, out: Any) -> None:
    """Write dates as the log has a DATE, three bytes each."""
    for row in range(offsets.size):
        at, to = np.int64(offsets[row]), 3 * row
        value = np.int64(0)
        if at >= 0 and data[at] >= 4:
            value = u16(data, at + 1) << 9 | np.int64(data[at + 3]) << 5 | np.int64(data[at + 4])
        out[to], out[to + 1], out[to + 2] = value & 255, value >> 8 & 255, value >> 16 & 255


@kernel(NONE(BYTES, I32S_IN, I64, U8S))
def pack_datetimes(data: Any, offsets: Any, width: int, out: Any) -> None:
    """Write datetimes as the log has a DATETIME with a fraction of `width` bytes."""
    for row in range(offsets.size):
        at, to = np.int64(offsets[row]), (5 + width) * row
        value, micros = np.int64(0), np.int64(0)
        if at >= 0 and data[at] >= 4:
            value = (u16(data, at + 1) * 13 + np.int64(data[at + 3])) << 22 | np.int64(data[at + 4]) << 17
            if data[at] >= 7:
                value |= np.int64(data[at + 5]) << 12 | np.int64(data[at + 6]) << 6 | np.int64(data[at + 7])
            if data[at] >= 11:
                micros = u32(data, at + 8)
        _write_big(value + 0x8000000000, 5, out, to)
        _write_big(_scale_fraction(micros, width), width, out, to + 5)


@kernel(NONE(BYTES, I32S_IN, I64, U8S))
def pack_times(data: Any, offsets: Any, width: int, out: Any) -> None:
    """Write times as the log has a TIME with a fraction of `width` bytes."""
    for row in range(offsets.size):
        at, to = np.int64(offsets[row]), (3 + width) * row
        packed = np.int64(0)
        if at >= 0 and data[at] >= 8:
            hours = u32(data, at + 2) * 24 + np.int64(data[at + 6])
            clock = hours << 12 | np.int64(data[at + 7]) << 6 | np.int64(data[at + 8])
            micros = u32(data, at + 9) if data[at] >= 12 else np.int64(0)
            packed = clock << 8 * width | _scale_fraction(micros, width)
            if data[at + 1]:
                packed = -packed
        _write_big(packed + (np.int64(0x800000) << 8 * width), 3 + width, out, to)


@kernel(NONE(BYTES, I32S_IN, U8S))
def pack_years(data: Any, offsets: Any, out: Any) -> None:
    """Write years as the log has a YEAR, one byte each."""
    for row in range(offsets.size):
        at = np.int64(offsets[row])
        year = u16(data, at) if at >= 0 else np.int64(0)
        out[row] = year - 1900 if year else 0


@kernel(I64(BYTES, I32S_IN, I32S_IN, I64, I64, I64S_2D))
def parse_decimals(  # noqa: C901, PLR0912 - one loop
    data: Any, offsets: Any, lengths: Any, precision: int, scale: int, out: Any
) -> Any:
    """Write the numbers of decimal texts, times 10^scale, as Arrow's integers of 64-bit words, the lowest first.

    Return -1, or the first row that is no number of at most `precision` digits, `scale` of them behind the point.
    """
    words = out.shape[1]
    for row in range(offsets.size):
        for word in range(words):
            out[row, word] = 0
        at = np.int64(offsets[row])
        if at < 0:
            continue
        end = at + np.int64(lengths[row])
        is_negative = at < end and data[at] == _MINUS
        if is_negative:
            at += 1
        if at >= end or data[end - 1] == _POINT:
            return row
        digits, fraction = np.int64(0), np.int64(-1)  # digits behind the point: -1 before it
        pending, factor = np.int64(0), np.int64(1)  # digits that are not in `out` yet, and 10^their number
        while at < end or fraction < scale:
            digit = np.int64(0)
            if at < end:
                digit = np.int64(data[at]) - _ZERO
                at += 1
                if digit == _POINT - _ZERO and fraction < 0:
                    fraction = np.int64(0)
                    continue
                if digit < 0 or digit > 9:
                    return row
            elif fraction < 0:
                fraction = np.int64(0)
                continue
            if fraction >= 0:
                fraction += 1
            if digits or digit:
                digits += 1
            if digits > precision or fraction > scale:
                return row
            pending = pending * 10 + digit
            factor *= 10
            if factor == _GROUP and precision > _NARROW:
                _multiply_add(out, row, words, factor, pending)
                pending, factor = np.int64(0), np.int64(1)
        if precision <= _NARROW:
            pending = -pending if is_negative else pending
            out[row, 0] = pending
            for word in range(1, words):
                out[row, word] = pending >> 63
            continue
        if factor > 1:
            _multiply_add(out, row, words, factor, pending)
        if is_negative:
            carry = np.int64(1)
            for word in range(words):
                low = (~out[row, word] & 0xFFFFFFFF) + carry
                high = (~out[row, word] >> 32 & 0xFFFFFFFF) + (low >> 32)
                out[row, word] = (low & 0xFFFFFFFF) | high << 32
                carry = high >> 32
    return -1


@shared
def _multiply_add(out: Any, row: Any, words: Any, factor: Any, addend: Any) -> None:
    """Multiply the integer of a row by a factor up to 10^9, and add a number below it."""
    carry = addend
    for word in range(words):
        low = (out[row, word] & 0xFFFFFFFF) * factor + carry
        high = (out[row, word] >> 32 & 0xFFFFFFFF) * factor + (low >> 32)
        out[row, word] = (low & 0xFFFFFFFF) | high << 32
        carry = high >> 32 & 0xFFFFFFFF
