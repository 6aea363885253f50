"""One statement in many spellings: spaces, comments, quotes and the case of words change nothing.

Templates have names in <>, texts in «»; all else is words, numbers and signs.
"""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schema.ddl import Statement, classify_statement_text, parse_statement
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

TEMPLATES = r"""
CREATE TABLE <t> ( <a b> INT UNSIGNED NOT NULL AUTO_INCREMENT , <c> VARCHAR ( 20 ) DEFAULT «it's» , PRIMARY KEY
    ( <a b> ) , UNIQUE KEY <u> ( <c> ( 3 ) DESC ) ) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COMMENT = «a, b; c»
CREATE TABLE IF NOT EXISTS <d> . <t> LIKE <e> . <select>
CREATE TABLE <t> ( <e> ENUM ( «a» , «b'c» , «\"» ) CHARACTER SET latin1 , <s> SET ( «x» , «y» ) ) COLLATE
    utf8_bin
CREATE TABLE <t> ( <a> INT , <g> INT GENERATED ALWAYS AS ( <a> + ( 1 * 2 ) ) STORED , CHECK ( <a> > 0 ) ,
    CONSTRAINT <k> FOREIGN KEY ( <a> ) REFERENCES <p> ( <id> ) ON DELETE SET NULL ON UPDATE CASCADE )
CREATE TABLE <t> ( <a> INT ) PARTITION BY RANGE ( <a> ) ( PARTITION <p0> VALUES LESS THAN ( 10 ) , PARTITION
    <p1> VALUES LESS THAN MAXVALUE )
CREATE TEMPORARY TABLE <t> ( <a> DATETIME ( 3 ) NOT NULL DEFAULT CURRENT_TIMESTAMP ( 3 ) ON UPDATE NOW ( 3 ) )
ALTER TABLE <t> ADD COLUMN <x> DECIMAL ( 10 , 2 ) UNSIGNED NOT NULL DEFAULT 1.5 AFTER <a b> , DROP COLUMN <y> ,
    CHANGE <old> <new> TEXT CHARACTER SET utf8 COLLATE utf8_bin FIRST
ALTER TABLE <d> . <t> ADD ( <a> INT , <b> INT , KEY <k> ( <a> , <b> ) ) , DROP PRIMARY KEY , ADD PRIMARY KEY (
    <b> )
ALTER TABLE <t> MODIFY COLUMN <a> BIGINT NULL COMMENT «, DROP <b>» , RENAME TO <e> . <u>
ALTER TABLE <t> RENAME COLUMN <a> TO <b> , RENAME INDEX <i> TO <j> , ALTER COLUMN <c> SET DEFAULT «x»
ALTER TABLE <t> CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin , ALGORITHM = COPY , LOCK = SHARED
ALTER TABLE <t> DEFAULT CHARACTER SET = latin1 , ORDER BY <a> , <b> DESC
ALTER TABLE <t> DROP FOREIGN KEY <f> , DROP INDEX <i> , DROP CONSTRAINT <c> , ADD CONSTRAINT <n> CHECK ( 1 = 1 )
ALTER TABLE <t> ADD <x> INT PARTITION BY HASH ( <x> ) PARTITIONS 4
ALTER TABLE <t> ALTER INDEX <i> INVISIBLE , ADD FULLTEXT INDEX <f> ( <a> , <b> ) , ADD SPATIAL KEY ( <g> )
CREATE UNIQUE INDEX <i> USING BTREE ON <d> . <t> ( <a> ( 10 ) ASC , <b> ) COMMENT «x»
DROP INDEX <i> ON <t> ALGORITHM = DEFAULT
DROP TABLE IF EXISTS <a> , <d> . <b c> CASCADE
RENAME TABLE <a> TO <tmp> , <b> TO <a> , <tmp> TO <d> . <b>
TRUNCATE TABLE <d> . <t>
CREATE DATABASE IF NOT EXISTS <d> DEFAULT CHARACTER SET = utf8 COLLATE = utf8_bin
ALTER DATABASE <d> CHARACTER SET latin1
DROP SCHEMA IF EXISTS <d>
CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW <v> AS SELECT 1
"""
MARIADB = r"""
CREATE OR REPLACE TABLE <t> ( <a> UUID , <b> INT INVISIBLE ) WITH SYSTEM VERSIONING
ALTER TABLE IF EXISTS <t> ADD COLUMN IF NOT EXISTS <a> INT , DROP COLUMN IF EXISTS <b> , DROP SYSTEM VERSIONING
SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE <t> WAIT 3 ADD <a> INET6 COMPRESSED = zlib
CREATE SEQUENCE <s> START WITH 3 INCREMENT BY 2
RENAME TABLE IF EXISTS <a> WAIT 5 TO <b>
"""
_PIECE = re.compile(r"<([^<>]+)>|«([^»]*)»|(\S+)")
_BARE = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = {"select"}
SPACES = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", " /* x, ( ' */ ", " -- ` x\n", ' # " x\n', "/**/", "/* ; */"])
MYSQL_SERVER, MARIADB_SERVER = ServerProfile(version=80400), ServerProfile(is_mariadb=True, version=101106)


@st.composite
def spelling(draw: st.DrawFn, template: str, modes: SqlMode) -> str:
    texts: list[str] = []
    for name, text, word in _PIECE.findall(template):
        if texts:
            texts.append(draw(SPACES))
        if name:
            texts.append(_name(draw, name, modes))
        elif word:
            texts.append(_word(draw, word))
        else:
            texts.append(_text(draw, text, modes))
    ending = draw(st.sampled_from(["", " ", ";", " ; ", "\n-- end", " /* end */"]))
    return draw(st.sampled_from(["", " ", "\n", "/* first */", "-- first\n"])) + "".join(texts) + ending


def _name(draw: st.DrawFn, name: str, modes: SqlMode) -> str:
    ways = ["`" + name.replace("`", "``") + "`"]
    if _BARE.fullmatch(name) and name not in _RESERVED:
        ways.append(name)
    if modes & SqlMode.ANSI_QUOTES:
        ways.append('"' + name + '"')
    return draw(st.sampled_from(ways))


