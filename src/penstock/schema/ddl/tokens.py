"""SQL text → tokens, as the servers cut it.

Comments vanish, except versioned ones (`/*!50100 … */`, `/*M!100401 … */`) for servers of that version or later: what
they enclose counts. Strings and quoted names come without quotes and escapes.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import cache
from typing import NamedTuple

from penstock.schema.ddl.problem import DdlError
from penstock.schema.dialect import SqlDialect, SqlMode

_IDENT = r"0-9A-Za-z$_\x80-\U0010ffff"
_ESCAPE = re.compile(r"\\(.)|(['\"])\2", re.DOTALL)
_PLAIN_ESCAPE = re.compile(r"(['\"])\1")
_MEANT = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_COMMENT_EDGE = re.compile(r"/\*|\*/")
# MariaDB passes over what is meant for MySQL from 5.7 on.
_MYSQL_ONLY = range(50700, 100000)


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()
    NAME = auto()  # a quoted one
    STRING = auto()
    NUMBER = auto()
    HEX = auto()
    BITS = auto()
    SIGN = auto()
    END = auto()


class Token(NamedTuple):
    """A token of a statement. `word` is for comparing: a word in capitals, or a sign; empty for what is quoted."""

    kind: TokenKind
    value: str
    word: str
    at: int


def tokenize(text: str, dialect: SqlDialect) -> Iterator[Token]:  # noqa: C901, PLR0912 - one branch per kind of token
    """Yield all tokens of a statement, then END."""
    has_ansi_quotes = dialect.has_mode(SqlMode.ANSI_QUOTES)
    has_escapes = not dialect.has_mode(SqlMode.NO_BACKSLASH_ESCAPES)
    match = _pattern(has_ansi_quotes, has_escapes).match
    at, depth, size = 0, 0, len(text)
    while at < size:
        matched = match(text, at)
        if matched is None:
            raise DdlError("a quote without an end", text, at)
        group, begin, at = matched.lastgroup, at, matched.end()
        if group == "space":
            continue
        if group == "word":
            word = matched[0]
            yield Token(TokenKind.WORD, word, word.upper(), begin)
        elif group == "name":
            quoted = matched[0]
            yield Token(TokenKind.NAME, quoted[1:-1].replace(quoted[0] * 2, quoted[0]), "", begin)
        elif group == "string":
            yield Token(TokenKind.STRING, _unescape(matched[0], has_escapes), "", begin)
        elif group == "number":
            yield Token(TokenKind.NUMBER, matched[0], "", begin)
        elif group == "versioned":
            if _is_active(matched["mark"], matched["version"], dialect):
                depth += 1
            else:
                at = _comment_end(text, begin)
        elif group == "end":
            if depth:
                depth -= 1
            else:
                at = begin + 1
                yield Token(TokenKind.SIGN, "*", "*", begin)
        elif group == "sign":
            sign = matched[0]
            yield Token(TokenKind.SIGN, sign, sign, begin)
        else:
            digits = matched[0][2:].rstrip("'")
            yield Token(TokenKind.HEX if group == "hex" else TokenKind.BITS, digits, "", begin)
    yield Token(TokenKind.END, "", "", size)


def token_end(text: str, token: Token, dialect: SqlDialect) -> int:
    """Return where a token of `tokenize` ends in its text."""
    has_escapes = not dialect.has_mode(SqlMode.NO_BACKSLASH_ESCAPES)
    matched = _pattern(dialect.has_mode(SqlMode.ANSI_QUOTES), has_escapes).match(text, token.at)
    return matched.end() if matched else token.at


@cache
def _pattern(has_ansi_quotes: bool, has_escapes: bool) -> re.Pattern[str]:
    def text(quote: str) -> str:
        inner, escape = (rf"[^{quote}\\]*", r"\\.|") if has_escapes else (rf"[^{quote}]*", "")
        return rf"{quote}{inner}(?:(?:{escape}{quote}{quote}){inner})*{quote}"

    names = [r"`[^`]*(?:``[^`]*)*`"]
    strings = [f"[nN]?{text(chr(39))}"]
    if has_ansi_quotes:
        names.append(r'"[^"]*(?:""[^"]*)*"')
    else:
        strings.append(text('"'))
    groups = {
        "space": r"[ \t\n\v\f\r]+|\#[^\n]*|--(?:[\x00-\x20][^\n]*|$)|/\*(?!M?!).*?(?:\*/|\Z)",
        "versioned": r"/\*(?P<mark>M?)!(?P<version>\d{5,6})?",
        "end": r"\*/",
        "hex": rf"0x[0-9a-fA-F]+(?![{_IDENT}])|[xX]'[0-9a-fA-F]*'",
        "bits": rf"0b[01]+(?![{_IDENT}])|[bB]'[01]*'",
        "string": "|".join(strings),
        "name": "|".join(names),
        "number": rf"\d+[eE][+-]?\d+(?![{_IDENT}])|\d+(?:\.\d*(?:[eE][+-]?\d+)?)?(?![{_IDENT}])"
        rf"|(?<![{_IDENT}`\"])\.\d+(?:[eE][+-]?\d+)?",
        "word": rf"[{_IDENT}]+",
        "sign": r"[^'\"`]",
    }
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in groups.items()), re.DOTALL)


def _unescape(quoted: str, has_escapes: bool) -> str:
    inner = quoted[2:-1] if quoted[0] in "nN" else quoted[1:-1]
    quote = quoted[-1]
    if has_escapes and "\\" in inner:
        return _ESCAPE.sub(
            lambda matched: _MEANT.get(matched[1], matched[1]) if matched[1] else _halve_quotes(matched, quote), inner
        )
    if quote in inner:
        return _PLAIN_ESCAPE.sub(lambda matched: _halve_quotes(matched, quote), inner)
    return inner


def _halve_quotes(matched: re.Match[str], quote: str) -> str:
    """Replace two quotes by one; two quotes of the other kind stay."""
    return quote if matched[0][0] == quote else matched[0]


def _is_active(mark: str, version: str | None, dialect: SqlDialect) -> bool:
    server = dialect.server
    if mark and not server.is_mariadb:
        return False
    number = int(version or 0)
    if server.is_mariadb and not mark and number in _MYSQL_ONLY:
        return False
    return number <= server.version


def _comment_end(text: str, begin: int) -> int:
    """Return the end of a comment that may contain others."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, begin):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)
