"""Microseconds since 1970 → text, in UTC; null for a time that no calendar has."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import flags, numbers
from penstock.inspect.known_time import are_known
from penstock.render.text import TEXT, join, with_byte

_DATE_CHARACTERS = 10


def utc_text(moments_us: NDArray[np.int64]) -> pa.Array:
    """2026-11-15 10:00:00.123456; the fraction is left out where the whole array has none."""
    is_known = are_known(moments_us)
    moments_us = np.where(is_known, moments_us, 0)
    array = numbers(moments_us).cast(pa.timestamp("us"))
    if not (moments_us % 1_000_000).any():
        array = array.cast(pa.timestamp("s"))
    texts = array.cast(TEXT)
    return texts if is_known.all() else pc.if_else(flags(is_known), texts, pa.nulls(len(texts), TEXT))


def iso_text(moments_us: NDArray[np.int64]) -> pa.Array:
    """2026-11-15T10:00:00.123456Z"""
    return join(with_byte(utc_text(moments_us), _DATE_CHARACTERS, "T"), "Z")
