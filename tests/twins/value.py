"""One value on the wire: `encode` writes it, the `decode_*` functions are the twins of the kernels, `read` makes the
plain Python value of it.

A date or time that no calendar has is written from `ZERO` and read as None.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from penstock.model import Column, WireType

ZERO: Final = "0000-00-00"
INT_BYTES = {WireType.TINY: 1, WireType.SHORT: 2, WireType.INT24: 3, WireType.LONG: 4, WireType.LONGLONG: 8}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)


def encode(column: Column, value: Any) -> bytes:  # noqa: C901, PLR0911 - a branch per type
    """The bytes of a value that is not null, its length bytes included."""
    kind, fraction = column.type, (column.size + 1) // 2
    if kind in INT_BYTES:
        return value.to_bytes(INT_BYTES[kind], "little", signed=not column.unsigned)
    match kind:
        case WireType.FLOAT:
            return struct.pack("<f", value)
        case WireType.DOUBLE:
            return struct.pack("<d", value)
        case WireType.NEWDECIMAL:
            return encode_decimal(value, column.precision, column.scale)
        case WireType.DATE:
            day, month, year = (0, 0, 0) if value == ZERO else (value.day, value.month, value.year)
            return (day | month << 5 | year << 9).to_bytes(3, "little")
        case WireType.TIME2:
            return _encode_time(value // _US, fraction)
        case WireType.DATETIME2 | WireType.TIMESTAMP2:
            micros = 0 if value == ZERO else value.microsecond
            part = (micros // 100 ** (3 - fraction)).to_bytes(fraction, "big")
            return (_clock(value) if kind is WireType.DATETIME2 else _seconds(value)) + part
        case WireType.YEAR:
            return bytes([value - 1900 if value else 0])
        case WireType.ENUM:
            return (column.labels.index(value) + 1 if value else 0).to_bytes(column.size, "little")
        case WireType.SET:
            return sum(1 << column.labels.index(label) for label in value).to_bytes(column.size, "little")
        case _:
            raw = value.encode() if isinstance(value, str) else value
            return len(raw).to_bytes(length_bytes(column), "little") + raw


def length_bytes(column: Column) -> int:
    if column.type in {WireType.VARCHAR, WireType.STRING}:
        return 1 if column.size < 256 else 2
    return column.size


def encode_decimal(value: Decimal, precision: int, scale: int) -> bytes:
    """Of a value that has exactly `scale` digits after its point."""
    digits = "".join(map(str, value.as_tuple().digits)).zfill(precision)
    whole, part = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    groups = [whole[:head]] + [whole[i : i + 9] for i in range(head, len(whole), 9)]
    groups += [part[i : i + 9] for i in range(0, len(part), 9)]
    raw = bytearray(b"".join(int(group).to_bytes(group_bytes(len(group)), "big") for group in groups if group))
    raw[0] ^= 0x80
    return bytes(byte ^ 0xFF for byte in raw) if value < 0 else bytes(raw)


def group_bytes(digits: int) -> int:
    return (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[digits]


def _encode_time(micros: int, fraction: int) -> bytes:
    seconds, part = divmod(abs(micros), 1_000_000)
    packed = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 8 * fraction
    packed |= part // 100 ** (3 - fraction)
    middle = 0x800000 << 8 * fraction
    return (middle - packed if micros < 0 else middle + packed).to_bytes(3 + fraction, "big")


def _clock(value: Any) -> bytes:
    packed = 0
    if value != ZERO:
        packed = (value.year * 13 + value.month) << 22 | value.day << 17
        packed |= value.hour << 12 | value.minute << 6 | value.second
    return (packed + 0x8000000000).to_bytes(5, "big")


def _seconds(value: Any) -> bytes:
    return (0 if value == ZERO else (value - _UTC_EPOCH) // timedelta(seconds=1)).to_bytes(4, "big")


# -- twins of the kernels: bytes of one field → what the kernel puts into its cell


def decode_integer(raw: bytes, *, is_signed: bool) -> int:
    return int.from_bytes(raw, "little", signed=is_signed)


def decode_decimal(raw: bytes, precision: int, scale: int) -> int:
    """The number without its point."""
    is_negative = not raw[0] & 0x80
    plain = bytearray(byte ^ 0xFF for byte in raw) if is_negative else bytearray(raw)
    plain[0] ^= 0x80
    whole = precision - scale
    sizes = [whole % 9] * bool(whole % 9) + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    number, at = 0, 0
    for digits in sizes:
        size = group_bytes(digits)
        number = number * 10**digits + int.from_bytes(plain[at : at + size], "big")
        at += size
    return -number if is_negative else number


def days(year: int, month: int, day: int) -> int | None:
    """Days since 1970; the calendar repeats every 400 years, so Python's covers all years."""
    try:
        return date(year % 400 + 400, month, day).toordinal() - 719163 + (year // 400 - 1) * 146097
    except ValueError:
        return None


def decode_date(raw: bytes) -> int | None:
    packed = int.from_bytes(raw, "little")
    return days(packed >> 9, packed >> 5 & 15, packed & 31)


def _micros(raw: bytes) -> int:
    return int.from_bytes(raw, "big") * 100 ** (3 - len(raw))


def decode_time(raw: bytes) -> int:
    packed = int.from_bytes(raw, "big") - (0x800000 << 8 * (len(raw) - 3))
    plain = abs(packed).to_bytes(len(raw), "big")
    clock = int.from_bytes(plain[:3], "big")
    micros = ((clock >> 12 & 1023) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)) * 1_000_000 + _micros(plain[3:])
    return -micros if packed < 0 else micros


