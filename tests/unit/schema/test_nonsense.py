"""Whatever the text is, it is understood or it is a DdlError: nothing else comes out."""

import random
import re
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schema.catalogue import Catalogue
from penstock.schema.ddl import DdlError
from penstock.schema.dialect import ServerProfile, SqlMode, SqlSession
from tests.support.ddl_cases import altering, charsets, creating, keys, types

SERVERS = {
    "mariadb": ServerProfile(is_mariadb=True, version=101106),
    "mysql57": ServerProfile(version=50722),
    "mysql9": ServerProfile(version=90700),
}
_PIECES = re.compile(r"\s+|`[^`]*`|'[^']*'|\w+|.", re.DOTALL)


def statements(release: str) -> list[tuple[Catalogue, str]]:
    """All that the integration tests run on a server, each with the tables before it."""
    pairs: list[tuple[Catalogue, str]] = []
    for module in (types, charsets, creating, altering, keys):
        for topic in module.TOPICS:
            catalogue = Catalogue(SERVERS[release]).apply("CREATE DATABASE d").catalogue
            for statement in topic.statements(release):
                text = statement.replace("{db}", "d")
                pairs.append((catalogue, text))
                with suppress(DdlError):
                    catalogue = catalogue.apply(text, "d").catalogue
    return pairs


CASES = [case for release in SERVERS for case in statements(release)]
WORDS = sorted({word for _, statement in CASES for word in _PIECES.findall(statement) if word.strip()})


def run(catalogue: Catalogue, text: str, session: SqlSession) -> None:
    for way in (catalogue.apply, catalogue.apply_or_skip):
        with suppress(DdlError):
            way(text, "d", session)


@given(
    st.sampled_from(CASES),
    st.sampled_from(
        ["ALTER TABLE {t}", "ALTER TABLE {t} ADD", "CREATE TABLE n (", "CREATE", "DROP", "RENAME TABLE {t}"]
    ),
    st.lists(st.sampled_from(WORDS), max_size=14),
    st.sampled_from([SqlMode(0), SqlMode.ANSI_QUOTES, SqlMode.STRICT_ALL_TABLES]),
)
@settings(max_examples=300)
def test_any_words(case: tuple[Catalogue, str], start: str, words: list[str], mode: SqlMode) -> None:
    catalogue, _ = case
    table = next(iter(catalogue.table_names()), None)
    run(catalogue, " ".join([start.format(t=f"`{table.table}`" if table else "t"), *words]), SqlSession(mode))


@given(st.sampled_from(CASES), st.integers(0, 2**32))
@settings(max_examples=500)
def test_statements_with_something_wrong(case: tuple[Catalogue, str], seed: int) -> None:
    """A piece is missing, twice, another one, or in another position; or the end is."""
    catalogue, statement = case
    chance = random.Random(seed)
    pieces = _PIECES.findall(statement)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(pieces))
        match chance.randrange(5):
            case 0:
                pieces[at] = ""
            case 1:
                pieces[at] *= 2
            case 2:
                pieces[at] = f" {chance.choice(WORDS)} "
            case 3:
                other = chance.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _:
                del pieces[at + 1 :]
    run(catalogue, "".join(pieces), SqlSession())
