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
class Zone:
    name: str = "UTC"

    def shifted(self, array: pa.Array) -> pa.Array:
        """`2024-01-31 13:14:15.678`, each; the zero date stays what it is."""
        if self.name == "UTC":
            return array
        since, offsets = _offsets(self.name)
        data, bounds = text.bytes_of(array)
        out = data.copy()
        shift(bounds, since, offsets, out)
        return text.like(array, bounds, out)


def checked_zone(name: str) -> Zone:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigurationError(f"there is no time zone {name!r}: write it as Asia/Shanghai, or UTC") from None
    return Zone(name)


@lru_cache
def _offsets(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Seconds from 1970 on, and how far the zone is ahead of UTC from there on."""
    zone = ZoneInfo(name)

    def offset(second: int) -> int:
        found = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(zone).utcoffset()
        return int(found.total_seconds()) if found is not None else 0

    since, offsets = [0], [offset(0)]
    for day in range(_LAST_DAY):
        low, high = day * _DAY_S, (day + 1) * _DAY_S
        while offset(high) != offsets[-1]:
            before = low
            while high - before > 1:
                middle = (before + high) // 2
                before, high = (middle, high) if offset(middle) == offsets[-1] else (before, middle)
            since.append(high)
            offsets.append(offset(high))
            low, high = high, (day + 1) * _DAY_S
    return np.array(since, np.int64), np.array(offsets, np.int64)


@inlined
def _two(out: Any, at: Any) -> Any:
    return (np.int64(out[np.uint64(at)]) - 48) * 10 + np.int64(out[np.uint64(at + 1)]) - 48


@inlined
def _put_two(value: Any, out: Any, at: Any) -> None:
    out[np.uint64(at)], out[np.uint64(at + 1)] = 48 + value // 10, 48 + value % 10


@kernel(NONE(I64S_IN, I64S_IN, I64S_IN, U8S))
def shift(bounds: Any, since: Any, offsets: Any, out: Any) -> None:
    """In place; days are counted from 1970-03-01 on, so that a leap day is the last of its year."""
    for i in range(bounds.size - 1):
        at = bounds[i]
        if bounds[i + 1] - at < 19:
            continue
        year = _two(out, at) * 100 + _two(out, at + 2)
        month, day = _two(out, at + 5), _two(out, at + 8)
        if not year or not month or not day:
            continue
        years = year - 1 if month < 3 else year
        days = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        days += 365 * years + years // 4 - years // 100 + years // 400 - 719468
        second = days * 86400 + _two(out, at + 11) * 3600 + _two(out, at + 14) * 60 + _two(out, at + 17)
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
        _put_two(year // 100, out, at)
        _put_two(year % 100, out, at + 2)
        _put_two(month, out, at + 5)
        _put_two(day, out, at + 8)
        _put_two(second // 3600, out, at + 11)
        _put_two(second // 60 % 60, out, at + 14)
        _put_two(second % 60, out, at + 17)
