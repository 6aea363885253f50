"""Binary JSON in plain Python: `encode` writes it, `decode` and `text` are the twins of the rendering kernel.

Values are dict, list, None, bool, int, float, str, Decimal, date, datetime, timedelta, `Unsigned` and `Opaque`.
"""

import base64
import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.twins.value import decode_decimal, encode_decimal, group_bytes

TIMESTAMP, DATE, TIME, DATETIME, NEWDECIMAL, BLOB = 7, 10, 11, 12, 246, 252
_US = timedelta(microseconds=1)
_INLINED = {4, 5, 6}
_INLINED_LARGE = {4, 5, 6, 7, 8}
_INTEGERS = {5: (2, True), 6: (2, False), 7: (4, True), 8: (4, False), 9: (8, True), 10: (8, False)}
_ESCAPES = {ord(c): f"\\{e}" for c, e in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)}
_ESCAPES = {c: f"\\u{c:04x}" for c in [*range(32), *range(0xD800, 0xE000)]} | _ESCAPES


class BrokenJsonError(Exception):
    """Of bytes, or of a diff that does not fit."""


class Unsigned(int):
    """Has a type of its own in binary JSON."""


@dataclass(frozen=True, slots=True)
class Opaque:
    kind: int
    raw: bytes


# -- writing


def encode(value: Any, *, is_large: bool = False) -> bytes:
    """A document; `is_large` writes all containers in the large format, as nobody but a test would."""
    kind, raw = _encode(value, is_large=is_large)
    return bytes([kind]) + raw


