"""Pairs of DDL and the columns that it gives: by our model without a server, on every server by its own catalogue."""

import re
from collections.abc import Callable

import pytest

from penstock.model import TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.declared import declared_types_in_ddl
from penstock.schema.dialect import ServerProfile
from penstock.testing import DatabaseServer
from tests.conformance.forms import SERVERS

NewDatabase = Callable[[DatabaseServer], str]
_WIDTH = re.compile(r"\b(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)(?! unsigned zerofill)")

PAIRS: dict[str, tuple[list[str], str]] = {
    "integers": (
        ["CREATE TABLE t (a TINYINT, b BOOL, c INT(11) UNSIGNED, d BIGINT(20), e INT(5) ZEROFILL, f INT1, g INTEGER)"],
        "a tinyint, b tinyint(1), c int unsigned, d bigint, e int(5) unsigned zerofill, f tinyint, g int",
    ),
    "decimals": (
        ["CREATE TABLE t (a DECIMAL, b DEC(5), c NUMERIC(65,30), d FIXED(7,2) UNSIGNED, e DECIMAL(19.5), f DEC(0))"],
        "a decimal(10,0), b decimal(5,0), c decimal(65,30), d decimal(7,2) unsigned, e decimal(19,0), f decimal(10,0)",
    ),
    "reals": (
        ["CREATE TABLE t (a FLOAT, b FLOAT(24), c FLOAT(25), d DOUBLE, e REAL, f FLOAT(7,3), g DOUBLE(15,4))"],
        "a float, b float, c double, d double, e double, f float(7,3), g double(15,4)",
    ),
    "moments": (
        ["CREATE TABLE t (a DATE, b TIME(3), c DATETIME, d DATETIME(6) NOT NULL, e TIMESTAMP(2) NULL, f YEAR(4))"],
        "a date, b time(3), c datetime, d datetime(6) not null, e timestamp(2), f year",
    ),
    "texts": (
        [
            "CREATE TABLE t (a CHAR, b VARCHAR(20), c TEXT(100), d TEXT(300), e MEDIUMTEXT, f LONG) CHARSET latin1",
            "ALTER TABLE t ADD g BINARY(3), ADD h VARBINARY(9), ADD i BLOB(70000), DROP b, DROP e",
        ],
        "a char(1), c tinytext, d text, f mediumtext, g binary(3), h varbinary(9), i mediumblob",
    ),
    "labels": (
        ["CREATE TABLE t (a ENUM('x','it''s'), b SET('p','q') NOT NULL)"],
        "a enum('x','it''s'), b set('p','q') not null",
    ),
    "keys make columns not null": (
        ["CREATE TABLE t (a INT, b INT)", "ALTER TABLE t ADD PRIMARY KEY (b, a)"],
        "a int not null, b int not null",
    ),
    "order of columns": (
        [
            "CREATE TABLE t (a INT, b INT, c INT)",
            "ALTER TABLE t ADD d INT FIRST, ADD e INT AFTER b, MODIFY b BIGINT AFTER c, DROP a",
        ],
        "d int, e int, c int, b bigint",
    ),
    "change keeps what it says only": (
        ["CREATE TABLE t (a INT NOT NULL, b VARCHAR(3) NOT NULL)", "ALTER TABLE t CHANGE a `the a` BIGINT UNSIGNED"],
        "the a bigint unsigned, b varchar(3) not null",
    ),
    "another charset widens texts": (
        [
            "CREATE TABLE t (a TEXT, b VARCHAR(20), c TINYTEXT) CHARSET latin1",
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        ],
        "a mediumtext, b varchar(20), c text",
    ),
    "like": (["CREATE TABLE s (a INT, b TEXT)", "CREATE TABLE t LIKE s", "DROP TABLE s"], "a int, b text"),
    "renamed": (
        ["CREATE TABLE s (a INT)", "RENAME TABLE s TO r, r TO q", "ALTER TABLE q RENAME TO t, ADD b INT"],
        "a int, b int",
    ),
    "serial": (["CREATE TABLE t (a SERIAL, b INT)"], "a bigint unsigned not null, b int"),
    "generated": (
        ["CREATE TABLE t (a INT, b INT AS (a + 1) VIRTUAL, c INT GENERATED ALWAYS AS (a * 2) STORED)"],
        "a int, b int, c int",
    ),
    "comments with a version": (
        ["CREATE TABLE t (a INT /*!50100 NOT NULL */, b INT /*!99999 NOT NULL */) /* nothing; */ -- nothing"],
        "a int not null, b int",
    ),
    "nationals": (
        ["CREATE TABLE t (a NCHAR(3), b NATIONAL VARCHAR(4), c CHAR(5) BYTE)"],
        "a char(3), b varchar(4), c binary(5)",
    ),
    "dropped and made again": (
        ["CREATE TABLE t (a INT)", "DROP TABLE IF EXISTS t, nothing", "CREATE TABLE IF NOT EXISTS t (b BIT(9))"],
        "b bit(9)",
    ),
}


def plain(types: str) -> str:
    """Without the widths that MySQL 9 does not show."""
    return _WIDTH.sub(lambda width: width[0] if width[0] == "tinyint(1)" else width[1], types)


def modelled(statements: list[str], server: ServerProfile) -> str:
    catalogue = Catalogue(server).apply("CREATE DATABASE pairs").catalogue
    for statement in statements:
        catalogue = catalogue.apply(statement, "pairs").catalogue
    table = catalogue.find(TableName("pairs", "t"))
    assert table is not None
    shown = zip(table.fields, declared_types_in_ddl(table, server), strict=True)
    return ", ".join(f"{field.name} {kind}{' not null' * (not field.is_nullable)}" for field, kind in shown)


@pytest.mark.parametrize("name", PAIRS)
def test_the_model_gives_the_columns(name: str) -> None:
    statements, columns = PAIRS[name]
    for version in ("9.0.0", "8.0.40"):
        assert modelled(statements, ServerProfile.from_version_text(version)) == columns
    for version in ("5.7.44-log", "8.0.12", "10.11.6-MariaDB-log", "11.8.1-MariaDB"):
        assert plain(modelled(statements, ServerProfile.from_version_text(version))) == columns


@pytest.mark.parametrize("name", SERVERS)
def test_the_servers_give_the_columns(name: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    schema = database(server)
    with server.connect(charset="utf8mb4", database=schema) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
        for pair, (statements, columns) in PAIRS.items():
            cursor.execute("DROP TABLE IF EXISTS t")
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(
                "SELECT column_name, column_type, is_nullable FROM information_schema.columns"
                " WHERE table_schema = %s AND table_name = 't' ORDER BY ordinal_position",
                (schema,),
            )
            described = [
                f"{column} {kind.decode() if isinstance(kind, bytes) else kind}{' not null' * (nullable == 'NO')}"
                for column, kind, nullable in cursor.fetchall()
            ]
            assert plain(", ".join(described)) == columns, pair
            assert modelled(statements, ServerProfile.from_version_text(version)) == ", ".join(described), pair
