"""Whether a value that mysqlbinlog printed is the value that was decoded.

The tool prints bytes, not text, and numbers of labels, not labels: there the SELECT of the same row stands between,
which shows both. A float it prints with six digits only. Dates that no calendar has it prints as they are stored.
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.integration.types.column import Column, Kind
from tests.integration.types.expectation import expected_value
from tests.integration.types.tool import ToolValue
from tests.integration.types.workload import Log, Shown

_DATED = {Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP}
# A text, which stays as it is, or a number that ends in `.0`.
_WHOLE = re.compile(r'("(?:[^"\\]|\\.)*"|-?\d+)(?:\.0(?!\d))?')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPED = re.compile(rb"\\(x[01][0-9a-f]|.)", re.DOTALL)
_HIDDEN = re.compile(rb"\\x([01][0-9a-f])")
_LETTERS = {b"\b": b"\\b", b"\t": b"\\t", b"\n": b"\\n", b"\f": b"\\f", b"\r": b"\\r"}


def agrees(log: Log, column: Column, printed: ToolValue, ours: Any, shown: Shown) -> bool:
    """`ours` is as `decoding.comparable` gives it."""
    if printed.is_null or ours is None:
        is_no_date = shown[0] is not None and column.kind in _DATED and expected_value(log, column, shown) is None
        return ours is None and (is_no_date if not printed.is_null else shown[0] is None and printed.text == b"NULL")
    return _is_same(log, column, printed, ours, shown)


def _is_same(log: Log, column: Column, printed: ToolValue, ours: Any, shown: Shown) -> bool:
    text = printed.text
    match column.kind:
        case Kind.TEXT | Kind.BYTES | Kind.BINARY | Kind.ADDRESS | Kind.GEOMETRY:
            is_same = _is_bytes(column, printed, bytes.fromhex(shown[0] or ""))
        case Kind.ENUM | Kind.SET | Kind.BIT:
            is_same = str(_number(column, text.decode())) == shown[0]
        case Kind.DATE:
            is_same = text.decode().strip("'").replace(":", "-") == shown[0]
        case Kind.TIME | Kind.DATETIME:
            is_same = text.decode().strip("'") == shown[0]
        case Kind.JSON:
            is_same = not printed.is_whole or _is_document(log, text, expected_value(log, column, shown))
        case _:
            return text.decode().rstrip() == _RENDERED[column.kind](column, ours)
    # What the tool prints there is not our value, but what the SELECT shows beside it.
    return is_same and expected_value(log, column, shown) == ours


def _rendered_integer(column: Column, ours: int) -> str:
    """The tool does not look at signs: it shows both numbers when they differ."""
    signed = ours - (1 << column.size) if ours >> (column.size - 1) == 1 else ours
    return str(signed) if signed >= 0 else f"{signed} ({signed + (1 << column.size)})"


def _rendered_decimal(column: Column, ours: Any) -> str:
    sign, digits, exponent = ours
    text = "".join(map(str, digits)).rjust(1 - exponent, "0")
    whole, part = (text[:exponent], text[exponent:]) if exponent else (text, "")
    return f"{'-' if sign else ''}{whole}{'.' if part else ''}{part}"


def _rendered_stamp(column: Column, ours: int) -> str:
    seconds, part = divmod(ours, 1_000_000)
    text = f"{seconds}.{part:06d}"
    # Only zeros may be cut.
    return text.removesuffix("0" * (6 - column.size)).rstrip(".")


def _is_document(log: Log, text: bytes, shown: str) -> bool:
    """The tool leaves the quotes off a document that is one text."""
    plain = json.loads(shown) if shown.startswith('"') else shown
    rendered = _escaped(plain.encode(), like_mysql=True)
    if log.server != "mysql57" or text == rendered:
        return text == rendered
    # It shows the double 1.0 as `1`; the tool, which is a later one's, prints `1.0`.
    return _WHOLE.sub(r"\1", _unescaped(text[1:-1]).decode()) == _WHOLE.sub(r"\1", plain)


_RENDERED: Mapping[Kind, Callable[[Column, Any], str]] = {
    Kind.INTEGER: _rendered_integer,
    Kind.YEAR: lambda _, ours: str(ours or 1900),
    Kind.FLOAT: lambda _, ours: f"{float.fromhex(ours):.6g}",
    Kind.DOUBLE: lambda _, ours: f"{float.fromhex(ours):.20g}",
    Kind.VECTOR: lambda _, ours: f"[{','.join(f'{float.fromhex(item):.5e}' for item in ours)}]",
    Kind.DECIMAL: _rendered_decimal,
    Kind.TIMESTAMP: _rendered_stamp,
}


def _number(column: Column, text: str) -> int:
    bits = text.removeprefix("b'").removesuffix("'")
    if column.kind is Kind.ENUM:
        return int(text)
    if column.kind is Kind.BIT:
        return int(bits, 2)
    # The bytes of a SET come lowest first.
    return sum(int(bits[i : i + 8], 2) << i for i in range(0, len(bits), 8))


def _is_bytes(column: Column, printed: ToolValue, stored: bytes) -> bool:
    if column.kind in {Kind.BINARY, Kind.ADDRESS}:
        stored = stored.rstrip(b"\0")
    if "COMPRESSED" in printed.kind:
        return _expanded(_HIDDEN.sub(lambda match: bytes.fromhex(match[1].decode()), printed.text[1:-1])) == stored
    return printed.text in {_escaped(stored, like_mysql=True), _escaped(stored, like_mysql=False)}


def _escaped(raw: bytes, *, like_mysql: bool) -> bytes:
    """MariaDB's tool leaves quotes and backslashes alone, and has no letters for control characters."""
    if like_mysql:
        raw = raw.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    letters = _LETTERS if like_mysql else {}
    return b"'" + _CONTROL.sub(lambda match: letters.get(match[0], b"\\x%02x" % match[0][0]), raw) + b"'"


def _unescaped(text: bytes) -> bytes:
    """What `_escaped` was made from, like MySQL."""
    letters = {letter[1:]: plain for plain, letter in _LETTERS.items()}

    def plain_of(match: "re.Match[bytes]") -> bytes:
        what = match[1]
        return bytes.fromhex(what[1:].decode()) if len(what) == 3 else letters.get(what, what)

    return _ESCAPED.sub(plain_of, text)


def _expanded(raw: bytes) -> bytes:
    """A value of MariaDB's COMPRESSED columns."""
    if not raw or not raw[0]:
        return raw[1:]
    return zlib.decompress(raw[1 + (raw[0] & 7) :], -15 if raw[0] & 8 else 15)
