"""Texts of moments in UTC → those of another time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.kernel import I64S_IN, NONE, U8S, inlined, kernel
from penstock.errors import ConfigurationError
from penstock.render import text

_DAY_S = 86_400
_LAST_DAY = 49_711  # of TIMESTAMP in MariaDB 11: 2106-02-07


@dataclass(frozen=True, slots=True)
class TimeZone:
    """The time zone in which canal clients receive TIMESTAMP values."""

    name: str = "UTC"

    def convert_from_utc(self, array: pa.Array) -> pa.Array:
        """Convert texts such as `2024-01-31 13:14:15.678` from UTC to this zone; the zero date stays as it is."""
        if self.name == "UTC":
            return array
        since, offsets = _load_offsets(self.name)
        data, bounds = text.get_bytes(array)
        out = data.copy()
        convert_texts(bounds, since, offsets, out)
        return text.texts_from_bytes_like(array, bounds, out)


def parse_time_zone(name: str) -> TimeZone:
    """Return the zone with this name; a name that does not exist is a ConfigurationError."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigurationError(f"there is no time zone {name!r}: write it as Asia/Shanghai, or UTC") from None
    return TimeZone(name)


@lru_cache
def _load_offsets(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the seconds since 1970 at which the zone's offset changes, and the offset from UTC after each."""
    zone = ZoneInfo(name)

    def offset_at(second: int) -> int:
        """Return the zone's offset from UTC at this second since 1970."""
        utc_offset = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(zone).utcoffset()
        return int(utc_offset.total_seconds()) if utc_offset is not None else 0

    since, offsets = [0], [offset_at(0)]
    for day in range(_LAST_DAY):
        low, high = day * _DAY_S, (day + 1) * _DAY_S
        while offset_at(high) != offsets[-1]:
            before = low
            while high - before > 1:
                middle = (before + high) // 2
                before, high = (middle, high) if offset_at(middle) == offsets[-1] else (before, middle)
            since.append(high)
            offsets.append(offset_at(high))
            low, high = high, (day + 1) * _DAY_S
    return np.array(since, np.int64), np.array(offsets, np.int64)


@inlined
def _read_two_digits(out: Any, at: Any) -> Any:
    """Read a number of two decimal digits."""
    return (np.int64(out[np.uint64(at)]) - 48) * 10 + np.int64(out[np.uint64(at + 1)]) - 48


@inlined
def _write_two_digits(value: Any, out: Any, at: Any) -> None:
    """Write a number as two decimal digits."""
    out[np.uint64(at)], out[np.uint64(at + 1)] = 48 + value // 10, 48 + value % 10


@kernel(NONE(I64S_IN, I64S_IN, I64S_IN, U8S))
def convert_texts(bounds: Any, since: Any, offsets: Any, out: Any) -> None:
    """Shift each date and time in `out` in place by the zone's offset at that time.

    Text i is out[bounds[i]:bounds[i + 1]]; offsets[k] counts from second since[k] on. Days are counted from 1970-03-01,
    so that a leap day is the last of its year.
    """
    for i in range(bounds.size - 1):
        at = bounds[i]
        if bounds[i + 1] - at < 19:
            continue
        year = _read_two_digits(out, at) * 100 + _read_two_digits(out, at + 2)
        month, day = _read_two_digits(out, at + 5), _read_two_digits(out, at + 8)
        if not year or not month or not day:
            continue
        years = year - 1 if month < 3 else year
        days = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        days += 365 * years + years // 4 - years // 100 + years // 400 - 719468
        second = (
            days * 86400
            + _read_two_digits(out, at + 11) * 3600
            + _read_two_digits(out, at + 14) * 60
            + _read_two_digits(out, at + 17)
        )
        low, high = 0, since.size
        while high - low > 1:
            middle = (low + high) // 2
            if since[middle] <= second:
                low = middle
            else:
                high = middle
        second += offsets[low]
        days, second = second // 86400 + 719468, second % 86400
        era = days // 146097
        days -= era * 146097
        years = (days - days // 1460 + days // 36524 - days // 146096) // 365
        days -= 365 * years + years // 4 - years // 100
        month = (5 * days + 2) // 153
        day = days - (153 * month + 2) // 5 + 1
        month = month + 3 if month < 10 else month - 9
        year = era * 400 + years + (1 if month < 3 else 0)
        _write_two_digits(year // 100, out, at)
        _write_two_digits(year % 100, out, at + 2)
        _write_two_digits(month, out, at + 5)
        _write_two_digits(day, out, at + 8)
        _write_two_digits(second // 3600, out, at + 11)
        _write_two_digits(second // 60 % 60, out, at + 14)
        _write_two_digits(second % 60, out, at + 17)
