"""Statements about accounts without the passwords in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schema.ddl import classify_statement_text
from penstock.schema.ddl.secret import mask_secrets, mask_secrets_in_place
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession
from tests.twins.strategy import examples

MARIADB = SqlDialect(ServerProfile(is_mariadb=True, version=101106))
ANSI = SqlDialect(ServerProfile(version=80000), SqlSession(SqlMode.ANSI_QUOTES))
FORMS = (
    "CREATE USER 'u'@'h' IDENTIFIED BY {}",
    "CREATE USER 'u'@'h' IDENTIFIED WITH 'caching_sha2_password' AS {} REQUIRE NONE",
    "GRANT ALL ON *.* TO 'u'@'h' IDENTIFIED BY PASSWORD {}",
    "SET PASSWORD FOR 'u'@'h'={}",
    "SET PASSWORD FOR 'u'@'h' = OLD_PASSWORD( {} )",
    "ALTER USER 'u'@'h' IDENTIFIED VIA ed25519 USING PASSWORD({}) OR unix_socket",
    "ALTER USER 'u'@'h' IDENTIFIED BY 'x' REPLACE {} RETAIN CURRENT PASSWORD, 'v'@'h' ACCOUNT LOCK",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD {}, HOST 'h')",
    "SET STATEMENT max_statement_time = 1 FOR SET PASSWORD = {}",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", ["'geheim'", '"geheim"', r"'ge\'geheim'", "'ge''geheim'", "0x67656865696D"])
def test_a_password_is_masked_and_nothing_else(form: str, secret: str) -> None:
    text = form.format(secret)
    for dialect in (MARIADB, ANSI):
        kind = classify_statement_text(text, dialect)
        masked = mask_secrets(text, kind, dialect)
        assert masked == form.format("'***'").replace("'x'", "'***'")
        in_place = mask_secrets_in_place(text, kind, dialect)
        assert len(in_place) == len(text)
        assert mask_secrets(in_place, kind, dialect).rstrip() == masked


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "routine",
    [
        "CREATE PROCEDURE p() BEGIN SET @a = 'x', @b = 'y'; SELECT 'z' AS 'w', password; {}; SET @c = 'v'; END",
        "CREATE DEFINER=`root`@`%` EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO {}",
    ],
)
def test_a_password_in_the_body_of_a_routine_is_masked_and_nothing_else(routine: str, form: str) -> None:
    text = routine.format(form.format("'geheim'"))
    kind = classify_statement_text(text, MARIADB)
    expected = routine.format(form.format("'***'").replace("BY 'x'", "BY '***'"))
    assert mask_secrets(text, kind, MARIADB) == expected
    in_place = mask_secrets_in_place(text, kind, MARIADB)
    assert mask_secrets(in_place, kind, MARIADB).rstrip() == expected
    assert len(in_place) == len(text)


@pytest.mark.parametrize("text", ["INSERT INTO t VALUES ('geheim')", "CREATE TABLE t (password CHAR(9) DEFAULT 'x')"])
def test_other_statements_stay_as_they_are(text: str) -> None:
    assert mask_secrets(text, classify_statement_text(text, MARIADB), MARIADB) == text


def test_a_statement_that_cannot_be_read_shows_nothing() -> None:
    text = "CREATE USER u IDENTIFIED BY 'geheim"
    kind = classify_statement_text("CREATE USER u", MARIADB)
    assert mask_secrets(text, kind, MARIADB) == "CREATE ***"
    assert mask_secrets_in_place(text, kind, MARIADB).rstrip() == "CREATE ***"


@examples(200)
@given(st.sampled_from(FORMS), st.text(st.characters(codec="utf-8", exclude_characters="'\"\\\0"), min_size=4))
def test_no_password_is_left(form: str, secret: str) -> None:
    raw = f"#{secret}#"
    text = form.format(f"'{raw}'")
    kind = classify_statement_text(text, MARIADB)
    assert raw not in mask_secrets(text, kind, MARIADB)
    assert raw not in mask_secrets_in_place(text, kind, MARIADB)
