"""What the decoder should make of a value that a SELECT has shown, given what the log says about the column."""

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.integration.types.column import Column, Kind
from tests.integration.types.workload import Log, Shown

_SIGNED = {8: pa.int8(), 16: pa.int16(), 24: pa.int32(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 24: pa.uint32(), 32: pa.uint32(), 64: pa.uint64()}
_PLAIN: Mapping[Kind, pa.DataType] = {
    Kind.YEAR: pa.int16(),
    Kind.BIT: pa.uint64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.duration("us"),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.BYTES: pa.binary(),
    Kind.BINARY: pa.binary(),
    Kind.JSON: pa.string(),
    Kind.GEOMETRY: pa.binary(),
    Kind.VECTOR: pa.list_(pa.field("item", pa.float32(), nullable=False)),
}


def is_expected_type(log: Log, column: Column, data_type: pa.DataType) -> bool:
    match column.kind:
        case Kind.INTEGER:
            return data_type == (_UNSIGNED if column.unsigned and log.has_signs else _SIGNED)[column.size]
        case Kind.DECIMAL:
            make = pa.decimal128 if column.size <= 38 else pa.decimal256
            return data_type == make(column.size, column.scale)
        case Kind.TEXT:
            return data_type == (pa.string() if log.has_charsets else pa.binary())
        case Kind.ADDRESS:
            return data_type == (pa.string() if log.with_catalogue else pa.binary())
        case Kind.ENUM | Kind.SET:
            number = pa.uint16() if column.kind is Kind.ENUM else pa.uint64()
            return data_type == (pa.string() if log.has_labels(column) else number)
        case kind:
            return data_type == _PLAIN[kind]


def expected_value(log: Log, column: Column, shown: Shown) -> Any:
    """In the form that `decoding.comparable` gives."""
    first, last = shown[0], shown[-1]
    if first is None or last is None:
        return None
    if column.kind in _READ:
        return _READ[column.kind](first)
    match column.kind:
        case Kind.INTEGER:
            value, half = int(first), 1 << (column.size - 1)
            # Without signs in the log every integer is taken as signed.
            return value if log.has_signs or value < half else value - 2 * half
        case Kind.TEXT:
            raw = bytes.fromhex(first)
            return readable(bytes.fromhex(last).decode(), raw) if log.has_charsets else raw
        case Kind.BINARY | Kind.ADDRESS:
            is_told = column.kind is Kind.ADDRESS and log.with_catalogue
            return last if is_told else _filled(log, bytes.fromhex(first))
        case _:
            return bytes.fromhex(last).decode() if log.has_labels(column) else int(first)


def _filled(log: Log, stored: bytes) -> bytes:
    """The log has no zeros at the end, and without charsets BINARY cannot be told from CHAR, which needs none."""
    return stored if log.has_charsets else stored.rstrip(b"\0")


def readable(text: str, raw: bytes) -> str:
    """A byte that is no character in its charset: the server shows a question mark, the decoder U+FFFD."""
    if "?" not in text or len(text) != len(raw):
        return text
    return "".join("\ufffd" if shown == "?" != chr(byte) else shown for shown, byte in zip(text, raw, strict=True))


def _datetime(text: str) -> int | None:
    day, _, time = text.partition(" ")
    days = _days(day)
    return None if days is None else days * 86_400_000_000 + _time(time)


def _time(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, part = seconds.partition(".")
    value = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000 + int(part.ljust(6, "0") or "0")
    return -value if text.startswith("-") else value


def _days(text: str) -> int | None:
    """Since 1970 in the calendar of today's rules, also before it was in use; None if it has no such day."""
    year, month, day = map(int, text.split("-"))
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = [31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        return None
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    return before * 365 + leaps + sum(lengths[: month - 1]) + day - 719_163


def _vector(text: str) -> list[str]:
    raw = bytes.fromhex(text)
    return [value.hex() for value in struct.unpack(f"<{len(raw) // 4}f", raw)]


_READ: Mapping[Kind, Callable[[str], Any]] = {
    Kind.YEAR: int,
    Kind.BIT: int,
    Kind.DECIMAL: lambda text: Decimal(text).as_tuple(),
    Kind.FLOAT: lambda text: float(text).hex(),
    Kind.DOUBLE: lambda text: float(text).hex(),
    Kind.DATE: _days,
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _datetime,
    Kind.TIME: _time,
    Kind.BYTES: bytes.fromhex,
    Kind.JSON: lambda text: bytes.fromhex(text).decode(),
    Kind.GEOMETRY: bytes.fromhex,
    Kind.VECTOR: _vector,
}
