"""Kernels that write many values as text side by side: `out` holds them, value i is out[bounds[i]:bounds[i + 1]].

They read Arrow's own buffers. Whoever calls them has made `out` large enough: each says how large that is.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import BYTES, I64, I64S, I64S_2D, I64S_2D_IN, I64S_IN, NONE, U8S, kernel, shared
from penstock.binlog.values.temporal import civil_date, write_clock, write_date
from penstock.binlog.values.utf8 import sequence_size

LONGEST_ESCAPE = 6  # \u001f
LONGEST_DECIMAL = 80  # 65 digits, a sign, a point, and room
LONGEST_INTEGER = 20  # 2^64 - 1, or -2^63
LONGEST_TIME = 28  # 2026-11-15T10:00:00.123456Z, and room
_BILLION = np.int64(1_000_000_000)
_PAIRS = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), np.uint8).copy()
_POWERS = np.array([10**exponent for exponent in range(20)], np.uint64)
_1, _2, _100 = np.uint64(1), np.uint64(2), np.uint64(100)


@shared
def _count_digits(value: Any) -> Any:
    """Return how many decimal digits an unsigned number has."""
    count = 1
    while count < 20 and value >= _POWERS[np.uint64(count)]:
        count += 1
    return count


@shared
def _write_digits(value: Any, count: Any, out: Any, at: Any) -> None:
    """Write the last `count` decimal digits of an unsigned number."""
    end = np.uint64(at + count)
    while count >= 2:
        pair = value % _100 * _2
        value //= _100
        end -= _2
        out[end] = _PAIRS[pair]
        out[end + _1] = _PAIRS[pair + _1]
        count -= 2
    if count:
        out[end - _1] = np.uint8(48) + np.uint8(value % np.uint64(10))


@kernel(I64(I64S_IN, I64, I64S, U8S))
def write_integers(values: Any, is_unsigned: int, out_bounds: Any, out: Any) -> Any:
    """Write each integer in decimal; `out` has LONGEST_INTEGER bytes per value. Return how many bytes were used."""
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(values.size):
        value = values[i]
        size = np.uint64(value)
        if value < 0 and not is_unsigned:
            out[written] = 45
            written += 1
            size = np.uint64(0) - size
        count = _count_digits(size)
        _write_digits(size, count, out, written)
        written += count
        out_bounds[i + 1] = written
    return written


@kernel(I64(I64S_IN, I64, I64, I64S, U8S))
def write_times(moments_us: Any, digits: int, is_iso: int, out_bounds: Any, out: Any) -> Any:
    """Write microseconds since 1970 as a date and a time with `digits` of a fraction, in ISO 8601 or with a blank
    between; `out` has LONGEST_MOMENT bytes per value. Return how many were used.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    known = np.int64(-1)  # most moments of a block lie on one day
    year, month, day = np.int64(0), np.int64(0), np.int64(0)
    for i in range(moments_us.size):
        seconds = moments_us[i] // 1_000_000
        if seconds // 86400 != known:
            known = seconds // 86400
            year, month, day = civil_date(known)
        written = write_date(year, month, day, out, written)
        out[written] = 84 if is_iso else 32
        written = write_clock(seconds % 86400, moments_us[i] % 1_000_000, digits, out, written + 1)
        if is_iso:
            out[written] = 90
            written += 1
        out_bounds[i + 1] = written
    return written


@kernel(I64(BYTES, I64S_IN, BYTES))
def escaped_size(data: Any, bounds: Any, lengths: Any) -> Any:
    """Return the bytes of all values when byte b takes lengths[b]."""
    size = np.int64(0)
    for at in range(bounds[0], bounds[bounds.size - 1]):
        size += np.int64(lengths[np.uint64(data[np.uint64(at)])])
    return size


