"""Floats and doubles as Java writes them: 1.0, 1.5E10, 1.0E-5.

The digits are the fewest that read back as the same number. From a thousandth up to ten million they are written as
they are, with at least one behind the point; otherwise with one before the point, and an exponent.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.binlog.kernel import BYTES, I64, I64S, I64S_IN, U8S, inlined, kernel
from penstock.render import text

LONGEST = 32  # sign, 17 digits, point, E, sign, three digits, and room
_ZERO, _POINT, _MINUS, _PLUS, _E, _SMALL_E = 48, 46, 45, 43, 69, 101
_LEAST, _MOST = -3, 7  # powers of ten between which there is no exponent


def write_java_floats(array: pa.Array) -> pa.Array:
    """Write floats and doubles as Java does, such as 1.0, 1.5E10 and 1.0E-5; a null stays null."""
    plain = text.write_plain(array)
    data, bounds = text.get_bytes(plain)
    out, out_bounds = np.empty(LONGEST * len(array), np.uint8), np.empty(len(array) + 1, np.int64)
    used = write_java_float_texts(data, bounds, np.empty(LONGEST, np.uint8), out_bounds, out)
    return text.texts_from_bytes_like(plain, out_bounds, out[:used])


@inlined
def _is_digit(byte: Any) -> Any:
    """Tell whether a byte is a decimal digit."""
    return 48 <= byte <= 57


@kernel(I64(BYTES, I64S_IN, U8S, I64S, U8S))
def write_java_float_texts(data: Any, bounds: Any, digits: Any, out_bounds: Any, out: Any) -> Any:  # noqa: C901, PLR0912, PLR0915 - one number
    """Rewrite texts such as 1, 0.001, 1.5e+10, inf and nan as Java writes these numbers.

    Text i is data[bounds[i]:bounds[i + 1]] and goes to `out` at out_bounds[i]; `out` and `digits` have LONGEST bytes
    for each. Returns how many bytes were used.
    """
    written = np.int64(0)
    out_bounds[0] = 0
    for i in range(bounds.size - 1):
        at, end = bounds[i], bounds[i + 1]
        if at < end and data[np.uint64(at)] == _MINUS:
            out[written] = _MINUS
            written += 1
            at += 1
        if at < end and not _is_digit(data[np.uint64(at)]):
            word = b"Infinity" if data[np.uint64(at)] == 105 else b"NaN     "
            for k in range(8 if data[np.uint64(at)] == 105 else 3):
                out[written + k] = word[k]
            written += 8 if data[np.uint64(at)] == 105 else 3
            out_bounds[i + 1] = written
            continue
        # The digits without zeros at their ends, and the power of ten of the first.
        count, power, is_fraction, before = 0, 0, False, 0
        while at < end and data[np.uint64(at)] != _SMALL_E:
            byte = data[np.uint64(at)]
            if byte == _POINT:
                is_fraction = True
            elif count or byte != _ZERO:
                if count < LONGEST:
                    digits[count] = byte
                    count += 1
                if not is_fraction:
                    before += 1
            elif is_fraction:
                before -= 1
            at += 1
        power = before - 1
        if at < end:
            at += 1
            sign = 1
            if data[np.uint64(at)] == _MINUS or data[np.uint64(at)] == _PLUS:
                sign = -1 if data[np.uint64(at)] == _MINUS else 1
                at += 1
            exponent = 0
            while at < end:
                exponent = exponent * 10 + np.int64(data[np.uint64(at)]) - _ZERO
                at += 1
            power += sign * exponent
        while count > 1 and digits[count - 1] == _ZERO:
            count -= 1
        if not count:
            digits[0] = _ZERO
            count, power = 1, 0
        has_exponent = not _LEAST <= power < _MOST
        shown = 0 if has_exponent else power  # the power of the first digit as it is written
        for k in range(shown, 0):
            out[written] = _ZERO
            written += 1
            if k == shown:
                out[written] = _POINT
                written += 1
        for k in range(max(count, shown + 2)):
            if k == shown + 1 and k:
                out[written] = _POINT
                written += 1
            out[written] = digits[k] if k < count else _ZERO
            written += 1
        if has_exponent:
            out[written] = _E
            written += 1
            if power < 0:
                out[written] = _MINUS
                written += 1
                power = -power
            for divisor in (100, 10, 1):
                if power >= divisor:
                    out[written] = _ZERO + power // divisor % 10
                    written += 1
        out_bounds[i + 1] = written
    return written
