"""Java's `.properties` files, and what Spring makes of `${key:default}` in them.

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
_DEEPEST = 32


def parse_properties(data: bytes, name: str) -> dict[str, str]:
    """A key that comes twice has its last value. `name` is for complaints."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(_text(data)):
        key, value = _split(line)
        try:
            found[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ConfigurationError(f"{name}, line {number}: {error}") from None
    return found


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """With the number of the first natural line of each."""
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


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(_BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANKS)
    return line[:at], rest


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match["hex"]:
            return chr(int(match["hex"], 16))
        if match["char"] == "u":
            raise ValueError("\\u needs four hex digits")
        return _NAMED.get(match["char"], match["char"])

    # Java writes what is beyond 16 bits as two surrogates.
    joined = _ESCAPE.sub(one, text).encode("utf-16", "surrogatepass")
    try:
        return joined.decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a \\u is half of a character") from None


def resolve(text: str, values: Mapping[str, str], depth: int = 0) -> str:
    """`${key:default}` by the values; both may hold more of them. What is not known stays as it is written."""
    if depth > _DEEPEST:
        raise ConfigurationError("a property refers to itself, by way of others")
    done, at = list[str](), 0
    while (start := text.find("${", at)) >= 0 and (end := _closing(text, start + 2)) >= 0:
        inner = resolve(text[start + 2 : end], values, depth + 1)
        key, colon, default = inner.partition(":")
        value = values.get(inner, values.get(key))
        unknown = default if colon else f"${{{inner}}}"
        done += (text[at:start], unknown if value is None else resolve(value, values, depth + 1))
        at = end + 1
    return "".join(done) + text[at:]


def _closing(text: str, at: int) -> int:
    """Where the brace is closed that was opened before `at`; -1 when it is not."""
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
