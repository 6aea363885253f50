"""Kernels for dates and times, the present formats and those from before MySQL 5.6.

    DATE       3 bytes little-endian: day 5 bits, month 4, year 15
    TIME       3 bytes and the fraction, one big-endian number offset by half its range: hour 10 bits, minute, second 6
    DATETIME   5 bytes big-endian: sign 1, year*13+month 17, day 5, hour 5, minute 6, second 6 bits; then the fraction
    TIMESTAMP  4 bytes big-endian: seconds since 1970, then the fraction; all zero is the zero date
    fraction   two decimal digits a byte, big-endian
    old        decimal numbers, little-endian: TIME 3 bytes ±hhmmss, DATETIME 8 bytes yyyymmddhhmmss; TIMESTAMP 4 bytes

Each becomes Arrow's count of days or microseconds, or the text that the server prints.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I32S_IN,
    I64,
    I64S,
    NONE,
    U8S,
    inlined,
    kernel,
    read_big_endian,
    read_little_endian,
    shared,
)

INVALID = np.int64(-(1 << 63))  # out cell of a date that no calendar has
BROKEN = INVALID + 1  # out cell of a number that is no time at all, which only the old formats can hold
DATE, TIME, DATETIME, TIMESTAMP, OLD_TIME, OLD_DATETIME, OLD_TIMESTAMP = range(7)
_DAY_US = np.int64(86_400_000_000)
_2, _3, _4, _5, _6, _7, _8 = (np.uint64(number) for number in range(2, 9))


@shared
def _days(year: Any, month: Any, day: Any) -> Any:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar; INVALID when there is no such day."""
    if month < 1 or month > 12 or day < 1:
        return INVALID
    if day > 28:
        longest = 31
        if month in (4, 6, 9, 11):
            longest = 30
        elif month == 2:
            leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
            longest = 29 if leap else 28
        if day > longest:
            return INVALID
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719468


@shared
def _micros(data: Any, at: Any, width: Any) -> Any:
    value = read_big_endian(data, at, width)
    if width == 1:
        return value * 10_000
    if width == 2:
        return value * 100
    return value


@shared
def _clock_micros(data: Any, at: Any, width: Any) -> Any:
    """Return a TIME with its sign in microseconds."""
    packed = read_big_endian(data, at, 3 + width) - (np.int64(0x800000) << 8 * width)
    size = abs(packed)
    clock = size >> 8 * width
    part = size & ((np.int64(1) << 8 * width) - 1)
    if width == 1:
        part *= 10_000
    elif width == 2:
        part *= 100
    value = ((clock >> 12 & 1023) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)) * 1_000_000 + part
    return -value if packed < 0 else value


@kernel(NONE(BYTES, I32S_IN, I32S))
def decode_date(data: Any, offsets: Any, out: Any) -> None:
    """Write dates as days since 1970 into `out`; a date that no calendar has becomes the least number there is."""
    for i in range(out.size):
        at = np.int64(offsets[i])
        out[i] = 0
        if at >= 0:
            value = read_little_endian(data, at, 3)
            days = _days(value >> 9, value >> 5 & 15, value & 31)
            out[i] = days if days != INVALID else -(1 << 31)


