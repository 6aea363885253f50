"""Parses Java's `.properties` files, and resolves Spring's `${key:default}` in them.

    natural line   a line of the file; blank ones and those that begin with # or ! say nothing
    logical line   natural lines, each but the last ending in an odd number of backslashes; leading blanks are dropped
    key            up to the first =, : or blank that has no backslash before it; blanks around that are dropped
    escapes        \\t \\n \\r \\f \\uXXXX; any other character after a backslash is itself

Java reads ISO-8859-1. Files that are UTF-8 are read as such, since that is what people write today.
"""

import re
from collections.abc import Iterator, Mapping

from penstock.errors import ConfigurationError

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(?:u(?P<hex>[0-9A-Fa-f]{4})|(?P<char>.))", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_MAX_DEPTH = 32


def parse_properties(data: bytes, name: str) -> dict[str, str]:
    """Parse a properties file; a key that comes twice has its last value. `name` is for error messages. Raises
    ConfigurationError."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(_decode(data)):
        key, value = _split_key(line)
        try:
            properties[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ConfigurationError(f"{name}, line {number}: {error}") from None
    return properties


def _decode(data: bytes) -> str:
    """Return the text of a file: UTF-8, or else ISO-8859-1 as in Java."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first natural line."""
    begun, parts = 0, list[str]()
    for number, natural in enumerate(_LINE_END.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            begun = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
        else:
            yield begun, "".join([*parts, line])
            parts = []
    if parts:
        yield begun, "".join(parts)


def _split_key(line: str) -> tuple[str, str]:
    """Return key and value of a line, both still escaped."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(_BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANKS)
    return line[:at], rest


def _unescape(text: str) -> str:
    """Return a key or value without backslash escapes. Raises ValueError."""

    def replace(match: re.Match[str]) -> str:
        if match["hex"]:
            return chr(int(match["hex"], 16))
        if match["char"] == "u":
            raise ValueError("\\u needs four hex digits")
        return _NAMED.get(match["char"], match["char"])

    # Java writes what is beyond 16 bits as two surrogates.
    joined = _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass")
    try:
        return joined.decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a \\u is half of a character") from None


def resolve_placeholders(text: str, values: Mapping[str, str], depth: int = 0) -> str:
    """Replace `${key:default}` by the values; both parts may contain more placeholders. Unknown keys without a default
    stay as they are."""
    if depth > _MAX_DEPTH:
        raise ConfigurationError("a property refers to itself, by way of others")
    parts, at = list[str](), 0
    while (start := text.find("${", at)) >= 0 and (end := _find_closing_brace(text, start + 2)) >= 0:
        inner = resolve_placeholders(text[start + 2 : end], values, depth + 1)
        key, colon, default = inner.partition(":")
        value = values.get(inner, values.get(key))
        unknown = default if colon else f"${{{inner}}}"
        parts += (text[at:start], unknown if value is None else resolve_placeholders(value, values, depth + 1))
        at = end + 1
    return "".join(parts) + text[at:]


def _find_closing_brace(text: str, at: int) -> int:
    """Return the index of the brace that closes a placeholder opened before `at`; -1 when there is none."""
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth, at = depth + 1, at + 2
            continue
        if text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return -1