@kernel(NONE(BYTES, I64S_IN, BYTES, BYTES, I64S, U8S))
def write_escaped(data: Any, bounds: Any, lengths: Any, texts: Any, out_bounds: Any, out: Any) -> None:
    """Write each byte b of the values as the lengths[b] bytes at texts[b * LONGEST_ESCAPE]; `out` has `escaped_size`
    bytes.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            # What needs no escape is copied in one go.
            first = at
            while at < end and lengths[np.uint64(data[np.uint64(at)])] == 1:
                at += 1
            copy_bytes(out, written, data, first, at - first)
            written += at - first
            if at < end:
                byte = np.int64(data[np.uint64(at)])
                for k in range(np.int64(lengths[np.uint64(byte)])):
                    out[written + k] = texts[byte * LONGEST_ESCAPE + k]
                written += np.int64(lengths[np.uint64(byte)])
                at += 1
        out_bounds[i + 1] = written


@kernel(NONE(BYTES, I64S_IN, U8S))
def mark_printable(data: Any, bounds: Any, marks: Any) -> None:
    """Write to marks[i] 1 if value i is UTF-8 without control characters other than tabs and line ends, else 0."""
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            byte = np.int64(data[np.uint64(at)])
            if byte >= 0x80:
                size = sequence_size(data, at, end)
                if size < 1 or (byte == 0xC2 and data[np.uint64(at + 1)] < 0xA0):  # U+0080 … U+009F are controls too
                    break
                at += size
            elif (byte >= 0x20 and byte != 0x7F) or byte == 9 or byte == 10 or byte == 13:  # noqa: PLR1714 - numba
                at += 1
            else:
                break
        marks[i] = at >= end


@kernel(NONE(BYTES, I64S_IN, I64S, U8S))
def write_hex(data: Any, bounds: Any, out_bounds: Any, out: Any) -> None:
    """Write each value as two hexadecimal digits per byte."""
    digits = b"0123456789ABCDEF"
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        for at in range(bounds[i], bounds[i + 1]):
            byte = data[np.uint64(at)]
            out[written] = digits[byte >> 4]
            out[written + 1] = digits[byte & 15]
            written += 2
        out_bounds[i + 1] = written


@kernel(NONE(BYTES, I64S_IN, I64S, U8S))
def write_base64(data: Any, bounds: Any, out_bounds: Any, out: Any) -> None:
    """Write each value as base64 with padding: four characters for each three bytes that it has begun."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            count = min(end - at, 3)
            group = np.int64(0)
            for k in range(3):
                group = group << 8 | (np.int64(data[np.uint64(at + k)]) if k < count else 0)
            for k in range(4):
                out[written + k] = letters[group >> 18 - 6 * k & 63] if k <= count else 61
            written += 4
            at += 3
        out_bounds[i + 1] = written


@kernel(NONE(I64S_IN, I64, I64S, U8S))
def write_bits(values: Any, width: int, out_bounds: Any, out: Any) -> None:
    """Write each value as `width` binary digits."""
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(values.size):
        for k in range(width):
            out[written + k] = 48 + (values[i] >> (width - 1 - k) & 1)
        written += width
        out_bounds[i + 1] = written


@shared
def _write_word_decimal(value: Any, scale: Any, out: Any, written: Any) -> Any:
    """Write a signed number with the last `scale` digits after a point. Return where it ends."""
    size = np.uint64(value)
    if value < 0:
        out[written] = 45
        written += 1
        size = np.uint64(0) - size
    power = _POWERS[np.uint64(scale)]
    count = max(_count_digits(size) - scale, 1)
    _write_digits(size // power, count, out, written)
    written += count
    if scale:
        out[written] = 46
        _write_digits(size % power, scale, out, written + 1)
        written += scale + 1
    return written


@kernel(I64(I64S_2D_IN, I64, I64S_2D, I64S, U8S))
def write_decimals(words: Any, scale: int, scratch: Any, out_bounds: Any, out: Any) -> Any:  # noqa: C901, PLR0912 - one loop
    """Write each decimal with all digits of its fraction, never with an exponent. Return how many bytes were used.

    `words` has one line per number, lowest word first, in two's complement; `scratch` two lines of LONGEST_DECIMAL
    cells; `out` has LONGEST_DECIMAL bytes per number.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    limbs, digits = scratch[0, : 2 * words.shape[1]], scratch[1]  # 32 bits each; lowest first
    for i in range(words.shape[0]):
        is_negative = words[i, words.shape[1] - 1] < 0
        if words.shape[1] == 2 and words[i, 1] == words[i, 0] >> 63 and scale < 20:
            written = _write_word_decimal(words[i, 0], scale, out, written)  # most amounts fit one word
            out_bounds[i + 1] = written
            continue
        carry = np.int64(1)
        for w in range(words.shape[1]):
            for half in range(2):
                limb = words[i, w] >> 32 * half & 0xFFFFFFFF
                if is_negative:
                    carry += ~limb & 0xFFFFFFFF
                    limb = carry & 0xFFFFFFFF
                    carry >>= 32
                limbs[2 * w + half] = limb
        top = limbs.size - 1
        count = 0
        while top >= 0 and count <= 63:
            if limbs[top] == 0:
                top -= 1
                continue
            rest = np.int64(0)
            for k in range(top, -1, -1):
                value = rest << 32 | limbs[k]
                limbs[k] = value // _BILLION
                rest = value % _BILLION
            for _ in range(9):
                digits[count] = 48 + rest % 10
                rest //= 10
                count += 1
        while count <= scale:
            digits[count] = 48
            count += 1
        while count > scale + 1 and digits[count - 1] == 48:
            count -= 1
        if is_negative:
            out[written] = 45
            written += 1
        for k in range(count - 1, -1, -1):
            out[written] = digits[k]
            written += 1
            if k == scale and k:
                out[written] = 46
                written += 1
        out_bounds[i + 1] = written
    return written
