"""JSON columns that a server logs as diffs without the document: what each consumer says of such a change."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import penstock
from penstock.binlog.events.file import LogFile
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.canal import messages
from penstock.cli import app
from penstock.config import InstanceSettings, ServerSettings
from penstock.errors import PenstockError
from penstock.model import TableName
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.schema.declared import logged_column_types
from penstock.server import Server
from penstock.spark.layout import TableLayout
from penstock.spark.options import ReadOptions
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of
from tests.support.json_support import new_file
from tests.support.json_updates import random_update, start_document

NewDatabase = Callable[[DatabaseServer], str]
RELEASES = ("mysql80", "mysql9")
LOOSE = "SET SESSION binlog_row_image = 'MINIMAL', binlog_row_value_options = 'PARTIAL_JSON'"


def run(file: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["binlog", str(file), *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def replay(server: DatabaseServer, sql: str) -> None:
    execute(server, *(statement for statement in sql.split(";\n") if statement.strip()))


def documents(cursor: Any, table: str) -> list[tuple[Any, ...]]:
    """Every document as the server prints it, with the type of each value in it."""
    types = ", ".join(f"JSON_TYPE(JSON_EXTRACT({name}, '$.*'))" for name in "abc")
    cursor.execute(f"SELECT id, n, CAST(a AS CHAR), CAST(b AS CHAR), CAST(c AS CHAR), {types} FROM {table} ORDER BY id")
    return cursor.fetchall()


@pytest.mark.parametrize("release", RELEASES)
def test_the_sql_of_random_changes_does_the_same_again(
    release: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(release)
    chance, name = random.Random(5), database(server)
    with server.connect(charset="utf8mb4", database=name) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, a JSON, n INT, b JSON, c JSON)")
        for number in range(8):
            texts = [json.dumps(start_document(chance)) for _ in range(2)]
            cursor.execute("INSERT INTO parts VALUES (%s, %s, -1, %s, NULL)", (number, *texts))
        cursor.execute("CREATE TABLE copy LIKE parts")
        cursor.execute("INSERT INTO copy SELECT * FROM parts")
        file = new_file(server)
        cursor.execute(LOOSE)
        for count in range(250):
            number = chance.randrange(8)
            cursor.execute(f"SELECT CAST(a AS CHAR), CAST(b AS CHAR), CAST(c AS CHAR) FROM parts WHERE id = {number}")
            texts = [text and text.encode() for text in cursor.fetchone()]
            sets, parameters = random_update(chance, texts)
            while "c = JSON_SET(a" in sets:  # a whole document is written as text, in which a decimal is a double
                sets, parameters = random_update(chance, texts)
            cursor.execute(f"UPDATE parts SET {sets} WHERE id = {number}", [count, *parameters])
        expected = documents(cursor, "parts")
        sql = run(file, "--table", f"{name}.parts", "--output", "sql")
        functions = ("JSON_REPLACE(", "JSON_INSERT(", "JSON_REMOVE(", "JSON_ARRAY_INSERT(", "DECIMAL(", "TIMESTAMP'")
        assert min(sql.count(function) for function in functions) > 5
        replay(server, sql.replace("`parts`", "`copy`"))
        assert documents(cursor, "copy") == expected


@pytest.fixture(params=RELEASES)
def small(request: pytest.FixtureRequest, database: NewDatabase) -> tuple[Path, str]:
    """A log with one change of each kind, and its database."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    name = database(server)
    table = f"{name}.pj"
    execute(
        server,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, j JSON, n INT)",
        f"""INSERT INTO {table} VALUES (1, '{{"a": 1, "it''s": [1, 2], "pad": "{"p" * 200}"}}', 0)""",
    )
    file = new_file(server)
    execute(
        server,
        LOOSE,
        f"UPDATE {table} SET j = JSON_SET(j, '$.a', 4), n = n + 1 WHERE id = 1",
        f"UPDATE {table} SET j = JSON_REMOVE(JSON_SET(j, '$.b', 'it''s', '$.\"it''s\"[5]', 1.50), '$.a') WHERE id = 1",
        f"UPDATE {table} SET n = 7 WHERE id = 1",
    )
    return file, name


