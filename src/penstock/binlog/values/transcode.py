"""Texts of other charsets → UTF-8. What is cut, wrong or without a character in Unicode becomes U+FFFD.

Each kernel takes the values of one column (a negative offset or length is null), fills `bounds` and `out`, which has
room for three bytes per byte and three more, and gives how many bytes were used, or -1 when they pass 2 GiB. Bytes
outside of a value are not looked at, whatever a sequence at its end promises.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_IN,
    I64,
    IS_CHECKED,
    U8S,
    U16S_IN,
    U32S_IN,
    inlined,
    kernel,
    lowered,
    shared,
)
from penstock.binlog.values.strings import MAX_BYTES

UNKNOWN = 0xFFFD
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)
_FIRST_BEYOND = 189_000  # number of the sequence that is U+10000 in gb18030


@shared
def _eight_by_byte(out: Any, to: int, data: Any, at: int) -> Any:
    high = np.int64(0)
    for k in range(8):
        out[to + k] = data[at + k]
        high |= np.int64(data[at + k] & 0x80)
    return high


_copy_eight: Any = _eight_by_byte if IS_CHECKED else lowered("copy_eight")


@shared
def _utf8(code: Any) -> Any:
    """Return the UTF-8 of a code point, as a number: four bytes, lowest first, then how many of them count."""
    if code < 0x80:
        return np.int64(code | 1 << 32)
    last = (0x80 | code & 0x3F) << 8
    if code < 0x800:
        return np.int64(0xC0 | code >> 6 | last | 2 << 32)
    middle = (0x80 | code >> 6 & 0x3F) << 8
    if code < 0x10000:
        return np.int64(0xE0 | code >> 12 | middle | last << 8 | 3 << 32)
    return np.int64(0xF0 | code >> 18 | (0x80 | code >> 12 & 0x3F) << 8 | middle << 8 | last << 16 | 4 << 32)


@inlined
def _write(code: Any, out: Any, to: Any) -> Any:
    """Write four bytes, of which the first ones count; return where the next character belongs."""
    packed, start = _utf8(code), np.uint64(to)
    out[start] = packed & 0xFF
    out[start + _1] = packed >> 8 & 0xFF
    out[start + _2] = packed >> 16 & 0xFF
    out[start + _3] = packed >> 24 & 0xFF
    return to + (packed >> 32)


@kernel(I64(BYTES, I32S_IN, I32S_IN, U32S_IN, I64, I32S, U8S))
def decode_single(data: Any, offsets: Any, lengths: Any, table: Any, has_ascii: int, bounds: Any, out: Any) -> Any:
    """Write texts of a charset with one byte per character as UTF-8. `table` has the UTF-8 of each byte: three bytes
    from the lowest on, then how many count. With `has_ascii`, bytes below 0x80 stand for themselves."""
    to = np.int64(0)
    bounds[0] = 0
    for i in range(lengths.size):
        at = np.int64(offsets[i])
        end = at + lengths[i] if at >= 0 else at
        while at < end:
            if has_ascii:
                first = at
                while end - at >= 8 and _copy_eight(out, to, data, at) == 0:
                    to += 8
                    at += 8
                # The rest, with some of the bytes before it, which stay what they are.
                again = 8 - (end - at)
                if first < at < end and again > 0 and _copy_eight(out, to - again, data, at - again) == 0:
                    to += end - at
                    at = end
            for k in range(at, min(at + 8, end)):
                entry = np.int64(table[data[np.uint64(k)]])
                start = np.uint64(to)
                out[start] = entry & 0xFF
                out[start + _1] = entry >> 8 & 0xFF
                out[start + _2] = entry >> 16 & 0xFF
                to += entry >> 24
            at = min(at + 8, end)
        if to > MAX_BYTES:
            return -1
        bounds[i + 1] = to
    return to


@shared
def _number(first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Return the number of a four-byte sequence of gb18030; -1 when it is none."""
    a, b, c, d = first - 0x81, second - 0x30, third - 0x81, fourth - 0x30
    if a < 0 or a > 125 or b < 0 or b > 9 or c < 0 or c > 125 or d < 0 or d > 9:
        return np.int64(-1)
    return np.int64(((a * 10 + b) * 126 + c) * 10 + d)


