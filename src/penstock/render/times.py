"""Microseconds since 1970 → text, in UTC; null for a time that no calendar has."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.commit_time import are_valid_times
from penstock.render import kernels
from penstock.render.text import TEXT


def write_utc_times(moments_us: NDArray[np.int64]) -> pa.Array:
    """Write microseconds since 1970 as 2026-11-15 10:00:00.123456; the fraction is left out if the whole array has
    none.
    """
    return _write_times(moments_us, is_iso=False)


def write_iso_times(moments_us: NDArray[np.int64]) -> pa.Array:
    """Write microseconds since 1970 as 2026-11-15T10:00:00.123456Z; the fraction as in `write_utc_times`."""
    return _write_times(moments_us, is_iso=True)


def _write_times(moments_us: NDArray[np.int64], *, is_iso: bool) -> pa.Array:
    """Write microseconds since 1970 as date and time; null for a time that no calendar has."""
    is_known = are_valid_times(moments_us)
    moments_us = np.where(is_known, moments_us, 0)
    digits = 6 if (moments_us % 1_000_000).any() else 0
    out, bounds = np.empty(moments_us.size * kernels.LONGEST_TIME, np.uint8), np.empty(is_known.size + 1, np.int64)
    used = kernels.write_times(moments_us, digits, is_iso, bounds, out)
    valid = None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
    return pa.Array.from_buffers(TEXT, is_known.size, [valid, pa.py_buffer(bounds), pa.py_buffer(out[:used])])