def _text(draw: st.DrawFn, text: str, modes: SqlMode) -> str:
    has_escapes = not modes & SqlMode.NO_BACKSLASH_ESCAPES
    escaped = text.replace("\\", "\\\\") if has_escapes else text
    ways = ["'" + escaped.replace("'", "''") + "'"]
    if has_escapes:
        ways.append("'" + escaped.replace("'", "\\'") + "'")
    if not modes & SqlMode.ANSI_QUOTES:
        ways.append('"' + escaped.replace('"', '""') + '"')
    return draw(st.sampled_from(ways))


def _word(draw: st.DrawFn, word: str) -> str:
    spelled = draw(st.sampled_from([word, word.lower(), word.upper(), word.title()]))
    return draw(st.sampled_from([spelled, spelled, spelled, f"/*!{spelled}*/", f"/*!50003 {spelled} */"]))


def parsed(text: str, dialect: SqlDialect) -> Statement:
    kind = classify_statement_text(text, dialect)
    assert kind.changes_tables, text
    return parse_statement(text, kind, dialect, "db")


def plain(template: str) -> str:
    def replace_word(match: re.Match[str]) -> str:
        if match[1]:
            return f"`{match[1]}`"
        return match[3] or "'" + match[2].replace("\\", "\\\\").replace("'", "''") + "'"

    return _PIECE.sub(replace_word, template)


def lines(text: str) -> list[str]:
    """A line that begins with spaces continues the one before."""
    return re.sub(r"\n +", " ", text.strip()).split("\n")


CASES = [
    *((each, SqlDialect(MYSQL_SERVER)) for each in lines(TEMPLATES)),
    *((each, SqlDialect(MARIADB_SERVER)) for each in lines(TEMPLATES + MARIADB.lstrip())),
]


@pytest.mark.parametrize(("template", "dialect"), CASES)
def test_plain_spellings_are_understood(template: str, dialect: SqlDialect) -> None:
    parsed(plain(template), dialect)


@given(case=st.sampled_from(CASES), data=st.data())
@settings(max_examples=400)
def test_spellings_mean_the_same(case: tuple[str, SqlDialect], data: Any) -> None:
    template, dialect = case
    modes = data.draw(st.sampled_from([SqlMode(0), SqlMode.ANSI_QUOTES, SqlMode.NO_BACKSLASH_ESCAPES]))
    text = data.draw(spelling(template, modes))
    assert parsed(text, SqlDialect(dialect.server, SqlSession(modes))) == parsed(plain(template), dialect)
