"""What each statement says, before any table is known."""

import pytest

from penstock.model import TableName
from penstock.schema.ddl import DdlError, Statement, classify_statement_text, parse_statement
from penstock.schema.ddl.clause import (
    AddColumn,
    AddKey,
    AddPeriod,
    AlterTable,
    ChangeColumn,
    Clause,
    ColumnPosition,
    ConvertCharset,
    DropColumn,
    DropKey,
    DropPeriod,
    PartitionToTable,
    RebuildTable,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetColumnVisibility,
    SetOptions,
    SetVersioning,
    TableToPartition,
)
from penstock.schema.ddl.column import CharsetSpec, ColumnSpec
from penstock.schema.ddl.create import CreateTable, Period
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeyKind, KeySpec, PartSpec
from penstock.schema.ddl.option import TableOptions
from penstock.schema.ddl.statement import (
    AlterDatabase,
    CreateDatabase,
    CreateView,
    DropDatabase,
    DropTables,
    RenameTables,
    TruncateTable,
)
from penstock.schema.dialect import ServerProfile, SqlDialect

MARIADB, MYSQL = SqlDialect(ServerProfile(is_mariadb=True, version=101106)), SqlDialect(ServerProfile(version=90000))
A, B, T, X = (TableName("d", name) for name in "abtx")
INT, BIGINT = DataType("int"), DataType("bigint")


def parsed(text: str, dialect: SqlDialect) -> Statement:
    return parse_statement(text, classify_statement_text(text, dialect), dialect, "d")


