"""SQL that another session can run: what a statement or a row needs of its own session, and what has no SQL."""

import struct
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.errors import BinlogError
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.shop_log import PRODUCT, binlog, shown, written
from tests.twins import event as ev
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, DELETE, INSERT, UPDATE

SUPPRESS_USE = 0x8
NO_FOREIGN_KEYS, RELAXED_UNIQUE = 0x2, 0x4  # of rows events
OUR_MODE = "SQL_MODE='STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
KEYLESS = TableSchema(PRODUCT.name, PRODUCT.columns)


def status(options: int = 0, sql_mode: int | None = None) -> bytes:
    return b"\x00" + struct.pack("<I", options) + (b"" if sql_mode is None else b"\x01" + struct.pack("<Q", sql_mode))


def body(path: Path, *options: str) -> list[str]:
    """Without comments, times and the settings at the beginning."""
    lines = shown(path, "--output", "sql", *options).splitlines()[3:]
    return [line for line in lines if not line.startswith(("-- ", "SET TIMESTAMP="))]


def insert(number: int) -> str:
    return f"INSERT INTO `shop`.`product` (`id`, `name`, `price`) VALUES ({number}, 'x', NULL);"


def test_a_database_is_used_once_it_is_there(tmp_path: Path) -> None:
    log = LogWriter().open()
    for _ in range(2):
        log.statement("CREATE DATABASE d", schema="d", flags=SUPPRESS_USE)
        log.statement("CREATE TABLE a (id INT)", schema="d")
        log.statement("CREATE TABLE b (id INT)", schema="d")
        log.statement("/* old */ DROP DATABASE d", schema="d", flags=SUPPRESS_USE)
    tables = ["USE `d`;", "CREATE TABLE a (id INT);", "CREATE TABLE b (id INT);"]
    once = ["CREATE DATABASE d;", *tables, "/* old */ DROP DATABASE d;"]
    assert body(written(log, tmp_path)) == [*once, *once]


@pytest.mark.parametrize("comment", ["-- why", "# why", "--"])
def test_a_comment_does_not_swallow_the_delimiter(tmp_path: Path, comment: str) -> None:
    log = LogWriter().open()
    log.statement(f"DROP TABLE a {comment}")
    log.statement("DROP TABLE b -- first\n, c")
    assert body(written(log, tmp_path))[1:] == [
        *(f"DROP TABLE a {comment}", ";"),
        *("DROP TABLE b -- first", ", c;"),
    ]


def test_statements_have_the_mode_and_the_checks_of_their_session(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.statement('CREATE TABLE "a" ("id" INT)', status=status(sql_mode=4))
    log.statement("CREATE TABLE b (id INT)", status=status(1 << 26 | 1 << 27 | 1 << 14))
    lines = [line for line in shown(written(log, tmp_path), "--output", "sql").splitlines() if line[:3] != "-- "]
    assert lines[3:] == [
        "USE `shop`;",
        "SET TIMESTAMP=1700000000, SQL_MODE=4;",
        'CREATE TABLE "a" ("id" INT);',
        f"SET TIMESTAMP=DEFAULT, {OUR_MODE};",
        "SET TIMESTAMP=1700000000;",
        (
            "SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0,"
            " @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;"
        ),
        "CREATE TABLE b (id INT);",
        "SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS, UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS;",
        "SET TIMESTAMP=DEFAULT;",
    ]


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_rows_have_the_checks_of_their_session(tmp_path: Path, *, is_mariadb: bool) -> None:
    log = LogWriter(is_mariadb=is_mariadb).open()
    log.begin()
    log.map(7, PRODUCT)
    for number, flags in enumerate([0, NO_FOREIGN_KEYS, NO_FOREIGN_KEYS | RELAXED_UNIQUE, RELAXED_UNIQUE]):
        log.rows(INSERT, 7, PRODUCT, [[number, "x", None]], flags=flags | 1)
    log.commit()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[4, "x", None]])
    log.commit()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[5, "x", None], [6, "x", None]], flags=NO_FOREIGN_KEYS)
    path = written(log, tmp_path)
    off, on = (
        "SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0;",
        "SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS;",
    )
    assert body(path) == [
        *("BEGIN;", insert(0), off, insert(1)),
        *("SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;", insert(2), on, insert(3)),
        *("SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS;", "COMMIT;"),
        *("BEGIN;", insert(4), "COMMIT;"),
        *("BEGIN;", off, insert(5), insert(6), on, "COMMIT;"),
    ]


