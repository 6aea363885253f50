"""Logs of every server in every row image, with every amount of metadata, compressed or not, with and without end
positions: what is read gives the table itself, and each image has what the server's own tool shows of it."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock
from penstock.cli import app
from penstock.model import TableName
from penstock.schema import read_live_schema
from penstock.testing import DatabaseServer, MariaDB
from tests.conformance.forms import SERVERS
from tests.conformance.modes import Mode, applied, every_mode
from tests.integration.types.tool import ToolImage, tool_images
from tests.services.mysql import MYSQL_9
from tests.support.json_support import new_file

NewDatabase = Callable[[DatabaseServer], str]
Row = tuple[Any, ...]

COLUMNS = {
    "id": "INT", "n": "BIGINT UNSIGNED", "d": "DECIMAL(20,6)", "f": "DOUBLE", "t": "DATETIME(3)", "v": "VARCHAR(50)",
    "b": "BLOB", "e": "ENUM('a','b','ü')", "x": "TEXT", "y": "DATE",
}  # fmt: skip
VALUES = {
    "n": ["0", "18446744073709551615", "NULL"],
    "d": ["-99999999999999.999999", "0.000001", "NULL"],
    "f": ["0.1e0", "-1e300", "NULL"],
    "t": ["'9999-12-31 23:59:59.999'", "'2024-02-29 12:34:56.007'", "NULL"],
    "v": ["''", "'ünï漢😀'", "'quote '''", "NULL"],
    "b": ["x'00ff27'", "REPEAT('long ', 300)", "NULL"],
    "e": ["'a'", "'ü'", "NULL"],
    "x": ["REPEAT('text ', 200)", "''", "NULL"],
    "y": ["'1000-01-01'", "'2023-03-04'", "NULL"],
}  # fmt: skip
TABLES = ("keyed", "heap")


def changes(chance: random.Random, table: str) -> list[str]:
    """Statements that insert, change and delete rows."""

    def some(name: str) -> str:
        return chance.choice(VALUES[name])

    rows = [f"({number}, {', '.join(map(some, VALUES))})" for number in range(6)]
    statements = [f"INSERT INTO {table} VALUES {', '.join(rows)}"]
    for _ in range(5):
        names = chance.sample(list(VALUES), 2)
        sets = ", ".join(f"{name} = {some(name)}" for name in names)
        statements.append(f"UPDATE {table} SET {sets} WHERE id IN ({chance.randrange(6)}, {chance.randrange(6)})")
    statements.append(f"UPDATE {table} SET id = id + 100 WHERE id = {chance.randrange(6)}")
    statements.append(f"DELETE FROM {table} WHERE id = {chance.randrange(6)}")
    return statements


def replayed(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """What the table holds after these changes of it; what an image does not carry stays as it was."""
    held: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    for row in rows:
        absent = set(row["_absent"] or ())
        image = {name: row[name] for name in COLUMNS if name not in absent}
        match row["_change_type"]:
            case "insert":
                held.append(image)
            case "update_postimage":
                held.append(before | image)
            case _:
                before = next(stored for stored in held if image.items() <= stored.items())
                held.remove(before)
    return sorted((tuple(stored[name] for name in COLUMNS) for stored in held), key=repr)


def tool_of(server: DatabaseServer) -> list[str]:
    """How to run the program that prints the log; MySQL 9's reads those of 5.7 and 8.0, which have none here."""
    if isinstance(server, MariaDB):
        return server.installation.tool_command("mariadb-binlog")
    return MYSQL_9.server(Path()).tool("mysqlbinlog")


def assert_same_images(rows: Sequence[dict[str, Any]], printed: Sequence[ToolImage]) -> None:
    """Kind of change, columns that the image carries, and which of them are NULL; keys by value."""
    names = list(COLUMNS)
    assert [row["_change_type"] for row in rows] == [image.change for image in printed]
    for row, image in zip(rows, printed, strict=True):
        absent = set(row["_absent"] or ())
        assert {name: row[name] is None for name in names if name not in absent} == {
            names[i]: value.is_null for i, value in image.values.items()
        }
        if "id" not in absent:
            assert image.values[0].text == str(row["id"]).encode()


@pytest.mark.parametrize("name", SERVERS)
def test_every_mode(name: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    schema, chance = database(server), random.Random(name)
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    with (
        server.connect(charset="utf8mb4", database=schema) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"CREATE TABLE keyed ({columns}, PRIMARY KEY (id)) DEFAULT CHARSET utf8mb4")
        cursor.execute(f"CREATE TABLE heap ({columns}) DEFAULT CHARSET utf8mb4")
        for mode in every_mode(name):
            check(server, schema, mode, cursor, chance)


def check(server: DatabaseServer, schema: str, mode: Mode, cursor: Any, chance: random.Random) -> None:
    for table in TABLES:
        cursor.execute(f"TRUNCATE TABLE {table}")
    with applied(cursor, mode):
        file = new_file(server)
        cursor.execute("BEGIN")
        for table in TABLES:
            for statement in changes(chance, table):
                cursor.execute(statement)
        cursor.execute("COMMIT")
        cursor.execute("FLUSH BINARY LOGS")
    printed = tool_images(tool_of(server), file, schema)
    for table in TABLES:
        known = None if mode.has_names else read_live_schema(cursor, TableName(schema, table))
        rows = penstock.read_binlog(file, f"{schema}.{table}", known=known).to_pylist()
        cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM {table}")
        assert replayed(rows) == sorted(cursor.fetchall(), key=repr), f"{mode} {table}"
        assert_same_images(rows, printed[table])
        assert sorted(row["_seq"] for row in rows) == [row["_seq"] for row in rows], f"{mode} {table}"
    result = CliRunner().invoke(app, ["binlog", str(file), "--verify"], catch_exceptions=False)
    assert result.exit_code == 0, f"{mode} {result.output}"
