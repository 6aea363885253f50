"""Collation number → charset name, as the servers number them.

Only the charsets whose bytes are UTF-8 already, and `binary`, are decoded so far; the others are named so that
a refusal can name them.
"""

UTF8 = {"utf8mb4", "utf8mb3", "utf8", "ascii"}  # charsets whose bytes are UTF-8
_UTF8MB4 = {45, 46, *range(224, 248), *range(255, 324)}
_UTF8MB3 = {33, 76, 83, *range(192, 216), 223}
_OTHERS = {
    "ascii": {11, 65},
    "binary": {63},
    "latin1": {5, 8, 15, 31, 47, 48, 49, 94},
    "gbk": {28, 87},
    "gb18030": {248, 249, 250},
    "big5": {1, 84},
    "ucs2": {35, 90, *range(128, 152), 159},
    "utf16": {54, 55, 56, 62, *range(101, 125)},
    "utf32": {60, 61, *range(160, 184)},
}
_NAMES = (
    {number: name for name, numbers in _OTHERS.items() for number in numbers}
    | dict.fromkeys(_UTF8MB4, "utf8mb4")
    | dict.fromkeys(_UTF8MB3, "utf8mb3")
)


def charset_of(collation: int) -> str:
    return _NAMES.get(collation, f"of collation {collation}")