REPLACED = [{"op": "replace", "path": "$.a", "value": 4}]
SEVERAL = [
    {"op": "insert", "path": "$.b", "value": "it's"},
    {"op": "array_insert", "path": '$."it\'s"[5]', "value": 1.5},
    {"op": "remove", "path": "$.a"},
]


def test_sql(small: tuple[Path, str]) -> None:
    file, name = small
    lines = [line for line in run(file, "--table", f"{name}.pj", "--output", "sql").splitlines() if "UPDATE" in line]
    assert lines == [
        f"UPDATE `{name}`.`pj` SET `n`=1, `j`=JSON_REPLACE(`j`, '$.a', 4) WHERE `id`=1;",
        f"UPDATE `{name}`.`pj` SET `j`=JSON_REMOVE(JSON_ARRAY_INSERT(JSON_INSERT(`j`, '$.b', 'it''s'),"
        " '$.\"it''s\"[5]', CAST(1.50 AS DECIMAL(3,2))), '$.a') WHERE `id`=1;".replace("'it''s')", "'it\\'s')"),
        f"UPDATE `{name}`.`pj` SET `n`=7 WHERE `id`=1;",
    ]


def test_json_lines(small: tuple[Path, str]) -> None:
    file, name = small
    first, second, third = map(json.loads, run(file, "--table", f"{name}.pj", "--output", "json").splitlines())
    assert (first["after"], first["partial"]) == ({"n": 1}, {"j": REPLACED})
    assert (second["after"], second["partial"]) == ({}, {"j": SEVERAL})
    assert third["after"] == {"n": 7}
    assert "partial" not in third
    unshown = run(file, "--table", f"{name}.pj", "--output", "json", "--without", "j")
    assert "partial" not in unshown


def test_tables_and_terminal(small: tuple[Path, str], tmp_path: Path) -> None:
    file, name = small
    flat = [{"column": "j", "value": None, **operation} for operation in SEVERAL]
    rows = run(file, "--table", f"{name}.pj", "--output", "csv").splitlines()
    assert rows[0].endswith(",_absent,_partial")
    assert rows[1].endswith(",")
    partial = json.loads(rows[4].rpartition(',"[{')[2].join(['"[{', ""]).strip('"').replace('""', '"'))
    assert partial == [{"column": "j", **operation} for operation in SEVERAL]
    run(file, "--table", f"{name}.pj", "--output", "arrow", "--to", str(tmp_path / "rows.arrow"))
    table_rows = pa.ipc.open_file(tmp_path / "rows.arrow").read_all().to_pylist()
    shown = [
        {**operation, "value": operation["value"] and json.loads(operation["value"])}
        for operation in table_rows[3]["_partial"]
    ]
    assert shown == flat
    assert [row["_partial"] is None for row in table_rows] == [True, False, True, False, True, True]
    assert table_rows[1]["_absent"] == ["id", "j"]
    assert table_rows[1]["_changed"] == ["j", "n"]
    assert table_rows[1]["j"] is None
    run(file, "--table", f"{name}.pj", "--output", "parquet", "--to", str(tmp_path / "rows.parquet"))
    words = run(file, "--table", f"{name}.pj", "--output", "text")
    assert "j: replace $.a 4" in words
    assert 'insert $.b "it\'s", array_insert $."it\\\'s"[5] 1.50, remove $.a' in words


def test_a_way_back_is_refused(mysql9: DatabaseServer, database: NewDatabase) -> None:
    table = f"{database(mysql9)}.pj"
    execute(
        mysql9,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, j JSON)",
        f"""INSERT INTO {table} VALUES (1, '{{"a": 1, "pad": "{"p" * 200}"}}')""",
    )
    file = new_file(mysql9)
    execute(
        mysql9,
        LOOSE,
        f"UPDATE {table} SET j = JSON_SET(j, '$.a', 4) WHERE id = 1",
    )
    assert "JSON_REPLACE(`j`, '$.a', 4) WHERE `id`=1;" in run(file, "--table", table, "--output", "sql")
    result = CliRunner().invoke(app, ["binlog", str(file), "--table", table, "--flashback"])
    assert "changes parts of the JSON document in column j" in str(result.exception)


