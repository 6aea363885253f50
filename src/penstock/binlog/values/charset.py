"""The servers' charsets: which there are, and which a collation's number stands for.

The numbers are in collations.txt, made by tools/make_charsets.py from MySQL and MariaDB, which number alike where both
have a collation. Collations that a server's administrator added are not among them; MySQL proposes 1024–2047 for such,
where MariaDB has other collations.
"""

from functools import cache
from pathlib import Path

UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
"""Charsets whose bytes are UTF-8."""

UNITS = {"ucs2": (2, 0, 0), "utf16": (2, 0, 1), "utf16le": (2, 1, 1), "utf32": (4, 0, 0)}
"""Charsets of numbers: bytes of each, whether the lowest comes first, whether two can be one character."""

TABLES = {
    **dict.fromkeys(
        ["armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek",
         "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman",
         "swe7", "tis620"],
        1,
    ),
    **dict.fromkeys(["big5", "cp932", "euckr", "gb2312", "gbk", "sjis"], 2),
    **dict.fromkeys(["eucjpms", "ujis"], 3),
    "gb18030": 4,
}  # fmt: skip
"""Charsets that have a table, and the most bytes of a character in each."""

TEXT = UTF8 | UNITS.keys() | TABLES.keys()
"""Every charset there is but `binary`."""

NO_COLLATION = 0
"""In a table map that was completed: the charset of this column is not known. Servers write no such number."""

_FILE = Path(__file__).with_name("collations.txt")


def charset_of_collation_id(collation: int) -> str:
    """Return the charset of a collation's number."""
    return _names().get(collation, f"of collation {collation}")


@cache
def collation_id_of(charset: str) -> int:
    """Return the lowest collation number of a charset; 0 if no charset has this name."""
    return min((number for number, name in _names().items() if name == charset), default=0)


@cache
def _names() -> dict[int, str]:
    names: dict[int, str] = {}
    for line in _FILE.read_text(encoding="ascii").splitlines():
        charset, *ranges = line.split()
        for each in ranges:
            first, _, last = each.partition("-")
            names.update(dict.fromkeys(range(int(first), int(last or first) + 1), charset))
    return names