def _encode(value: Any, *, is_large: bool) -> tuple[int, bytes]:  # noqa: PLR0911 - a branch per type
    match value:
        case None | bool():
            return 4, bytes([0 if value is None else 1 if value else 2])
        case int():
            is_signed = not isinstance(value, Unsigned)
            kinds = (5, 7, 9) if is_signed else (6, 8, 10)
            for kind in kinds:
                try:
                    return kind, value.to_bytes(_INTEGERS[kind][0], "little", signed=is_signed)
                except OverflowError:
                    continue
            raise OverflowError(value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            raw = value.encode("utf-8", "surrogatepass")
            return 12, _length(len(raw)) + raw
        case dict() | list():
            if not is_large:
                raw = _container(value, 2)
                if raw is not None:
                    return (0 if isinstance(value, dict) else 2), raw
            raw = _container(value, 4)
            assert raw is not None
            return (1 if isinstance(value, dict) else 3), raw
        case _:
            kind, raw = _opaque(value)
            return 15, bytes([kind]) + _length(len(raw)) + raw


def _opaque(value: Any) -> tuple[int, bytes]:
    match value:
        case Opaque():
            return value.kind, value.raw
        case Decimal():
            scale = -int(value.as_tuple().exponent)
            precision = max(len(value.as_tuple().digits), scale, 1)
            return NEWDECIMAL, bytes([precision, scale]) + encode_decimal(value, precision, scale)
        case timedelta():
            micros = abs(value) // _US
            seconds, part = divmod(micros, 1_000_000)
            packed = seconds // 3600 << 36 | seconds // 60 % 60 << 30 | seconds % 60 << 24 | part
            return TIME, struct.pack("<q", packed if value >= timedelta(0) else -packed)
        case _:
            assert isinstance(value, date)
            packed = (value.year * 13 + value.month) << 46 | value.day << 41
            if not isinstance(value, datetime):
                return DATE, struct.pack("<q", packed)
            packed |= value.hour << 36 | value.minute << 30 | value.second << 24 | value.microsecond
            return DATETIME, struct.pack("<q", packed)


def _length(size: int) -> bytes:
    raw = bytearray()
    while size > 127:
        raw.append(size & 127 | 128)
        size >>= 7
    return bytes([*raw, size])


def key_order(key: str) -> tuple[int, bytes]:
    raw = key.encode("utf-8", "surrogatepass")
    return len(raw), raw


def _container(value: Any, width: int) -> bytes | None:
    """None when it does not fit into the small format."""
    is_object = isinstance(value, dict)
    keys = [key_order(key)[1] for key in sorted(value, key=key_order)] if is_object else []
    values = [value[key] for key in sorted(value, key=key_order)] if is_object else value
    at = 2 * width + len(values) * (width + 1) + len(keys) * (width + 2)
    key_entries, value_entries, tail = bytearray(), bytearray(), bytearray()
    try:
        for key in keys:
            key_entries += (at + len(tail)).to_bytes(width, "little") + len(key).to_bytes(2, "little")
            tail += key
        for element in values:
            kind, raw = _encode(element, is_large=width == 4)
            value_entries.append(kind)
            if kind in (_INLINED if width == 2 else _INLINED_LARGE):
                value_entries += raw.ljust(width, b"\xff" if raw[-1] & 0x80 and kind in {5, 7} else b"\0")
            else:
                value_entries += (at + len(tail)).to_bytes(width, "little")
                tail += raw
        head = len(values).to_bytes(width, "little") + (at + len(tail)).to_bytes(width, "little")
    except OverflowError:
        return None
    return bytes(head + key_entries + value_entries + tail)


# -- reading: containers become `Members` and list, everything else its text


class Members(list[tuple[str, Any]]):
    """Of an object, in the order they are stored; a broken one may repeat a key."""


def decode(raw: bytes, *, has_point_zero: bool = True) -> Any:
    return _Reader(raw, has_point_zero).read(raw[0], 1, len(raw), 0) if raw else "null"


def text(tree: Any) -> str:
    match tree:
        case Members():
            return "{" + ", ".join(f"{quote(key)}: {text(value)}" for key, value in tree) + "}"
        case list():
            return "[" + ", ".join(map(text, tree)) + "]"
        case _:
            return tree


def quote(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


class _Reader:
    def __init__(self, raw: bytes, has_point_zero: bool) -> None:
        self.raw = raw
        self.has_point_zero = has_point_zero
        self.left = len(raw)  # bytes that were not looked at yet

    def read(self, kind: int, at: int, end: int, depth: int) -> Any:
        if kind <= 3:
            return self._container(kind, at, end, depth)
        if kind == 4:
            literal = self._take(at, end, 1)[0]
            _require(literal < 3)
            return ("null", "true", "false")[literal]
        if kind in _INTEGERS:
            width, is_signed = _INTEGERS[kind]
            return str(int.from_bytes(self._take(at, end, width), "little", signed=is_signed))
        if kind == 11:
            return double_text(struct.unpack("<d", self._take(at, end, 8))[0], has_point_zero=self.has_point_zero)
        _require(kind in {12, 15})
        if kind == 12:
            return quote(characters(self._after_length(at, end)))
        return opaque_text(self._take(at, end, 1)[0], self._after_length(at + 1, end))

    def _take(self, at: int, end: int, size: int) -> bytes:
        _require(at + size <= end)
        return self.raw[at : at + size]

    def _number(self, at: int, end: int, width: int) -> int:
        return int.from_bytes(self._take(at, end, width), "little")

    def _spend(self, size: int) -> None:
        self.left -= size
        _require(self.left >= 0)

    def _after_length(self, at: int, end: int) -> bytes:
        size = 0
        for k in range(5):
            byte = self._number(at + k, end, 1)
            size |= (byte & 127) << 7 * k
            if byte < 128:
                self._spend(size)
                return self._take(at + k + 1, end, size)
        raise BrokenJsonError

    def _container(self, kind: int, at: int, end: int, depth: int) -> Any:
        _require(depth < 100)
        width, is_object = (4 if kind & 1 else 2), kind < 2
        count, size = self._number(at, end, width), self._number(at + width, end, width)
        header = 2 * width + count * (width + 1 + is_object * (width + 2))
        _require(at + size <= end and header <= size)
        self._spend(header)
        keys = [self._key(at, at + size, header, width, i) for i in range(count)] if is_object else []
        values = [self._value(at, at + size, header, width, count - i, depth) for i in range(count)]
        return Members(zip(keys, values, strict=True)) if is_object else values

    def _key(self, at: int, end: int, header: int, width: int, i: int) -> str:
        entry = at + 2 * width + i * (width + 2)
        start, size = at + self._number(entry, end, width), self._number(entry + width, end, 2)
        _require(start >= at + header)
        self._spend(size)
        return characters(self._take(start, end, size))

    def _value(self, at: int, end: int, header: int, width: int, rest: int, depth: int) -> Any:
        entry = at + header - rest * (width + 1)
        kind = self.raw[entry]
        if kind in (_INLINED if width == 2 else _INLINED_LARGE):
            return self.read(kind, entry + 1, entry + 1 + width, depth + 1)
        start = at + self._number(entry + 1, end, width)
        _require(at + header <= start < end)
        return self.read(kind, start, end, depth + 1)


def _require(is_fine: bool) -> None:
    if not is_fine:
        raise BrokenJsonError


def characters(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise BrokenJsonError from None


def double_text(value: float, *, has_point_zero: bool = True) -> str:
    """From the shortest digits, which Python finds by itself."""
    _require(math.isfinite(value))
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    while digits[-1] == 0 and len(digits) > 1:
        digits, exponent = digits[:-1], exponent + 1
    if digits == (0,):
        exponent = 0
    shown, point = "".join(map(str, digits)), len(digits) + exponent
    if -14 <= point <= 15 or len(digits) > point > 15:
        if point <= 0:
            shown = "0." + "0" * -point + shown
        elif point < len(digits):
            shown = shown[:point] + "." + shown[point:]
        else:
            shown += "0" * exponent + ".0" * has_point_zero
    else:
        shown = shown[0] + ("." + shown[1:] if len(shown) > 1 else "") + f"e{point - 1}"
    return "-" * sign + shown


def opaque_text(kind: int, raw: bytes) -> str:
    if kind == NEWDECIMAL:
        return _decimal_text(raw)
    if kind not in {TIMESTAMP, DATE, TIME, DATETIME}:
        lines = [base64.b64encode(raw[i : i + 57]).decode() for i in range(0, len(raw), 57)]
        return f'"base64:type{kind}:' + "\\n".join(lines) + '"'
    _require(len(raw) == 8)
    packed = int.from_bytes(raw, "little", signed=True)
    sign = "-" if packed < 0 else ""
    clock, micros = divmod(abs(packed), 1 << 24)
    whole, minute, second = clock >> 12, clock >> 6 & 63, clock & 63
    _require(micros < 1_000_000)
    if kind == TIME:
        _require(whole < 1024)
        return f'"{sign}{whole:02}:{minute:02}:{second:02}.{micros:06}"'
    year, month = divmod(whole >> 10, 13)
    _require(not sign and year < 10_000)
    day = f"{year:04}-{month:02}-{whole >> 5 & 31:02}"
    return f'"{day}"' if kind == DATE else f'"{day} {whole & 31:02}:{minute:02}:{second:02}.{micros:06}"'


def _decimal_text(raw: bytes) -> str:
    _require(len(raw) > 2)
    precision, scale, number = raw[0], raw[1], raw[2:]
    _require(0 < precision <= 81 and scale <= precision)
    whole = precision - scale
    groups = [whole % 9] + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9]
    _require(len(number) == sum(map(group_bytes, groups)))
    value = decode_decimal(number, precision, scale)
    _require(value is not None)  # a group may hold more than its digits
    digits = f"{abs(value):0{scale + 1}}"
    is_negative = not number[0] & 0x80
    shown = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return "-" * is_negative + shown
