"""MariaDB keeps a unique key over a BLOB or TEXT as a hash in a hidden column, which is in the log's rows: nobody is to
see it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock
from penstock.binlog.events.file import LogFile
from penstock.canal import messages
from penstock.cli import app
from penstock.config import FilterSettings
from penstock.filter import ColumnRules
from penstock.model import TableName
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.json_rows import JsonRowReader
from penstock.schema import read_live_schema
from penstock.schema.declared import logged_column_types
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.json_support import new_file

NewDatabase = Callable[[DatabaseServer], str]


@pytest.fixture(params=["mariadb", "mariadb11"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def run(server: DatabaseServer, file: Path, *arguments: str) -> str:
    live = ["--host", server.host, "--port", str(server.port)]
    result = CliRunner().invoke(
        app,
        ["binlog", str(file), *arguments, *live],
        env={"PENSTOCK_PASSWORD": server.password},
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.stderr
    return result.stdout


def written(server: DatabaseServer, schema: str, metadata: str) -> Path:
    """A log with rows of two tables; the second has a column of its own with the name of a hidden one."""
    execute(
        server,
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, b BLOB, c TEXT, UNIQUE (b), UNIQUE (c))",
        f"CREATE TABLE {schema}.u (b BLOB, db_row_hash_1 BIGINT UNSIGNED, UNIQUE (b))",
        f"SET GLOBAL binlog_row_metadata = {metadata}",
    )
    file = new_file(server)
    execute(
        server,
        f"INSERT INTO {schema}.t VALUES (1, 'a', 'b'), (2, NULL, NULL)",
        f"UPDATE {schema}.t SET b = 'z' WHERE id = 1",
        f"INSERT INTO {schema}.u VALUES ('q', 5), ('r', 6)",
        f"UPDATE {schema}.u SET b = 's' WHERE b = 'r'",
        f"DELETE FROM {schema}.u WHERE b = 'q'",
    )
    return file


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL", "NO_LOG"])
def test_the_command_does_not_show_it(server: DatabaseServer, database: NewDatabase, metadata: str) -> None:
    schema = database(server)
    try:
        file = written(server, schema, metadata)
    finally:
        execute(server, "SET GLOBAL binlog_row_metadata = FULL")
    chosen = ["--table", rf"{schema}\.(t|u)"]
    sql = run(server, file, *chosen, "--output", "sql")
    assert "DB_ROW_HASH" not in sql
    lines = [json.loads(line) for line in run(server, file, *chosen, "--output", "json").splitlines()]
    assert [sorted(line.get("after", line.get("before"))) for line in lines] == [
        *[["b", "c", "id"]] * 3, *[["b", "db_row_hash_1"]] * 4
    ]  # fmt: skip
    execute(server, f"DELETE FROM {schema}.t", f"DELETE FROM {schema}.u")
    execute(server, *(statement for statement in sql.split(";\n") if statement.strip()))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, b, c FROM {schema}.t ORDER BY id")
        assert cursor.fetchall() == ((1, b"z", "b"), (2, None, None))
        cursor.execute(f"SELECT b, db_row_hash_1 FROM {schema}.u")
        assert cursor.fetchall() == ((b"s", 6),)


def test_no_consumer_gets_it(server: DatabaseServer, database: NewDatabase) -> None:
    schema = database(server)
    file = written(server, schema, "FULL")
    typed = penstock.read_binlog(file, f"{schema}.t")
    assert typed.column_names[:4] == ["id", "b", "c", "_change_type"]
    assert penstock.read_binlog(file, f"{schema}.u").column_names[:3] == ["b", "db_row_hash_1", "_change_type"]
    with server.connect() as connection, connection.cursor() as cursor:
        assert [column.name for column in read_live_schema(cursor, TableName(schema, "t")).declared_columns] == [
            "id",
            "b",
            "c",
        ]
    entries = EntryEncoder(EntryOptions(logged_column_types))
    everything = ColumnRules.from_settings(FilterSettings().columns)
    entry_columns = list[tuple[str, list[str]]]()
    for block in LogFile(file):
        rows = JsonRowReader(everything.columns_to_show).read_block(block)
        for row in rows.to_pylist() if rows is not None else ():
            assert set(json.loads(row["row"])) <= {"id", "b", "c", "db_row_hash_1"}
        raw = entries.encode_block(block).data.tobytes()
        for entry in map(messages.Entry.FromString, messages.Messages.FromString(raw).messages):
            if entry.header.schemaName == schema:
                change = messages.RowChange.FromString(entry.storeValue)
                entry_columns += [
                    (entry.header.tableName, [c.name for c in row.afterColumns]) for row in change.rowDatas
                ]
    assert entry_columns[0] == ("t", ["id", "b", "c"])
    assert ("u", ["b", "db_row_hash_1"]) in entry_columns
