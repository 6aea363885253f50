"""Operations of JSON diffs in plain Python, and values as SQL expressions."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.twins.json import BrokenJsonError, Opaque, Unsigned, decode, double_text, encode, key_order, text
from tests.twins.json_diff import INSERT, REMOVE, take

_VARCHAR = 15
_QUOTED = str.maketrans({"'": "\\'", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1a": "\\Z"})
Operation = tuple[str, str, str | None]


def operations(raw: bytes) -> list[Operation]:
    """Name, path and the JSON text of the value of each diff."""
    decoded: list[Operation] = []
    at = 0
    while at < len(raw):
        code = raw[at]
        path, at = take(raw, at + 1)
        value = None
        if code != REMOVE:
            document, at = take(raw, at)
            if not document:
                raise BrokenJsonError
            value = text(decode(document))
        if code > REMOVE or path[:1] != b"$":
            raise BrokenJsonError
        name = "array_insert" if code == INSERT and path.endswith(b"]") else ("replace", "insert", "remove")[code]
        try:
            decoded.append((name, path.decode(), value))
        except UnicodeDecodeError:
            raise BrokenJsonError from None
    return decoded


def sql(value: Any) -> str:  # noqa: PLR0911 - a branch per type
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case Unsigned():
            return f"CAST({int(value)} AS UNSIGNED)"
        case int():
            return str(value)
        case float():
            shown = double_text(value)
            return shown if "e" in shown else f"{shown}e0"
        case str():
            return _quoted(value)
        case dict():
            pairs = (f"{_quoted(key)}, {sql(value[key])}" for key in sorted(value, key=key_order))
            return f"JSON_OBJECT({', '.join(pairs)})"
        case list():
            return f"JSON_ARRAY({', '.join(map(sql, value))})"
        case _:
            return _opaque(value)


def _opaque(value: Any) -> str:
    printed = text(decode(encode(value)))
    match value:
        case Decimal():
            scale = -int(value.as_tuple().exponent)
            return f"CAST({printed} AS DECIMAL({max(len(value.as_tuple().digits), scale, 1)},{scale}))"
        case Opaque() if value.kind == _VARCHAR:
            return f"X'{value.raw.hex().upper()}'"
        case Opaque():
            return f"'{printed[1:-1]}'"
        case timedelta():
            return f"TIME'{printed[1:-1]}'"
        case datetime():
            return f"TIMESTAMP'{printed[1:-1]}'"
        case _:
            assert isinstance(value, date)
            return f"DATE'{printed[1:-1]}'"


def _quoted(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BrokenJsonError from None
    return f"'{value.translate(_QUOTED)}'"
