"""Dates and times in JSON: one packed 64-bit number, printed in quotes with six digits of a second.

DATE, DATETIME, TIMESTAMP  (year * 13 + month) << 46 | day << 41 | hour << 36 | minute << 30 | second << 24 | micros
TIME                       hour << 36 | minute << 30 | second << 24 | micros, all of it negative before midnight
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import shared
from penstock.binlog.values.json_number import write_digits, write_unsigned

_QUOTE, _MINUS, _COLON, _POINT, _SPACE = (np.uint8(ord(c)) for c in '"-:. ')


@shared
def _write_clock(packed: Any, out: Any, to: Any) -> Any:
    """Write minute, second and fraction after the hour."""
    out[np.uint64(to)] = _COLON
    to = write_digits(np.uint64(packed >> 30 & 63), 2, out, to + 1)
    out[np.uint64(to)] = _COLON
    to = write_digits(np.uint64(packed >> 24 & 63), 2, out, to + 1)
    out[np.uint64(to)] = _POINT
    return write_digits(np.uint64(packed & 0xFFFFFF), 6, out, to + 1)


@shared
def write_time(packed: Any, out: Any, to: Any) -> Any:
    """Write a packed TIME in quotes to out[to]; return where it ends, -1 when no clock shows it."""
    out[np.uint64(to)] = _QUOTE
    to += 1
    if packed < 0:
        out[np.uint64(to)] = _MINUS
        to += 1
        packed = -packed
    hour = packed >> 36
    if hour > 1023 or hour < 0 or packed & 0xFFFFFF > 999_999:
        return np.int64(-1)
    to = write_digits(np.uint64(hour), 2, out, to) if hour < 100 else write_unsigned(np.uint64(hour), out, to)
    to = _write_clock(packed, out, to)
    out[np.uint64(to)] = _QUOTE
    return to + 1


@shared
def write_date(packed: Any, has_clock: Any, out: Any, to: Any) -> Any:
    """Write a packed date, with its clock or without, in quotes to out[to]; return where it ends, or -1 for a date
    that does not exist."""
    months = packed >> 46
    if packed < 0 or months >= 10_000 * 13 or packed & 0xFFFFFF > 999_999:
        return np.int64(-1)
    out[np.uint64(to)] = _QUOTE
    to = write_digits(np.uint64(months // 13), 4, out, to + 1)
    out[np.uint64(to)] = _MINUS
    to = write_digits(np.uint64(months % 13), 2, out, to + 1)
    out[np.uint64(to)] = _MINUS
    to = write_digits(np.uint64(packed >> 41 & 31), 2, out, to + 1)
    if has_clock:
        out[np.uint64(to)] = _SPACE
        to = write_digits(np.uint64(packed >> 36 & 31), 2, out, to + 1)
        to = _write_clock(packed, out, to)
    out[np.uint64(to)] = _QUOTE
    return to + 1
