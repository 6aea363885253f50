"""Microseconds since 1970 → text, in UTC."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import numbers
from penstock.render.text import TEXT, join, with_byte

_DATE_CHARACTERS = 10


def utc_text(moments_us: NDArray[np.int64]) -> pa.Array:
    """2026-11-15 10:00:00.123456; the fraction is left out where the whole array has none."""
    array = numbers(moments_us).cast(pa.timestamp("us"))
    if not (moments_us % 1_000_000).any():
        return array.cast(pa.timestamp("s")).cast(TEXT)
    return array.cast(TEXT)


def iso_text(moments_us: NDArray[np.int64]) -> pa.Array:
    """2026-11-15T10:00:00.123456Z"""
    return join(with_byte(utc_text(moments_us), _DATE_CHARACTERS, "T"), "Z")
