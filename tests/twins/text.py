"""Twin of the charset kernels: one value → text, character by character.

The tables are the ones under test: what they hold is compared with real servers in tests/integration/test_charsets.py.
"""

import unicodedata
from functools import cache
from typing import Any

import numpy as np

from penstock.binlog.values import text
from penstock.binlog.values.charset import TABLES, UTF8

UNKNOWN = "\ufffd"


def decode(charset: str, raw: bytes) -> str:
    if charset in UTF8:
        return raw.decode("utf-8", "replace")
    step = {"ucs2": _ucs2, "utf16": _utf16, "utf16le": _utf16le, "utf32": _utf32}.get(charset)
    text = ""
    while raw:
        size, character = step(raw) if step else _by_table(charset, raw)
        text += character
        raw = raw[size:]
    return text


def _ucs2(raw: bytes) -> tuple[int, str]:
    return 2, _character(int.from_bytes(raw[:2], "big")) if len(raw) > 1 else UNKNOWN


def _utf16(raw: bytes) -> tuple[int, str]:
    first, second = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:4], "big")
    if len(raw) >= 4 and 0xD800 <= first <= 0xDBFF and 0xDC00 <= second <= 0xDFFF:
        return 4, raw[:4].decode("utf-16-be")
    return _ucs2(raw)


def _utf16le(raw: bytes) -> tuple[int, str]:
    if len(raw) < 2:
        return 2, UNKNOWN
    low = raw[3:1:-1] if len(raw) >= 4 else b""
    return _utf16(raw[1::-1] + low)


def _utf32(raw: bytes) -> tuple[int, str]:
    return 4, _character(int.from_bytes(raw[:4], "big")) if len(raw) >= 4 else UNKNOWN


def _character(code: int) -> str:
    return UNKNOWN if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF else chr(code)


def _by_table(charset: str, raw: bytes) -> tuple[int, str]:
    """The longest sequence that the table has, shorter ones first; a byte that begins none stands alone."""
    longest, table = TABLES[charset], _table(charset)
    if longest == 1:
        return 1, chr(table[raw[0]])
    if raw[0] < 0x80:
        return 1, chr(raw[0])
    if len(raw) >= 2 and table[raw[0] << 8 | raw[1]]:
        return 2, chr(table[raw[0] << 8 | raw[1]])
    if longest == 3 and len(raw) >= 3 and raw[0] == 0x8F and _table(f"{charset}.3")[raw[1] << 8 | raw[2]]:
        return 3, chr(_table(f"{charset}.3")[raw[1] << 8 | raw[2]])
    if longest == 4 and len(raw) >= 4 and _is_four(raw):
        return 4, _four(raw, _table(f"{charset}.4"))
    return 1, chr(table[raw[0]]) if table[raw[0]] else UNKNOWN


def _is_four(raw: bytes) -> bool:
    return all(0x81 <= byte <= 0xFE for byte in (raw[0], raw[2])) and all(
        0x30 <= byte <= 0x39 for byte in (raw[1], raw[3])
    )


def _four(raw: bytes, table: Any) -> str:
    number = ((raw[0] - 0x81) * 10 + raw[1] - 0x30) * 1260 + (raw[2] - 0x81) * 10 + raw[3] - 0x30
    if number < len(table):
        return chr(table[number])
    first = 15 * 12_600  # 0x90308130
    return chr(0x10000 + number - first) if first <= number < first + 0x100000 else UNKNOWN


@cache
def _table(name: str) -> list[int]:
    with np.load(text._FILE) as tables:
        return np.cumsum(tables[name], dtype=np.uint16).tolist()


def is_printable(raw: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters, but for tabs and the ends of lines."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return not any(unicodedata.category(char) == "Cc" and char not in "\t\r\n" for char in text)