def test_a_table_made_by_select_and_its_rows(tmp_path: Path) -> None:
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.add(ev.QUERY, ev.query(b"CREATE TABLE `product` (\n  `id` int\n) START TRANSACTION"))
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "x", None]])
    log.commit()
    assert body(written(log, tmp_path)) == [
        *("BEGIN;", "USE `shop`;", "CREATE TABLE `product` (", "  `id` int", ");"),
        *("BEGIN;", insert(1), "COMMIT;"),
    ]


@pytest.mark.parametrize(
    ("table", "change", "images", "options", "what"),
    [
        (KEYLESS, DELETE, [[ABSENT, "a", ABSENT]], ("--without", "name"), "delete .* no column to find its row by"),
        (
            KEYLESS,
            UPDATE,
            [[1, ABSENT, ABSENT], [ABSENT, ABSENT, Decimal("1.00")]],
            ("--without", "id"),
            "update .* no column to find its row by",
        ),
        (
            PRODUCT,
            UPDATE,
            [[1, ABSENT, ABSENT], [ABSENT, ABSENT, Decimal("1.00")]],
            ("--columns", "name"),
            "update .* no column to set",
        ),
        (PRODUCT, UPDATE, [[1, ABSENT, ABSENT], [ABSENT, ABSENT, ABSENT]], (), "update .* no column to set"),
    ],
)
def test_a_change_without_a_condition_or_a_value_has_no_sql(
    tmp_path: Path, table: TableSchema, change: int, images: list[list[object]], options: tuple[str, ...], what: str
) -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    log.rows(change, 7, table, images)
    log.commit()
    with pytest.raises(BinlogError, match=rf"binlog\.000001:\d+ the {what}.*MINIMAL"):
        binlog(written(log, tmp_path), "--output", "sql", *options)


def test_a_row_without_a_key_is_found_by_columns_that_are_not_shown(tmp_path: Path) -> None:
    """One with the same price must not be taken for it."""
    log = LogWriter().open()
    log.begin()
    log.map(7, KEYLESS)
    log.rows(UPDATE, 7, KEYLESS, [[1, "a", Decimal("1.00")], [1, "a", Decimal("2.00")]])
    log.commit()
    path = written(log, tmp_path)
    (line,) = (line for line in body(path, "--columns", "price") if line.startswith("UPDATE"))
    assert line == (
        "UPDATE `shop`.`product` SET `price`=2.00 WHERE `id` <=> 1"
        " AND CAST(CONVERT(`name` USING utf8mb4) AS BINARY) <=> 'a' AND `price` <=> 1.00 LIMIT 1;"
    )
    (line,) = (line for line in body(path, "--without", "name") if line.startswith("UPDATE"))
    assert line.endswith(" WHERE `id` <=> 1 AND `price` <=> 1.00 LIMIT 1;")


def test_documents_are_compared_as_servers_print_them(tmp_path: Path) -> None:
    """JSON that is made of a text has no dates: none in the table would be found."""
    table = TableSchema(TableName("shop", "doc"), (Column("doc", WireType.JSON, size=4),))
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.map(7, table)
    log.rows(INSERT, 7, table, [[b"\x00\x00\x00\x04\x00"]])
    log.commit()
    undo = shown(written(log, tmp_path), "--flashback")
    assert "WHERE CAST(CONVERT(`doc` USING utf8mb4) AS BINARY) <=> '{}' LIMIT 1;" in undo


def test_savepoints_need_no_undoing(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "x", None]])
    for text in (b"SAVEPOINT `s`", b"savepoint t", b"RELEASE SAVEPOINT t"):
        log.add(ev.QUERY, ev.query(text))
    log.commit()
    result = binlog(written(log, tmp_path), "--flashback")
    assert "cannot be undone" not in result.stdout + result.stderr
    assert result.stdout.splitlines()[4:] == ["BEGIN;", "DELETE FROM `shop`.`product` WHERE `id`=1;", "COMMIT;"]