def test_typed_readers_fail_unless_they_ask_for_operations(small: tuple[Path, str]) -> None:
    file, name = small
    with pytest.raises(PenstockError, match=r"changes parts of the JSON document in column j.*PARTIAL_JSON"):
        penstock.read_binlog(file, f"{name}.pj")
    assert penstock.read_binlog(file, f"{name}.pj", columns=["id", "n"]).num_rows == 6
    rows = penstock.read_binlog(file, f"{name}.pj", partial_json="operations")
    assert rows.column("_partial").to_pylist()[1] == [{"column": "j", "op": "replace", "path": "$.a", "value": "4"}]


def test_spark_fails_unless_it_asks_for_operations(small: tuple[Path, str]) -> None:
    file, name = small
    table = TableName(name, "pj")
    (schema,) = {
        block.schema_of(number) for block in LogFile(file) for number in block.tables if block.schema_of(number).key
    }

    def read(**options: str) -> list[dict[str, Any]]:
        chosen = ReadOptions.of({"server": "h:1", "table": str(table), **options})
        layout = TableLayout(chosen, {table: arrow_fields_of_table(schema)})
        return [row for block in LogFile(file) for batch in layout.batches(block) for row in batch.to_pylist()]

    with pytest.raises(PenstockError, match="the option partialJson"):
        read()
    rows = read(partialJson="operations")
    assert rows[1]["_partial"] == [{"column": "j", "op": "replace", "path": "$.a", "value": "4"}]


def test_canal_clients_get_the_expression_that_canal_gives(small: tuple[Path, str]) -> None:
    file, name = small
    entries = EntryEncoder(EntryOptions(logged_column_types))
    rows: list[list[tuple[str, str, bool]]] = []
    for block in LogFile(file):
        raw = entries.encode_block(block).data.tobytes()
        for entry in map(messages.Entry.FromString, messages.Messages.FromString(raw).messages):
            if entry.header.tableName == "pj" and entry.header.schemaName == name:
                change = messages.RowChange.FromString(entry.storeValue)
                rows += [[(c.name, c.value, c.updated) for c in row.afterColumns] for row in change.rowDatas]
    assert rows[0] == [("j", "JSON_REPLACE(j, '$.a', 4)", True), ("n", "1", True)]
    expression = "JSON_REMOVE(JSON_ARRAY_INSERT(JSON_INSERT(j, '$.b', \"it's\"), '$.\"it's\"[5]', 1.50), '$.a')"
    assert rows[1] == [("j", expression, True)]
    assert rows[2] == [("n", "7", True)]


def test_flight_streams(mysql9: DatabaseServer, database: NewDatabase) -> None:
    table = f"{database(mysql9)}.pj"
    execute(mysql9, f"CREATE TABLE {table} (id INT PRIMARY KEY, j JSON, n INT)")
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mysql9)))
    running = Server(settings)
    try:
        running.start()
        with penstock.connect(f"grpc://{running.address}") as there:
            start = there.positions()["latest"]
            execute(
                mysql9,
                f"""INSERT INTO {table} VALUES (1, '{{"a": 1, "pad": "{"p" * 200}"}}', 0)""",
                LOOSE,
                f"UPDATE {table} SET j = JSON_SET(j, '$.a', 4), n = n + 1 WHERE id = 1",
            )
            with pytest.raises(PenstockError, match="changes parts of the JSON document in column j"):
                rows_until(there.changes(table, start=start), 3)
            assert len(rows_until(there.changes(table, columns=["id", "n"], start=start), 3)) == 3
            rows = rows_until(there.changes(filter=table.replace(".", "\\."), start=start), 3)
            assert json.loads(rows[2]["row"]) == {"id": None, "j": None, "n": 1}
            assert rows[2]["_partial"] == [{"column": "j", "op": "replace", "path": "$.a", "value": "4"}]
            assert rows[2]["_absent"] == ["id", "j"]
    finally:
        running.stop()


def rows_until(changes: Any, count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with changes:
        for batch in changes:
            rows += batch.to_pylist()
            if len(rows) >= count:
                break
    return rows