def decode_datetime(raw: bytes) -> int | None:
    packed = int.from_bytes(raw[:5], "big") - 0x8000000000
    year, month = divmod(packed >> 22, 13)
    whole = days(year, month, packed >> 17 & 31)
    if whole is None:
        return None
    seconds = whole * 86400 + (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
    return seconds * 1_000_000 + _micros(raw[5:])


def decode_timestamp(raw: bytes) -> int | None:
    return int.from_bytes(raw[:4], "big") * 1_000_000 + _micros(raw[4:]) if any(raw) else None


def read(column: Column, raw: bytes) -> Any:  # noqa: C901, PLR0911, PLR0912 - a branch per type
    """The plain Python value of one field, its length bytes left out."""
    if column.type in INT_BYTES:
        return decode_integer(raw, is_signed=not column.unsigned)
    match column.type:
        case WireType.FLOAT:
            return struct.unpack("<f", raw)[0]
        case WireType.DOUBLE:
            return struct.unpack("<d", raw)[0]
        case WireType.NEWDECIMAL:
            return decimal_of(decode_decimal(raw, column.precision, column.scale), column.scale)
        case WireType.DATE:
            number = decode_date(raw)
            return None if number is None else _EPOCH.date() + timedelta(number)
        case WireType.TIME2:
            return timedelta(microseconds=decode_time(raw))
        case WireType.DATETIME2:
            micros = decode_datetime(raw)
            return None if micros is None else _EPOCH + micros * _US
        case WireType.TIMESTAMP2:
            micros = decode_timestamp(raw)
            return None if micros is None else _UTC_EPOCH + micros * _US
        case WireType.YEAR:
            return raw[0] and raw[0] + 1900
        case WireType.ENUM:
            return ("", *column.labels)[int.from_bytes(raw, "little")]
        case WireType.SET:
            return set_text(column.labels, int.from_bytes(raw, "little"))
        case WireType.STRING if column.charset == "binary":
            return raw.ljust(column.size, b"\x00")  # the log leaves out the zeros at the end of a BINARY(n)
        case _:
            return raw if column.charset == "binary" else raw.decode()


def decimal_of(number: int, scale: int) -> Decimal:
    """Exact, whatever the context's precision is."""
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def set_text(labels: Sequence[str], mask: int) -> str:
    return ",".join(label for bit, label in enumerate(labels) if mask >> bit & 1)
