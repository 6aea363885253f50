"""What canal's clients are to get of a row, in plain Python: the twin of `render.canal`."""

import math
import struct
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from penstock.model import Column, WireType
from tests.twins.strategy import shown
from tests.twins.value import INT_BYTES, ZERO

W = WireType
_CLOCKS = {W.DATETIME, W.DATETIME2, W.TIMESTAMP, W.TIMESTAMP2}
_INSTANTS = {W.TIMESTAMP, W.TIMESTAMP2}
_SQL_TYPES = {
    W.TINY: -6, W.SHORT: 5, W.INT24: 4, W.LONG: 4, W.LONGLONG: -5, W.NEWDECIMAL: 3, W.FLOAT: 7, W.DOUBLE: 8, W.BIT: -7,
    W.YEAR: 12, W.DATE: 91, W.TIME: 92, W.TIME2: 92, W.DATETIME: 93, W.DATETIME2: 93, W.TIMESTAMP: 93, W.TIMESTAMP2: 93,
    W.ENUM: 4, W.SET: -7, W.GEOMETRY: 2004, W.VECTOR: 12,
}  # fmt: skip
_WIDER = {W.TINY: 5, W.SHORT: 4, W.INT24: 4, W.LONG: -5, W.LONGLONG: 3}


def java_real(value: float, *, is_float: bool) -> str:
    """As Double.toString and Float.toString say it."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    digits = Decimal(_shortest_float(value) if is_float else repr(value)).as_tuple()
    sign, figures, power = digits.sign, list(digits.digits), int(digits.exponent)
    while len(figures) > 1 and figures[-1] == 0:
        figures.pop()
        power += 1
    first = len(figures) - 1 + power
    text = "".join(map(str, figures))
    if not any(figures):
        body = "0.0"
    elif -3 <= first < 7:
        if power >= 0:
            body = text + "0" * power + ".0"
        elif first >= 0:
            body = f"{text[: first + 1]}.{text[first + 1 :]}"
        else:
            body = "0." + "0" * (-first - 1) + text
    else:
        body = f"{text[0]}.{text[1:] or '0'}E{first}"
    return ("-" if sign else "") + body


def _shortest_float(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        with suppress(OverflowError):
            if struct.pack("<f", float(text)) == struct.pack("<f", value):
                return text
    return repr(value)


def canal_decimal(value: Decimal, scale: int) -> str:
    text = f"{value:.{scale}f}" if scale else f"{value:f}"
    if not scale % 9:
        return text
    whole, _, fraction = text.partition(".")
    kept = scale - scale % 9
    if not fraction[kept:].strip("0"):
        fraction = fraction[:kept]
    return f"{whole}.{fraction or '0'}"


def canal_text(column: Column, value: Any, zone: str = "UTC") -> str:  # noqa: C901, PLR0911, PLR0912 - one per kind
    digits = column.size if column.type in {W.TIME2, W.DATETIME2, W.TIMESTAMP2} else 0
    fraction = "." + "0" * digits if digits else ""
    if value == ZERO and column.type is W.DATE:
        return ZERO
    if value == ZERO and column.type in _CLOCKS:
        return f"{ZERO} 00:00:00{fraction}"
    if column.type is W.ENUM:
        return str(column.labels.index(value) + 1 if value else 0)
    if column.type is W.SET:
        return str(sum(1 << column.labels.index(label) for label in value))
    value = shown(column, value)
    match value:
        case Decimal():
            return canal_decimal(value, column.scale)
        case bytes():
            return (value.rstrip(b"\0") if column.type is W.STRING else value).decode("latin-1")
        case datetime():
            if column.type in _INSTANTS and zone != "UTC":
                value = value.astimezone(ZoneInfo(zone))
            return f"{value.year:04}-{value:%m-%d %H:%M:%S.%f}"[: 20 + digits if digits else 19]
        case date():
            return f"{value.year:04}-{value:%m-%d}"
        case timedelta():
            micros = abs(value) // timedelta(microseconds=1)
            clock = f"{micros // 3_600_000_000:02}:{micros // 60_000_000 % 60:02}:{micros // 1_000_000 % 60:02}"
            part = f".{micros % 1_000_000:06}"[: 1 + digits] if digits else ""
            return ("-" if value < timedelta() else "") + clock + part
        case float():
            return java_real(value, is_float=column.type is W.FLOAT)
        case int() if column.type is W.YEAR:
            return f"{value:04}"
        case _:
            return str(value)


def canal_sql_type(column: Column, value: Any) -> int:
    kind = column.type
    if kind is W.SET and value is None:
        return 2004
    if kind in INT_BYTES and column.unsigned and value is not None and value >= 1 << 8 * INT_BYTES[kind] - 1:
        return _WIDER[kind]
    if kind in _SQL_TYPES:
        return _SQL_TYPES[kind]
    if column.charset in {"", "binary"}:
        return 2004
    if kind in {W.BLOB, W.BLOB_COMPRESSED}:
        return 2005
    return 1 if kind is W.STRING else 12