def int_column(name: str, **facts: object) -> ColumnSpec:
    return ColumnSpec(name, INT, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE a, e.`b c`", DropTables((A, TableName("e", "b c")))),
        ("DROP TEMPORARY TABLE IF EXISTS a CASCADE", DropTables((A,), is_temporary=True)),
        ("DROP VIEW a", DropTables((A,), are_views=True)),
        ("RENAME TABLE a TO x, b TO a, x TO b", RenameTables(((A, X), (B, A), (X, B)))),
        ("RENAME TABLE IF EXISTS a TO b", RenameTables(((A, B),), if_exists=True)),
        ("TRUNCATE a", TruncateTable(A)),
        ("TRUNCATE TABLE e.a", TruncateTable(TableName("e", "a"))),
        ("CREATE DATABASE x", CreateDatabase("x")),
        ("CREATE OR REPLACE SCHEMA x CHARSET utf8", CreateDatabase("x", CharsetSpec("utf8"), replaces=True)),
        ("CREATE SCHEMA IF NOT EXISTS x", CreateDatabase("x", if_not_exists=True)),
        ("ALTER DATABASE x COLLATE latin1_bin", AlterDatabase("x", CharsetSpec(collation="latin1_bin"))),
        ("ALTER DATABASE CHARACTER SET = latin1", AlterDatabase("d", CharsetSpec("latin1"))),
        ("DROP DATABASE IF EXISTS x", DropDatabase("x")),
        ("CREATE VIEW a AS SELECT 1", CreateView(A)),
        ("CREATE TABLE a LIKE b", CreateTable(A, like=B)),
        ("CREATE TABLE IF NOT EXISTS a (LIKE e.b)", CreateTable(A, like=TableName("e", "b"), if_not_exists=True)),
        ("DROP INDEX i ON a", AlterTable(A, (DropKey("i"),))),
        ("DROP INDEX IF EXISTS i ON a", AlterTable(A, (DropKey("i", if_exists=True),))),
        (
            "CREATE FULLTEXT INDEX i ON a (x, y)",
            AlterTable(A, (AddKey(KeySpec(KeyKind.FULLTEXT, "i", (PartSpec("x"), PartSpec("y")))),)),
        ),
        (
            "CREATE OR REPLACE UNIQUE INDEX i USING HASH ON a (x(3) DESC)",
            AlterTable(A, (AddKey(KeySpec(KeyKind.UNIQUE, "i", (PartSpec("x", 3),), is_hash=True), replaces=True),)),
        ),
        ("ALTER TABLE IF EXISTS a", AlterTable(A, (), if_exists=True)),
    ],
)
def test_statements(text: str, expected: Statement) -> None:
    assert parsed(text, MARIADB) == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ADD x INT", [AddColumn(int_column("x"))]),
        ("ADD COLUMN x INT NOT NULL FIRST", [AddColumn(int_column("x", is_nullable=False), ColumnPosition(""))]),
        (
            "ADD IF NOT EXISTS x INT AFTER `y z`",
            [AddColumn(int_column("x"), ColumnPosition("y z"), if_not_exists=True)],
        ),
        ("ADD (x INT, y INT)", [AddColumn(int_column("x")), AddColumn(int_column("y"))]),
        (
            "ADD x INT UNIQUE",
            [
                AddColumn(int_column("x", is_unique=True)),
                AddKey(KeySpec(KeyKind.UNIQUE, "", (PartSpec("x"),))),
            ],
        ),
        ("MODIFY x BIGINT", [ChangeColumn("x", ColumnSpec("x", BIGINT))]),
        ("CHANGE COLUMN x y BIGINT AFTER z", [ChangeColumn("x", ColumnSpec("y", BIGINT), ColumnPosition("z"))]),
        ("RENAME COLUMN x TO y", [RenameColumn("x", "y")]),
        ("RENAME INDEX x TO y", [RenameKey("x", "y")]),
        ("RENAME TO b", [RenameTo(B)]),
        ("RENAME = b", [RenameTo(B)]),
        ("RENAME AS e.b", [RenameTo(TableName("e", "b"))]),
        ("DROP x", [DropColumn("x")]),
        ("DROP COLUMN IF EXISTS x RESTRICT", [DropColumn("x", if_exists=True)]),
        ("DROP PRIMARY KEY", [DropKey("PRIMARY")]),
        ("DROP KEY x", [DropKey("x")]),
        ("DROP CONSTRAINT x", [DropKey("x", is_constraint=True)]),
        ("DROP FOREIGN KEY x", [RebuildTable()]),
        ("ALTER x SET DEFAULT (1 + 2), ALTER COLUMN y DROP DEFAULT", [RebuildTable(), RebuildTable()]),
        ("ALTER COLUMN x SET INVISIBLE", [SetColumnVisibility("x", is_visible=False)]),
        ("ALTER INDEX x NOT IGNORED", [RebuildTable()]),
        ("ADD CONSTRAINT c CHECK (x > (1))", [RebuildTable()]),
        ("ADD PRIMARY KEY (x, y)", [AddKey(KeySpec(KeyKind.PRIMARY, "PRIMARY", (PartSpec("x"), PartSpec("y"))))]),
        ("ADD CONSTRAINT c UNIQUE (x)", [AddKey(KeySpec(KeyKind.UNIQUE, "c", (PartSpec("x"),)))]),
        (
            "ADD CONSTRAINT c FOREIGN KEY i (x) REFERENCES b (y) ON DELETE SET NULL MATCH FULL",
            [AddKey(KeySpec(KeyKind.PLAIN, "c", (PartSpec("x"),), is_implied=True))],
        ),
        ("CONVERT TO CHARSET utf8 COLLATE utf8_bin", [ConvertCharset(CharsetSpec("utf8", "utf8_bin"))]),
        ("ENGINE = MyISAM CHARSET latin1", [SetOptions(TableOptions(CharsetSpec("latin1"), "myisam"))]),
        ("ROW_FORMAT=COMPACT, COMMENT 'x'", [SetOptions(TableOptions(row_format="compact"))]),
        ("ADD SYSTEM VERSIONING", [SetVersioning(True)]),
        ("DROP SYSTEM VERSIONING", [SetVersioning(False)]),
        ("ADD PERIOD FOR p (s, e)", [AddPeriod(Period("p", "s", "e"))]),
        ("DROP PERIOD FOR p", [DropPeriod("p")]),
        ("CONVERT PARTITION p0 TO TABLE b", [PartitionToTable(B)]),
        ("CONVERT TABLE b TO PARTITION p0 VALUES LESS THAN (5)", [TableToPartition(B)]),
        ("ORDER BY x, y DESC, ADD z INT", [RebuildTable(), AddColumn(int_column("z"))]),
        ("FORCE, ALGORITHM=COPY, LOCK NONE", [RebuildTable()]),
        ("ENABLE KEYS", []),
        ("DROP PARTITION p0, p1", []),
        ("REORGANIZE PARTITION p0 INTO (PARTITION n VALUES LESS THAN (3))", []),
        ("ADD x INT REMOVE PARTITIONING", [AddColumn(int_column("x"))]),
        ("DISCARD TABLESPACE", []),
    ],
)
def test_clauses(clause: str, expected: list[Clause]) -> None:
    statement = parsed(f"ALTER TABLE a {clause}", MARIADB)
    assert isinstance(statement, AlterTable)
    assert list(statement.clauses) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (
            "INT(11) UNSIGNED ZEROFILL",
            ColumnSpec("x", DataType("int", is_unsigned=True, width=11, is_zerofill=True)),
        ),
        ("INT(11)", ColumnSpec("x", DataType("int"))),
        ("INT(5)", ColumnSpec("x", DataType("int"))),
        ("BOOL DEFAULT TRUE", ColumnSpec("x", DataType("tinyint", width=1))),
        ("FLOAT(7,3)", ColumnSpec("x", DataType("float", scale=3, width=7))),
        ("DEC(9,2)", ColumnSpec("x", DataType("decimal", 9, 2))),
        ("FLOAT(25)", ColumnSpec("x", DataType("double"))),
        ("NATIONAL VARCHAR(5)", ColumnSpec("x", DataType("varchar", 5), CharsetSpec("utf8mb3"))),
        ("TEXT(300) BINARY", ColumnSpec("x", DataType("text", 300, is_sized=True), CharsetSpec(is_bin=True))),
        ("ENUM('a', 0x62, b'01100011')", ColumnSpec("x", DataType("enum", labels=("a", b"b", b"c")))),
        ("DATETIME(6) DEFAULT NOW(6) ON UPDATE NOW(6)", ColumnSpec("x", DataType("datetime", 6))),
        ("BIGINT AS (y * (2)) STORED NOT NULL", ColumnSpec("x", BIGINT, is_generated=True, is_nullable=False)),
        ("INT INVISIBLE COMMENT 'x' PRIMARY KEY", int_column("x", is_visible=False, is_primary=True)),
        ("INT CHECK (x > 0) DEFAULT -1 NULL", int_column("x", is_nullable=True)),
        ("INT DEFAULT (1) CONSTRAINT c CHECK (x > 0) NOT ENFORCED", int_column("x")),
        ("POINT SRID 4326 NOT NULL", ColumnSpec("x", DataType("point"), is_nullable=False)),
        ("VECTOR(3)", ColumnSpec("x", DataType("vector", 3))),
        (
            "SERIAL",
            ColumnSpec("x", DataType("bigint", is_unsigned=True), is_nullable=False, is_auto=True, is_unique=True),
        ),
    ],
)
def test_columns(definition: str, expected: ColumnSpec) -> None:
    statement = parsed(f"CREATE TABLE a (x {definition})", MYSQL)
    assert isinstance(statement, CreateTable)
    assert statement.columns == (expected,)


