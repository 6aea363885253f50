"""Kernels that write many values as text side by side: `out` holds them, value i is out[bounds[i]:bounds[i + 1]].

They read Arrow's own buffers. Whoever calls them has made `out` large enough: each says how large that is.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import BYTES, I64, I64S, I64S_2D, I64S_2D_IN, I64S_IN, NONE, U8S, kernel, shared
from penstock.binlog.values.utf8 import sequence_size

LONGEST_ESCAPE = 6  # \u001f
LONGEST_DECIMAL = 80  # 65 digits, a sign, a point, and room
_BILLION = np.int64(1_000_000_000)


@shared
def _put(text: Any, out: Any, place: Any) -> Any:
    copy_bytes(out, place, text, 0, text.size)
    return place + text.size


@kernel(I64(BYTES, I64S_IN, BYTES))
def escaped_size(data: Any, bounds: Any, lengths: Any) -> Any:
    """Bytes of all values when byte b takes lengths[b]."""
    size = np.int64(0)
    for at in range(bounds[0], bounds[bounds.size - 1]):
        size += np.int64(lengths[np.uint64(data[np.uint64(at)])])
    return size


@kernel(NONE(BYTES, I64S_IN, BYTES, BYTES, I64S, U8S))
def escape(data: Any, bounds: Any, lengths: Any, texts: Any, out_bounds: Any, out: Any) -> None:
    """Byte b as the lengths[b] bytes at texts[b * LONGEST_ESCAPE]; `out` has `escaped_size` bytes."""
    place = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            # What needs no escape is copied in one go.
            first = at
            while at < end and lengths[np.uint64(data[np.uint64(at)])] == 1:
                at += 1
            copy_bytes(out, place, data, first, at - first)
            place += at - first
            if at < end:
                byte = np.int64(data[np.uint64(at)])
                for k in range(np.int64(lengths[np.uint64(byte)])):
                    out[place + k] = texts[byte * LONGEST_ESCAPE + k]
                place += np.int64(lengths[np.uint64(byte)])
                at += 1
        out_bounds[i + 1] = place


@kernel(NONE(BYTES, I64S_IN, U8S))
def mark_printable(data: Any, bounds: Any, marks: Any) -> None:
    """1 for each value that is UTF-8 without control characters, but for tabs and the ends of lines; else 0."""
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
    """Two digits a byte."""
    digits = b"0123456789ABCDEF"
    place = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        for at in range(bounds[i], bounds[i + 1]):
            byte = data[np.uint64(at)]
            out[place] = digits[byte >> 4]
            out[place + 1] = digits[byte & 15]
            place += 2
        out_bounds[i + 1] = place


@kernel(NONE(BYTES, I64S_IN, I64S, U8S))
def write_base64(data: Any, bounds: Any, out_bounds: Any, out: Any) -> None:
    """With padding: four characters for each three bytes that a value has begun."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    place = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        while at < end:
            count = min(end - at, 3)
            group = np.int64(0)
            for k in range(3):
                group = group << 8 | (np.int64(data[np.uint64(at + k)]) if k < count else 0)
            for k in range(4):
                out[place + k] = letters[group >> 18 - 6 * k & 63] if k <= count else 61
            place += 4
            at += 3
        out_bounds[i + 1] = place


@kernel(NONE(I64S_IN, I64, I64S, U8S))
def write_bits(values: Any, width: int, out_bounds: Any, out: Any) -> None:
    """`width` binary digits each."""
    place = np.int64(0)
    out_bounds[0] = 0
    for i in range(values.size):
        for k in range(width):
            out[place + k] = 48 + (values[i] >> (width - 1 - k) & 1)
        place += width
        out_bounds[i + 1] = place


@kernel(I64(I64S_2D_IN, I64, I64S_2D, I64S, U8S))
def write_decimal(words: Any, scale: int, scratch: Any, out_bounds: Any, out: Any) -> Any:  # noqa: C901, PLR0912 - one loop
    """All digits of the fraction, never an exponent. `words` has one line per number, lowest word first, two's
    complement; `scratch` two lines of LONGEST_DECIMAL cells; `out` has LONGEST_DECIMAL bytes per number."""
    place = np.int64(0)
    out_bounds[0] = 0
    limbs, digits = scratch[0, : 2 * words.shape[1]], scratch[1]  # 32 bits each; lowest first
    for i in range(words.shape[0]):
        is_negative = words[i, words.shape[1] - 1] < 0
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
            out[place] = 45
            place += 1
        for k in range(count - 1, -1, -1):
            out[place] = digits[k]
            place += 1
            if k == scale and k:
                out[place] = 46
                place += 1
        out_bounds[i + 1] = place
    return place


@kernel(NONE(I64S_IN, BYTES, I64, I64, I64S_IN, I64S))
def add_sizes(bounds: Any, valid: Any, around: int, null: int, rows: Any, sizes: Any) -> None:
    """Line i gets text rows[i] with `around` bytes around it; a null takes `null` bytes. `valid` is empty when there is
    none."""
    for i in range(rows.size):
        row = np.uint64(rows[i])
        if valid.size and not valid[row]:
            sizes[i] += null
        else:
            sizes[i] += bounds[row + np.uint64(1)] - bounds[row] + around


@kernel(NONE(BYTES, I64S_IN, BYTES, BYTES, BYTES, BYTES, I64S_IN, I64S, U8S))
def put_texts(
    data: Any, bounds: Any, valid: Any, before: Any, after: Any, null: Any, rows: Any, cursor: Any, out: Any
) -> None:
    """Append to each line, at its cursor, what `add_sizes` counted."""
    for i in range(rows.size):
        row, at = np.uint64(rows[i]), cursor[i]
        if valid.size and not valid[row]:
            at = _put(null, out, at)
        else:
            at = _put(before, out, at)
            size = bounds[row + np.uint64(1)] - bounds[row]
            copy_bytes(out, at, data, bounds[row], size)
            at = _put(after, out, at + size)
        cursor[i] = at


@kernel(NONE(BYTES, I64S, U8S))
def put_constant(text: Any, cursor: Any, out: Any) -> None:
    for i in range(cursor.size):
        cursor[i] = _put(text, out, cursor[i])
