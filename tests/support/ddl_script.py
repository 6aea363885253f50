"""Statements without end for tests that need no server: each fits the tables that those before it have made."""

import random
from collections.abc import Iterator

from penstock.model import Position
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.dialect import SqlMode, SqlSession

START = Position("binlog.000001", 4)
_TYPES = ("INT", "VARCHAR(20)", "TEXT CHARSET latin1", "ENUM('é','\\n')", "DECIMAL(9,2) UNSIGNED", "DATETIME(3)")


def beginning() -> tuple[Position, Catalogue]:
    return START, Catalogue().apply("CREATE DATABASE d CHARACTER SET utf8mb4").catalogue


def change_after(catalogue: Catalogue, after: Position) -> SchemaChange:
    """The next statement of a log in which what a position holds follows from the position."""
    chance = random.Random(f"{after}")
    at = Position(after.file, after.offset + chance.randrange(30, 200))
    if chance.random() < 0.05:
        at = Position(f"binlog.{after.file_number + 1:06}", 100)
    session = SqlSession(SqlMode.ANSI_QUOTES if chance.random() < 0.3 else SqlMode.STRICT_ALL_TABLES, thread=3)
    return SchemaChange(at, _statement(catalogue, chance), "d", session, server_id=chance.randrange(3))


def changes_from(catalogue: Catalogue, after: Position) -> Iterator[SchemaChange]:
    while True:
        change = change_after(catalogue, after)
        yield change
        catalogue = catalogue.apply(change.text, change.database, change.session).catalogue
        after = change.position


def _statement(catalogue: Catalogue, chance: random.Random) -> str:
    tables = catalogue.table_names()
    name, number = f"t{chance.randrange(1000)}", chance.randrange(1000)
    if not tables or (len(tables) < 9 and chance.random() < 0.3):
        return f"CREATE TABLE IF NOT EXISTS {name} (id INT PRIMARY KEY, a {chance.choice(_TYPES)}) /* {number} */"
    table = chance.choice(tables).table
    columns = [
        column.name
        for column in catalogue.schema_of(chance.choice([each for each in tables if each.table == table])).columns
    ]
    return chance.choice(
        [
            f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS c{number} {chance.choice(_TYPES)}",
            f"ALTER TABLE {table} ADD KEY (id), ADD c{number}x{len(columns)} {chance.choice(_TYPES)} FIRST",
            f"ALTER TABLE {table} MODIFY {columns[-1]} BIGINT",
            f"RENAME TABLE {table} TO {table}_x, {table}_x TO {name}_{len(tables)}",
            f"TRUNCATE TABLE {table}",
            f"CREATE TEMPORARY TABLE {name} (x INT)",
            f"DROP TABLE {table}",
            f"CREATE DATABASE IF NOT EXISTS d{number % 3} CHARACTER SET latin1",
            f"INSERT INTO {table} VALUES ({number})",
        ]
    )
