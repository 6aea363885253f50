"""One value on the wire: `encode` writes it, the `decode_*` functions are the twins of the kernels, `read` makes the
plain Python value of it.

A date or time that no calendar has is written from `ZERO` and read as None.
"""

import struct
import zlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from penstock.model import Column, WireType

ZERO: Final = "0000-00-00"
BROKEN: Final = 1 - (1 << 63)  # of an old format: no time at all
INT_BYTES = {WireType.TINY: 1, WireType.SHORT: 2, WireType.INT24: 3, WireType.LONG: 4, WireType.LONGLONG: 8}
COMPRESSED = {WireType.BLOB_COMPRESSED, WireType.VARCHAR_COMPRESSED}
CODECS = {"latin1": "cp1252", "utf16": "utf-16-be", "gbk": "gbk", "sjis": "shift_jis"}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)


def encode(column: Column, value: Any) -> bytes:  # noqa: C901, PLR0911, PLR0912 - a branch per type
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
        case WireType.TIME:
            return _old_clock(value).to_bytes(3, "little", signed=True)
        case WireType.DATETIME:
            return (0 if value == ZERO else int(f"{value:%Y%m%d%H%M%S}")).to_bytes(8, "little")
        case WireType.TIMESTAMP:
            return _seconds(value)[::-1]
        case WireType.BIT:
            return value.to_bytes((column.size + 7) // 8, "big")
        case WireType.VECTOR:
            raw = struct.pack(f"<{len(value)}f", *value)
            return len(raw).to_bytes(4, "little") + raw
        case _:
            raw = value.encode(CODECS.get(column.charset, "utf-8")) if isinstance(value, str) else value
            if column.type in COMPRESSED:
                raw = _compressed(raw)
            return len(raw).to_bytes(length_bytes(column), "little") + raw


def _old_clock(value: timedelta) -> int:
    seconds = abs(value) // timedelta(seconds=1)
    number = seconds // 3600 * 10_000 + seconds // 60 % 60 * 100 + seconds % 60
    return -number if value < timedelta() else number


def _compressed(raw: bytes) -> bytes:
    """By length: empty, plain, a zlib stream, raw deflate."""
    if len(raw) < 2:
        return b"\x00" + raw if raw else b""
    size = len(raw).to_bytes(2, "big")
    if len(raw) % 2:
        return b"\x82" + size + zlib.compress(raw)
    deflate = zlib.compressobj(wbits=-15)
    return b"\x8a" + size + deflate.compress(raw) + deflate.flush()


def length_bytes(column: Column) -> int:
    if column.type in {WireType.VARCHAR, WireType.STRING, WireType.VARCHAR_COMPRESSED}:
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


def decode_decimal(raw: bytes, precision: int, scale: int) -> int | None:
    """The number without its point; None when a group holds more than its digits."""
    is_negative = not raw[0] & 0x80
    plain = bytearray(byte ^ 0xFF for byte in raw) if is_negative else bytearray(raw)
    plain[0] ^= 0x80
    whole = precision - scale
    sizes = [whole % 9] * bool(whole % 9) + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    number, at = 0, 0
    for digits in sizes:
        size = group_bytes(digits)
        group = int.from_bytes(plain[at : at + size], "big")
        if group >= 10**digits:
            return None
        number = number * 10**digits + group
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


def decode_old_time(raw: bytes) -> int:
    number = int.from_bytes(raw, "little", signed=True)
    hours, minutes, seconds = abs(number) // 10_000, abs(number) // 100 % 100, abs(number) % 100
    if minutes > 59 or seconds > 59:
        return BROKEN
    micros = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
    return -micros if number < 0 else micros


def decode_old_datetime(raw: bytes) -> int | None:
    number = int.from_bytes(raw, "little", signed=True)
    date_part, clock = divmod(number, 1_000_000)
    if not 0 <= date_part <= 99991231 or date_part // 100 % 100 > 12 or date_part % 100 > 31:
        return BROKEN
    if clock >= 240000 or clock // 100 % 100 > 59 or clock % 100 > 59:
        return BROKEN
    whole = days(date_part // 10_000, date_part // 100 % 100, date_part % 100)
    if whole is None:
        return None
    seconds = whole * 86400 + clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    return seconds * 1_000_000


def decode_old_timestamp(raw: bytes) -> int | None:
    return int.from_bytes(raw, "little") * 1_000_000 if any(raw) else None


def temporal_text(form: int, raw: bytes, digits: int) -> str:
    """As the server prints it; `form` as the kernels number them."""
    if form == 0:
        packed = int.from_bytes(raw, "little")
        return _date_text(packed >> 9, packed >> 5 & 15, packed & 31)
    if form in {1, 4}:
        number = int.from_bytes(raw, "little", signed=True)
        old = (abs(number) // 10_000 * 3600 + abs(number) // 100 % 100 * 60 + abs(number) % 100) * 1_000_000
        micros = decode_time(raw) if form == 1 else old if number >= 0 else -old
        return "-" * (micros < 0) + _clock_text(abs(micros) // 1_000_000, abs(micros) % 1_000_000, digits)
    seconds, micros, moment = 0, 0, "0000-00-00"
    if form == 2:
        packed = max(int.from_bytes(raw[:5], "big") - 0x8000000000, 0)
        year, month = divmod(packed >> 22, 13)
        seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
        moment, micros = _date_text(year, month, packed >> 17 & 31), _micros(raw[5:])
    elif form == 5:
        number = max(int.from_bytes(raw, "little", signed=True), 0)
        day, clock = number // 1_000_000 % 100_000_000, number % 1_000_000
        moment = _date_text(day // 10_000, day // 100 % 100, day % 100)
        seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    elif any(raw):
        total = int.from_bytes(raw[:4], "big" if form == 3 else "little")
        seconds, micros = total % 86400, _micros(raw[4:]) if form == 3 else 0
        moment = (_UTC_EPOCH + timedelta(seconds=total)).strftime("%Y-%m-%d")
    return f"{moment} {_clock_text(seconds, micros, digits)}"


def _date_text(year: int, month: int, day: int) -> str:
    return f"{year % 10_000:04}-{month % 100:02}-{day:02}"


def _clock_text(seconds: int, micros: int, digits: int) -> str:
    # Bytes that no server writes can hold more than the digits there is room for.
    hours = seconds // 3600
    part = "." + f"{micros // 10 ** (6 - digits) % 10**digits:0{digits}}" if digits else ""
    shown = f"{hours % 1000:03}" if hours > 99 else f"{hours:02}"
    return f"{shown}:{seconds // 60 % 60:02}:{seconds % 60:02}{part}"


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
            number = decode_decimal(raw, column.precision, column.scale)
            assert number is not None
            return decimal_of(number, column.scale)
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
        case WireType.TIME:
            return timedelta(microseconds=decode_old_time(raw))
        case WireType.DATETIME:
            micros = decode_old_datetime(raw)
            return None if micros is None else _EPOCH + micros * _US
        case WireType.TIMESTAMP:
            micros = decode_old_timestamp(raw)
            return None if micros is None else _UTC_EPOCH + micros * _US
        case WireType.BIT:
            return int.from_bytes(raw, "big")
        case WireType.GEOMETRY:
            return raw
        case WireType.VECTOR:
            return list(struct.unpack(f"<{len(raw) // 4}f", raw))
        case WireType.STRING if column.charset == "binary":
            return raw.ljust(column.size, b"\x00")  # the log leaves out the zeros at the end of a BINARY(n)
        case _:
            return raw if column.charset == "binary" else raw.decode(CODECS.get(column.charset, "utf-8"))


def decimal_of(number: int, scale: int) -> Decimal:
    """Exact, whatever the context's precision is."""
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def set_text(labels: Sequence[str], mask: int) -> str:
    return ",".join(label for bit, label in enumerate(labels) if mask >> bit & 1)
