"""Text of SQL comes apart as the servers cut it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schema.ddl import DdlError
from penstock.schema.ddl.tokens import Token, TokenKind, tokenize
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

MYSQL = SqlDialect(ServerProfile(version=80400))
MARIADB = SqlDialect(ServerProfile(is_mariadb=True, version=101106))
ANSI = SqlDialect(ServerProfile(), SqlSession(SqlMode.ANSI_QUOTES))
NO_ESCAPES = SqlDialect(ServerProfile(), SqlSession(SqlMode.NO_BACKSLASH_ESCAPES))


def tokens(text: str, dialect: SqlDialect = MYSQL) -> list[Token]:
    tokens_read: list[Token] = []
    for token in tokenize(text, dialect):
        if token.kind is TokenKind.END:
            break
        tokens_read.append(token)
    return tokens_read


def values(text: str, dialect: SqlDialect = MYSQL) -> list[str]:
    return [token.value for token in tokens(text, dialect)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b\tc\nd", ["a", "b", "c", "d"]),
        ("`a``b` 'it''s' \"x\"\"y\"", ["a`b", "it's", 'x"y']),
        (r"'a\n\t\\\'\"\0\Z\b\%\_\q'", ["a\n\t\\'\"\0\x1a\b\\%\\_q"]),
        ("a/* b */c -- d\ne # f\ng--h", ["a", "c", "e", "g", "-", "-", "h"]),
        ("a --", ["a"]),
        ("1a 1e5 1.5 .5 t.5 0x1F 0xZ x'41' b'01' 0b01 n'x'",
         ["1a", "1e5", "1.5", ".5", "t", ".", "5", "1F", "0xZ", "41", "01", "01", "x"]),
        ("db.1x.`2`", ["db", ".", "1x", ".", "2"]),
        ("é $a _b ж字", ["é", "$a", "_b", "ж字"]),
        ("a*/b", ["a", "*", "/", "b"]),
        ("'a''' ''", ["a'", ""]),
        ("'\"\"' \"''\"", ['""', "''"]),
    ],
)  # fmt: skip
def test_cases(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "mysql", "mariadb"),
    [
        ("/*!b*/", ["b"], ["b"]),
        ("/*!50100 b*/ c", ["b", "c"], ["b", "c"]),
        ("/*!50701 b*/ c", ["b", "c"], ["c"]),
        ("/*!80000 b*/", ["b"], []),
        ("/*!90000 b*/", [], []),
        ("/*!100100 b*/", [], ["b"]),
        ("/*M! b*/ c", ["c"], ["b", "c"]),
        ("/*M!100400 b*/", [], ["b"]),
        ("/*M!990000 b /* c */ d */ e", ["e"], ["e"]),
        ("/*!99999 b /* c */ d */ e", ["e"], ["e"]),
        ("/*!40000 b /* c */ '*/' d */ e", ["b", "*/", "d", "e"], ["b", "*/", "d", "e"]),
    ],
)
def test_versioned_comments(text: str, mysql: list[str], mariadb: list[str]) -> None:
    assert (values(text), values(text, MARIADB)) == (mysql, mariadb)


def test_quotes_are_names_or_texts() -> None:
    assert [token.kind for token in tokens('"a"')] == [TokenKind.STRING]
    assert [token.kind for token in tokens('"a"', ANSI)] == [TokenKind.NAME]


def test_without_escapes() -> None:
    assert values(r"'a\' 'b\n'", NO_ESCAPES) == ["a\\", "b\\n"]


@pytest.mark.parametrize("text", ["'a", "`a", '"a', "'a\\'"])
def test_a_quote_without_an_end(text: str) -> None:
    with pytest.raises(DdlError, match="a quote without an end at character 2"):
        tokens("x " + text)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ESCAPED = {"\0": r"\0", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\x1a": r"\Z", "\\": r"\\"}


def _escaped(text: str, quote: str) -> str:
    return quote + "".join(ESCAPED.get(char, char) for char in text).replace(quote, quote * 2) + quote


PIECES = st.one_of(
    st.tuples(TEXT.map(lambda text: "`" + text.replace("`", "``") + "`"), TEXT).map(lambda pair: (pair[0], None)),
    TEXT.map(lambda text: (_escaped(text, "'"), text)),
    TEXT.map(lambda text: (_escaped(text, '"'), text)),
    TEXT.map(lambda text: ("/* " + text.replace("*/", "* /") + " */", "")),
    TEXT.map(lambda text: ("-- " + text.replace("\n", " ") + "\n", "")),
    TEXT.map(lambda text: ("#" + text.replace("\n", " ") + "\n", "")),
)


@given(st.lists(PIECES, max_size=8))
def test_names_texts_and_comments_come_back(pieces: list[tuple[str, str | None]]) -> None:
    expected: list[str] = []
    for written, value in pieces:
        if value is None:
            expected.append(written[1:-1].replace("``", "`"))
        elif not written.startswith(("/*", "-- ", "#")):
            expected.append(value)
    assert values(" ".join(written for written, _ in pieces)) == expected


@given(st.text(max_size=40))
def test_any_text_ends(text: str) -> None:
    with suppress(DdlError):
        assert all(text[token.at : token.at + 1] for token in tokens(text))
