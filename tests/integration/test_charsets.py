"""Every byte and every pair of bytes, of every charset, is the character that the server makes of it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from pymysql.cursors import Cursor

from penstock.binlog.values.charset import TABLES, UNITS, charset_of_collation_id
from penstock.binlog.values.text import to_utf8
from penstock.testing import DatabaseServer
from tools import make_charsets as made

UNKNOWN = made.UNKNOWN
# Both ends of each plane, and every 509th character between.
_PLANES = [0x10000 * plane + code for plane in range(17) for code in (*range(0, 0x10000, 509), 0xFFFD, 0xFFFE, 0xFFFF)]
_CHARACTERS = [chr(code) for code in _PLANES if not 0xD800 <= code < 0xE000]
_ENCODINGS = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}


@pytest.fixture(params=("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"))
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def cursor(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> Iterator[Cursor]:
    with server.connect(database=database(server), charset="utf8mb4") as connection, connection.cursor() as cursor:
        yield cursor


def charsets_of(cursor: Cursor) -> set[str]:
    cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
    return {name for (name,) in cursor.fetchall()}


def decoded(charset: str, sequences: Iterable[bytes]) -> dict[bytes, str]:
    """Those that are one character for us, and that character."""
    values = list(sequences)
    lengths = np.array([len(value) for value in values], np.int32)
    data = np.frombuffer(b"".join(values), np.uint8)
    bounds, raw = to_utf8(charset, data, (np.cumsum(lengths) - lengths).astype(np.int32), lengths)
    texts = [raw[a:b].tobytes().decode() for a, b in pairwise(bounds)]
    return {value: text for value, text in zip(values, texts, strict=True) if len(text) == 1}


def known(characters: dict[bytes, str]) -> dict[bytes, str]:
    return {sequence: character for sequence, character in characters.items() if character != UNKNOWN}


@pytest.mark.parametrize(
    ("longest", "sequences"), [({1}, made.BYTES), ({2, 3, 4}, made.BYTES + made.PAIRS)], ids=["bytes", "pairs"]
)
def test_every_charset(cursor: Cursor, longest: set[int], sequences: list[bytes]) -> None:
    made.store(cursor, sequences)
    charsets = {charset for charset, most in TABLES.items() if most in longest} & charsets_of(cursor)
    assert len(charsets) >= 8
    for charset in charsets:
        server, ours = made.converted(cursor, charset), decoded(charset, sequences)
        assert known(server) == known(ours), charset
        # A character that Unicode does not have is one U+FFFD, not one for each of its bytes.
        assert {each for each in server if each[0] >= 0x80} <= ours.keys(), charset


def test_longer_sequences(cursor: Cursor) -> None:
    made.store(cursor, made.TRIPLES)
    for charset in ("ujis", "eucjpms"):
        server = made.converted(cursor, charset)
        assert len(known(server)) > 7000
        assert known(server) == known(decoded(charset, made.TRIPLES)), charset
    if "gb18030" in charsets_of(cursor):
        # All of the first plane, and of the rest every 997th.
        fours = made.FOURS + [made.four_bytes(number) for number in range(len(made.FOURS), 126 * 12_600, 997)]
        made.store(cursor, fours)
        server = made.converted(cursor, "gb18030")
        assert len(server) == len(fours)
        assert server == decoded("gb18030", fours)


def test_unicode_in_numbers(cursor: Cursor) -> None:
    for charset in UNITS:
        characters = _CHARACTERS if charset != "ucs2" else [each for each in _CHARACTERS if ord(each) < 0x10000]
        sequences = {character.encode(_ENCODINGS[charset]): character for character in characters}
        made.store(cursor, sequences)
        assert made.converted(cursor, charset) == decoded(charset, sequences) == sequences, charset


def test_every_collation_of_the_server_has_its_charset(cursor: Cursor) -> None:
    charsets = made.collations(cursor)
    assert len(charsets) > 200
    assert {number: charset_of_collation_id(number) for number in charsets} == charsets
