"""Dates that no calendar has, such as 2024-02-31 or 0000-00-00: servers store them, and no index takes them."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.render.text import get_bytes, get_validity

_DIGITS = np.array([0, 1, 2, 3, 5, 6, 8, 9])  # of YYYY-MM-DD
_DATE_BYTES = 10
_LAST_DAY = np.zeros(100, np.int16)  # by month; no day is right in a month that there is not
_LAST_DAY[1:13] = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def find_impossible_dates(array: pa.Array) -> NDArray[np.bool_]:
    """Return which texts begin with a date that no calendar has; a null does not."""
    data, bounds = get_bytes(array)
    is_wrong = mark_impossible_dates(data, bounds[:-1], np.diff(bounds))
    valid = get_validity(array)
    return is_wrong & valid.astype(np.bool_) if valid.size else is_wrong


def mark_impossible_dates(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which texts, given by where they are in `data`, begin with a date that no calendar has. Those that are too
    short for a date do not."""
    is_wrong = np.zeros(starts.size, np.bool_)
    rows = np.flatnonzero(sizes >= _DATE_BYTES)
    digits = np.minimum(data[starts[rows, np.newaxis] + _DIGITS] - np.uint8(ord("0")), 9).astype(np.int16)
    year = digits[:, 0] * 1000 + digits[:, 1] * 100 + digits[:, 2] * 10 + digits[:, 3]
    month, day = digits[:, 4] * 10 + digits[:, 5], digits[:, 6] * 10 + digits[:, 7]
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    is_no_leap_day = (month == 2) & (day == 29) & ~is_leap
    is_wrong[rows] = (year == 0) | (day == 0) | (day > _LAST_DAY[month]) | is_no_leap_day
    return is_wrong