@kernel(I64(BYTES, I32S_IN, I32S_IN, U16S_IN, U16S_IN, U16S_IN, I32S, U8S))
def decode_sequences(
    data: Any, offsets: Any, lengths: Any, pairs: Any, triples: Any, fours: Any, bounds: Any, out: Any
) -> Any:
    """Write texts of a charset with one to four bytes per character as UTF-8; bytes below 0x80 stand for themselves.

    A table has 0 for what is no sequence. `pairs` has a line per first byte, and single bytes in line 0; `triples`,
    when not empty, the sequences after 0x8F; `fours`, when not empty, gb18030's in the order of their numbers.
    """
    to = np.int64(0)
    bounds[0] = 0
    for i in range(lengths.size):
        at = np.int64(offsets[i])
        end = at + lengths[i] if at >= 0 else at
        while at < end:
            byte = np.int64(data[np.uint64(at)])
            if byte < 0x80:
                if end - at >= 8 and _copy_eight(out, to, data, at) == 0:
                    to += 8
                    at += 8
                else:
                    out[np.uint64(to)] = byte
                    to += 1
                    at += 1
                continue
            left, code, size = end - at, np.int64(0), 2
            if left > 1:
                code = np.int64(pairs[np.uint64(byte << 8 | np.int64(data[np.uint64(at + 1)]))])
            if code == 0 and byte == 0x8F and left > 2 and triples.size:
                code, size = np.int64(triples[np.int64(data[at + 1]) << 8 | np.int64(data[at + 2])]), 3
            if code == 0 and left > 3 and fours.size:
                number = _number(byte, np.int64(data[at + 1]), np.int64(data[at + 2]), np.int64(data[at + 3]))
                if 0 <= number < fours.size:
                    code = np.int64(fours[number])
                elif _FIRST_BEYOND <= number < _FIRST_BEYOND + 0x100000:
                    code = number - _FIRST_BEYOND + 0x10000
                elif number >= 0:
                    code = np.int64(UNKNOWN)
                size = 4
            if code == 0:
                code, size = np.int64(pairs[np.uint64(byte)]), 1
            to = _write(code or UNKNOWN, out, to)
            at += size
        if to > MAX_BYTES:
            return -1
        bounds[i + 1] = to
    return to


@shared
def _unit(data: Any, at: Any, width: int, is_little: int) -> Any:
    k = np.uint64(at)
    first = np.int64(data[k]) << 8 | np.int64(data[k + _1])
    if width == 4:
        return first << 16 | np.int64(data[k + _2]) << 8 | np.int64(data[k + _3])
    return (first & 0xFF) << 8 | first >> 8 if is_little else first


@kernel(I64(BYTES, I32S_IN, I32S_IN, I64, I64, I64, I32S, U8S))
def decode_units(
    data: Any, offsets: Any, lengths: Any, width: int, is_little: int, has_pairs: int, bounds: Any, out: Any
) -> Any:
    """Write texts whose characters are numbers of `width` bytes as UTF-8; with `has_pairs`, two surrogates are one
    character."""
    to = np.int64(0)
    bounds[0] = 0
    for i in range(lengths.size):
        at = np.int64(offsets[i])
        end = at + lengths[i] if at >= 0 else at
        while at < end:
            code = np.int64(UNKNOWN)
            if end - at >= width:
                code = _unit(data, at, width, is_little)
            at += width
            if code >= 0xD800 and code < 0xE000:
                low = np.int64(0)
                if has_pairs and code < 0xDC00 and end - at >= width:
                    low = _unit(data, at, width, is_little)
                if low >= 0xDC00 and low < 0xE000:
                    code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
                    at += width
                else:
                    code = np.int64(UNKNOWN)
            to = _write(code if code < 0x110000 else UNKNOWN, out, to)
        if to > MAX_BYTES:
            return -1
        bounds[i + 1] = to
    return to
