"""Which tables a statement of a log is about, as a filter of tables needs it."""

import pytest

from penstock.schema.ddl import classify_statement_text
from penstock.schema.ddl.data_tables import find_data_verb
from penstock.schema.ddl.subject import find_subject
from penstock.schema.dialect import ServerProfile, SqlDialect

MARIADB = SqlDialect(ServerProfile(is_mariadb=True, version=101106))


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("INSERT INTO t VALUES (1)", "d.t"),
        ("/* c */ insert ignore into `a`.`b c` (x) select 1 from z", "a.b c"),
        ("REPLACE LOW_PRIORITY x SET a = 1", "d.x"),
        ("INSERT INTO 1a VALUES (1)", "d.1a"),
        ("UPDATE t SET a = 1 WHERE id IN (SELECT id FROM z)", "d.t"),
        ("UPDATE a JOIN b.c AS x ON x.i = a.i SET x.v = 1, x.w = (SELECT 1, 2)", "b.c"),
        ("UPDATE a, b SET v = 1 WHERE a.i = b.i", "d.a d.b"),
        ("UPDATE a, (SELECT 1 i) s SET a.v = s.i", "d.a"),
        ("UPDATE x.t, y.t SET x.t.v = 1 WHERE x.t.i = y.t.i", "x.t"),
        ("UPDATE x.t, y.t SET v = 1", "x.t y.t"),
        ("UPDATE x.t, y.t SET t.v = 1", "x.t y.t"),
        ("DELETE y.t FROM x.t JOIN y.t USING (i)", "y.t"),
        ("update (a left join b on (a.i = b.i)) set a.x = 1", "d.a"),
        ("DELETE FROM t WHERE 1", "d.t"),
        ("DELETE QUICK FROM t PARTITION (p) WHERE x", "d.t"),
        ("DELETE a, x.* FROM a JOIN b AS x WHERE a.i = x.i", "d.a d.b"),
        ("DELETE FROM s.a, b USING s.a JOIN b", "s.a d.b"),
        ("WITH c AS (SELECT 1) UPDATE t, c SET t.a = 1", "d.t"),
        ("SET STATEMENT max_statement_time = 1 FOR DELETE FROM q.z", "q.z"),
        ("LOAD DATA INFILE 'INTO TABLE x' IGNORE INTO TABLE u FIELDS TERMINATED BY ','", "d.u"),
        ("SELECT f(1)", ""),
        ("UPDATE", ""),
        ("TRUNCATE TABLE x", "d.x"),
        ("TRUNCATE x.y", "x.y"),
        ("ALTER TABLE a RENAME TO x.b", "d.a x.b"),
        ("ALTER TABLE b FROBNICATE", "d.b"),
        ("RENAME TABLE a TO b, c.d TO e", "d.a d.b c.d d.e"),
        ("DROP TABLE a, b.c", "d.a b.c"),
        ("CREATE UNIQUE INDEX i ON t (a)", "d.t"),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE a, b.c", "d.a b.c"),
        ("FLUSH TABLES a, b", "d.a d.b"),
        ("FLUSH LOGS", ""),
        ("ALTER VIEW x.v AS SELECT 1", "x.v"),
        ("DROP VIEW IF EXISTS a, b", "d.a d.b"),
        ("CREATE DEFINER=`a`@`b` TRIGGER s.tr AFTER INSERT ON tt FOR EACH ROW SET @a = 1", "d.tt"),
        ("GRANT SELECT ON a.b TO c", ""),
    ],
)
def test_the_tables_that_it_changes(text: str, tables: str) -> None:
    subject = find_subject(text, classify_statement_text(text, MARIADB), MARIADB, "d")
    assert [str(table) for table in subject.tables] == [f"{name}" for name in _split(tables)]


def _split(tables: str) -> list[str]:
    return ["a.b c"] if tables == "a.b c" else tables.split()


@pytest.mark.parametrize(
    ("text", "database"),
    [
        ("CREATE DATABASE IF NOT EXISTS foo", "foo"),
        ("ALTER DATABASE CHARACTER SET utf8mb4", "d"),
        ("DROP SCHEMA foo", "foo"),
        ("CREATE PROCEDURE z.p() DELETE FROM t", "z"),
        ("CREATE DEFINER=root@localhost FUNCTION f() RETURNS INT RETURN 1", "d"),
        ("DROP TRIGGER s.x", "s"),
        ("CREATE TABLESPACE t", ""),
        ("CREATE USER u", ""),
    ],
)
def test_or_else_the_database_that_it_belongs_to(text: str, database: str) -> None:
    subject = find_subject(text, classify_statement_text(text, MARIADB), MARIADB, "d")
    assert (subject.tables, subject.database) == ((), database)


def test_the_values_of_a_long_insert_are_not_read() -> None:
    """An apostrophe without an end behind the name would be an error of who reads on."""
    text = "INSERT INTO t VALUES ('it is not closed"
    assert [
        str(table) for table in find_subject(text, classify_statement_text(text, MARIADB), MARIADB, "d").tables
    ] == ["d.t"]


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("/* c */ Insert INTO t VALUES (1)", "INSERT"),
        ("WITH c AS (SELECT 1) DELETE FROM t", "DELETE"),
        ("SET STATEMENT a = 1 FOR UPDATE t SET x = 1", "UPDATE"),
        ("'", ""),
    ],
)
def test_the_word_that_says_what_it_does(text: str, verb: str) -> None:
    assert find_data_verb(text, MARIADB) == verb