def test_options_of_a_table() -> None:
    statement = parsed(
        "CREATE TABLE a (x INT) ENGINE=InnoDB, AUTO_INCREMENT 5 DEFAULT CHARSET=latin1 COMMENT 'ENGINE=MyISAM'"
        " ROW_FORMAT=DEFAULT",
        MYSQL,
    )
    assert isinstance(statement, CreateTable)
    assert statement.options == TableOptions(CharsetSpec("latin1"), "innodb", "")


@pytest.mark.parametrize(
    ("text", "problem", "at"),
    [
        ("ALTER TABLE a FROBNICATE", "ALTER TABLE has 'FROBNICATE', which is not known there", 14),
        ("ALTER TABLE a ADD x INT,, DROP y", "ALTER TABLE has ','", 24),
        ("ALTER TABLE a RENAME COLUMN x y", "TO is missing", 30),
        ("ALTER TABLE a ADD (x INT", "ADD (…) has 'nothing'", 24),
        ("CREATE TABLE a (x NUMBERISH)", "NUMBERISH is no type that is known", 27),
        ("CREATE TABLE a (x INT, KEY x)", "( is missing", 28),
        ("CREATE TABLE (x INT)", "a table's name is missing", 13),
        ("DROP TABLE", "a table's name is missing", 10),
        ("RENAME TABLE a b", "TO is missing", 15),
        ("CREATE DATABASE d NONSENSE x", "the database has 'NONSENSE'", 18),
        ("CREATE TABLE a (x INT) SELECT 1 AS y", "the columns of this table come from a SELECT", 23),
    ],
)
def test_errors_say_where(text: str, problem: str, at: int) -> None:
    with pytest.raises(DdlError) as caught:
        parsed(text, MYSQL)
    assert (caught.value.statement, caught.value.at) == (text, at)
    assert problem in str(caught.value)
