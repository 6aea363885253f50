"""When a server is asked for what a log does not say of a table, and what becomes of its answer."""

import re
from dataclasses import replace

import pytest

from penstock.errors import SchemaError
from penstock.inspect.log_tables import UnnamedTables
from penstock.inspect.shapes import SchemaLookup
from penstock.model import Column, TableName, TableSchema, WireType

MARIADB, MYSQL = "10.11.6-MariaDB-log", "8.4.0"
NAME = TableName("shop", "visit")
BYTES = {"type": WireType.STRING, "charset": "binary"}
LOGGED = TableSchema(
    NAME,
    (
        Column("id", size=16, **BYTES),  # type: ignore[arg-type]
        Column("from", size=4, **BYTES),  # type: ignore[arg-type]
        Column("plain", size=16, **BYTES),  # type: ignore[arg-type]
        Column("note", WireType.VARCHAR, size=16, charset="utf8mb4"),
    ),
    ("id",),
)
DECLARED = {"id": "uuid", "from": "inet4"}
NOW = replace(
    LOGGED, columns=tuple(replace(column, declared=DECLARED.get(column.name, "")) for column in LOGGED.columns)
)


class Server:
    def __init__(self, answer: TableSchema | None) -> None:
        self.answer = answer
        self.asked: list[TableName] = []

    def __call__(self, table: TableName) -> TableSchema:
        self.asked.append(table)
        if self.answer is None:
            raise SchemaError(f"there is no table {table} that this user can see")
        return self.answer


def declared(shapes: SchemaLookup, table: TableSchema = LOGGED, version: str = MARIADB) -> list[str]:
    return [column.declared for column in shapes.complete_table(table, version).columns]


def test_mariadb_is_asked_for_types_that_look_like_bytes() -> None:
    server = Server(NOW)
    shapes = SchemaLookup(server)
    assert declared(shapes) == declared(shapes) == ["uuid", "inet4", "", ""]
    assert server.asked == [NAME]


def test_nobody_is_asked_without_need() -> None:
    server = Server(NOW)
    assert declared(SchemaLookup(server), version=MYSQL) == [""] * 4
    texts = replace(LOGGED, columns=LOGGED.columns[3:], key=())
    assert declared(SchemaLookup(server), texts) == [""]
    assert server.asked == []
    assert declared(SchemaLookup(None)) == [""] * 4


def test_a_table_that_changed_keeps_what_is_still_sure() -> None:
    dropped = replace(NOW, columns=(replace(NOW.columns[0], size=8), NOW.columns[1]))
    assert declared(SchemaLookup(Server(dropped))) == ["", "inet4", "", ""]


def test_a_table_that_is_gone_keeps_its_bytes() -> None:
    server = Server(None)
    shapes = SchemaLookup(server)
    assert declared(shapes) == declared(shapes) == [""] * 4
    assert server.asked == [NAME]


NAMELESS = replace(
    LOGGED, columns=tuple(replace(column, name=f"@{i}") for i, column in enumerate(LOGGED.columns, 1)), key=()
)


def test_without_names_the_server_is_asked() -> None:
    assert SchemaLookup(Server(NOW)).complete_table(NAMELESS, MYSQL) == replace(NOW, key=("id",))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (None, r"there is no table shop\.visit"),
        (replace(NOW, columns=NOW.columns[1:]), "has 4 columns in the log and 3 now"),
    ],
)
def test_a_table_that_the_server_does_not_have_like_this_stays_without_names(now: TableSchema | None, why: str) -> None:
    unnamed = UnnamedTables()
    shapes = SchemaLookup(Server(now), unnamed)
    assert shapes.complete_table(NAMELESS, MYSQL) == shapes.complete_table(NAMELESS, MYSQL) == NAMELESS
    (warning,) = unnamed.format_warnings(has_server=True)
    assert warning.startswith("the columns of these tables have no names and are shown as @1, @2 …: shop.visit (")
    assert re.search(why, warning)


def test_a_charset_that_only_the_server_knows_is_asked_for() -> None:
    columns = (replace(LOGGED.columns[3], charset=""), replace(LOGGED.columns[3], name="other", charset=""))
    table = replace(LOGGED, columns=columns, key=())
    assert [column.charset for column in SchemaLookup(Server(NOW)).complete_table(table, MYSQL).columns] == [
        "utf8mb4",
        "",
    ]
    assert SchemaLookup(Server(None)).complete_table(table, MYSQL) == table