@kernel(NONE(BYTES, I32S_IN, I64, I64, I64S))
def decode_moment(data: Any, offsets: Any, form: int, width: int, out: Any) -> None:
    """Write times of any form but DATE in microseconds into `out`; `width` is that of the fraction in bytes."""
    if form == DATETIME:
        # Most values of a batch lie on few days: remember the last.
        known, known_days = np.int64(-1), np.int64(0)
        for i in range(out.size):
            at = np.int64(offsets[i])
            out[i] = 0
            if at < 0:
                continue
            packed = read_big_endian(data, at, 5) - 0x8000000000
            day = packed >> 17
            if day != known:
                months = packed >> 22
                known, known_days = day, _days(months // 13, months % 13, day & 31)
            if known_days == INVALID:
                out[i] = INVALID
                continue
            seconds = known_days * 86400 + (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
            out[i] = seconds * 1_000_000 + _micros(data, at + 5, width)
        return
    for i in range(out.size):
        at = np.int64(offsets[i])
        out[i] = 0
        if at < 0:
            continue
        if form == TIMESTAMP:
            seconds = read_big_endian(data, at, 4)
            part = _micros(data, at + 4, width)
            out[i] = INVALID if seconds == 0 and part == 0 else seconds * 1_000_000 + part
        elif form == TIME:
            out[i] = _clock_micros(data, at, width)
        elif form == OLD_TIMESTAMP:
            seconds = read_little_endian(data, at, 4)
            out[i] = INVALID if seconds == 0 else seconds * 1_000_000
        elif form == OLD_TIME:
            number = read_little_endian(data, at, 3) << 40 >> 40
            size = abs(number)
            value = (size // 10_000 * 3600 + size // 100 % 100 * 60 + size % 100) * 1_000_000
            out[i] = -value if number < 0 else value
            if size % 100 > 59 or size // 100 % 100 > 59:
                out[i] = BROKEN
        else:
            number = read_little_endian(data, at, 8)
            date, clock = number // 1_000_000, number % 1_000_000
            days = _days(date // 10_000, date // 100 % 100, date % 100)
            seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
            out[i] = INVALID if days == INVALID else (days * 86400 + seconds) * 1_000_000
            if number < 0 or date > 9999_12_31 or date // 100 % 100 > 12 or date % 100 > 31:
                out[i] = BROKEN
            if clock >= 24_00_00 or clock // 100 % 100 > 59 or clock % 100 > 59:
                out[i] = BROKEN


@shared
def _digits(value: Any, count: Any, out: Any, at: Any) -> Any:
    for k in range(count):
        out[at + count - 1 - k] = 48 + value % 10
        value //= 10
    return at + count


@inlined
def _two_digits(value: Any, out: Any, at: Any) -> None:
    """Write a number below 100."""
    tens = value * 103 >> 10  # value // 10 up to 178
    out[at] = 48 + tens
    out[at + 1] = 48 + value - 10 * tens


@inlined
def write_date(year: Any, month: Any, day: Any, out: Any, at: Any) -> Any:
    """Write a date as YYYY-MM-DD; return where it ends."""
    start = np.uint64(at)
    _two_digits(year // 100 % 100, out, start)
    _two_digits(year % 100, out, start + _2)
    out[start + _4] = 45
    _two_digits(month, out, start + _5)
    out[start + _7] = 45
    _two_digits(day, out, start + _8)
    return at + 10


@inlined
def write_clock(seconds: Any, micros: Any, digits: Any, out: Any, at: Any) -> Any:
    """Write a time as HH:MM:SS with `digits` digits of the fraction; return where it ends."""
    minutes = seconds // 60
    hours = minutes // 60
    if hours > 99:
        at = _digits(hours // 100, 1, out, at)
        hours %= 100
    start = np.uint64(at)
    _two_digits(hours, out, start)
    out[start + _2] = 58
    _two_digits(minutes % 60, out, start + _3)
    out[start + _5] = 58
    _two_digits(seconds % 60, out, start + _6)
    at += 8
    if digits:
        out[at] = 46
        if digits <= 3:
            micros //= 1000
        for _ in range((3 if digits <= 3 else 6) - digits):
            micros //= 10
        at = _digits(micros, digits, out, at + 1)
    return at


@shared
def civil_date(days: Any) -> Any:
    """Return year, month and day of a number of days since 1970."""
    days += 719468
    era = days // 146097
    of_era = days - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    day_of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (1 if month <= 2 else 0), month, day_of_year - (153 * shifted + 2) // 5 + 1


LONGEST_TEXT = 28


@kernel(I64(BYTES, I32S_IN, I64, I64, I32S, U8S))
def temporal_text(data: Any, offsets: Any, form: int, digits: int, bounds: Any, out: Any) -> Any:
    """Write dates and times of any form as the server prints them (TIMESTAMP in UTC), with `digits` of a fraction;
    `out` has LONGEST_TEXT bytes per value. Return how many were used."""
    width = (digits + 1) // 2
    written = np.int64(0)
    bounds[0] = 0
    known = np.int64(-1)  # the last day of a TIMESTAMP, and its date: most values of a batch lie on few days
    known_year, known_month, known_day = np.int64(0), np.int64(0), np.int64(0)
    for i in range(offsets.size):
        at = np.int64(offsets[i])
        if at < 0:
            bounds[i + 1] = written
            continue
        if form == DATE:
            value = read_little_endian(data, at, 3)
            written = write_date(value >> 9, value >> 5 & 15, value & 31, out, written)
        elif form in (TIME, OLD_TIME):
            if form == TIME:
                micros = _clock_micros(data, at, width)
            else:
                number = read_little_endian(data, at, 3) << 40 >> 40
                size = abs(number)
                micros = (size // 10_000 * 3600 + size // 100 % 100 * 60 + size % 100) * 1_000_000
                micros = -micros if number < 0 else micros
            if micros < 0:
                out[written] = 45
                written += 1
                micros = -micros
            written = write_clock(micros // 1_000_000, micros % 1_000_000, digits, out, written)
        else:
            micros = np.int64(0)
            if form == DATETIME:
                packed = max(read_big_endian(data, at, 5) - 0x8000000000, np.int64(0))
                months = packed >> 22
                year, month, day = months // 13, months % 13, packed >> 17 & 31
                seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
                micros = _micros(data, at + 5, width)
            elif form == OLD_DATETIME:
                number = max(read_little_endian(data, at, 8), np.int64(0))
                date, clock = number // 1_000_000 % 100_000_000, number % 1_000_000
                year, month, day = date // 10_000, date // 100 % 100, date % 100
                seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
            else:
                total = read_big_endian(data, at, 4) if form == TIMESTAMP else read_little_endian(data, at, 4)
                if form == TIMESTAMP:
                    micros = _micros(data, at + 4, width)
                year, month, day, seconds = np.int64(0), np.int64(0), np.int64(0), total % 86400
                if total or micros:
                    if total // 86400 != known:
                        known = total // 86400
                        known_year, known_month, known_day = civil_date(known)
                    year, month, day = known_year, known_month, known_day
            written = write_date(year, month, day, out, written)
            out[written] = 32
            written = write_clock(seconds, micros, digits, out, written + 1)
        bounds[i + 1] = written
    return written
