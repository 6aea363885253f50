"""`penstock binlog` on logs without names: the DDL of the log, or a server, says what their columns are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import penstock
from penstock.cli import app
from penstock.errors import SchemaError
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.json_support import new_file
from tests.support.table_capture import Row, selected

_SERVERS = {
    "mysql57": {},
    "mysql80": {"binlog_row_metadata": "MINIMAL"},
    "mariadb": {"binlog_row_metadata": "NO_LOG"},
    "mariadb11": {"binlog_row_metadata": "NO_LOG"},
}
_STEPS = [
    "CREATE TABLE {t} (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20) CHARACTER SET latin1, plain TEXT, raw BLOB)",
    "INSERT INTO {t} VALUES (4000000000, 'grün', 'a ü 漢', X'FF00')",
    "ALTER TABLE {t} ADD COLUMN size ENUM('small', 'groß') FIRST, ADD COLUMN at DATETIME(3) NULL",
    "INSERT INTO {t} VALUES ('groß', 2, 'b', NULL, 'c', '2020-01-02 03:04:05.678')",
    "ALTER TABLE {t} CHANGE name title VARCHAR(20) CHARACTER SET utf8mb4",
    "UPDATE {t} SET title = '漢字' WHERE id = 2",
    "ALTER TABLE {t} DROP COLUMN at, MODIFY id BIGINT UNSIGNED AFTER size",
    "INSERT INTO {t} VALUES ('small', 18446744073709551615, 'd', 'it''s \\\\', '')",
]


@pytest.fixture(scope="module", params=sorted(_SERVERS))
def nameless(request: pytest.FixtureRequest, start_shared_server: Callable[..., DatabaseServer]) -> DatabaseServer:
    """A server whose log has no names."""
    return start_shared_server(request.param, options=_SERVERS[request.param])


@pytest.fixture
def name(nameless: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    return database(nameless)


def binlog(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(app, ["binlog", *map(str, arguments)], env=environment, catch_exceptions=False)


def shown(*arguments: object, **environment: str) -> str:
    result = binlog(*arguments, **environment)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def live(server: DatabaseServer) -> tuple[list[str], dict[str, str]]:
    return ["--host", server.host, "--port", str(server.port)], {"PENSTOCK_PASSWORD": server.password}


def changed(text: str) -> list[dict[str, Any]]:
    lines = map(json.loads, text.splitlines())
    return [line["after"] for line in lines if "after" in line]


def write(server: DatabaseServer, name: str, steps: list[str] = _STEPS) -> list[Row]:
    """Run the steps; return what a SELECT shows of each row that one of them wrote, right after it."""
    rows, before = list[Row](), list[Row]()
    for step in steps:
        execute(server, "SET NAMES utf8mb4", step.format(t=f"{name}.t"))
        after = selected(server, f"SELECT * FROM {name}.t")
        if not step.startswith(("CREATE", "ALTER")):
            rows += [row for row in after if row not in before]
        before = after
    return rows


def comparable(rows: list[Row]) -> list[Row]:
    return [{column: None if value is None else _text(value) for column, value in row.items()} for row in rows]


def _text(value: object) -> str:
    text = value.decode("latin1") if isinstance(value, bytes) else str(value)
    return text.removesuffix("000").replace("T", " ")


def content(server: DatabaseServer, table: str, *columns: str) -> list[Any]:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'HEX({column})' for column in columns)} FROM {table} ORDER BY 1")
        return list(cursor.fetchall())


def apply(server: DatabaseServer, sql: str) -> None:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in sql.split(";\n"):
            lines = [line for line in statement.splitlines() if not line.startswith("-- ")]
            if "".join(lines).strip():
                cursor.execute("\n".join(lines))


def test_rows_have_the_names_and_values_that_the_table_had(nameless: DatabaseServer, name: str) -> None:
    execute(nameless, f"DROP DATABASE {name}")
    file = new_file(nameless)
    execute(nameless, f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    rows = write(nameless, name)
    chosen = [file, "--table", rf"{name}\.t"]
    typed = penstock.read_binlog(file, f"{name}.t", dates="text")
    shown_rows = [row for row in typed.to_pylist() if row["_change_type"] != "update_preimage"]
    assert comparable(
        [{column: row[column] for column in before} for row, before in zip(shown_rows, rows, strict=True)]
    ) == (comparable(rows))
    lines = changed(shown(*chosen, "--output", "json"))
    text = [[column for column in row if column != "raw"] for row in rows]
    assert comparable(
        [{column: line[column] for column in names} for line, names in zip(lines, text, strict=True)]
    ) == (comparable([{column: row[column] for column in names} for row, names in zip(rows, text, strict=True)]))
    columns = [*rows[-1]]
    before = content(nameless, f"{name}.t", *columns)
    sql = shown(*chosen, "--output", "sql")
    assert "_binary" not in sql, "every charset is known"
    execute(nameless, f"DROP TABLE {name}.t")
    apply(nameless, sql)
    assert content(nameless, f"{name}.t", *columns) == before


def test_texts_of_a_database_that_was_there_before_are_shown_and_replayed_exactly(
    nameless: DatabaseServer, name: str
) -> None:
    execute(nameless, f"ALTER DATABASE {name} CHARACTER SET latin1")
    file = new_file(nameless)
    execute(
        nameless,
        "SET NAMES utf8mb4",
        f"CREATE TABLE {name}.t (a VARCHAR(30), b CHAR(9), c TEXT, d ENUM('x', 'grün'))",
        f"INSERT INTO {name}.t VALUES ('plain', 'it''s', 'two\\nlines \\\\', 'grün'), ('grün', 'ü', NULL, 'x')",
        f"INSERT INTO {name}.t VALUES (X'01', X'C3A4', X'00FFC3', NULL)",
        f"UPDATE {name}.t SET b = 'other' WHERE a = 'plain'",
        f"DELETE FROM {name}.t WHERE a = X'01'",
    )
    before = content(nameless, f"{name}.t", "a", "b", "c", "d")
    lines = changed(shown(file, "--table", rf"{name}\.t", "--output", "json"))
    first = {"a": "plain", "b": "it's", "c": "two\nlines \\", "d": "grün"}
    assert lines[0] == first
    assert lines[-1] == first | {"b": "other"}
    assert lines[1]["a"] == ("grün" if "MariaDB" not in nameless.version and nameless.version > "8" else "Z3L8bg==")
    sql = shown(file, "--table", rf"{name}\.t", "--output", "sql")
    execute(nameless, f"DROP TABLE {name}.t")
    apply(nameless, sql)
    assert content(nameless, f"{name}.t", "a", "b", "c", "d") == before


def test_a_table_that_the_server_no_longer_has_does_not_refuse_the_rest(
    nameless: DatabaseServer, name: str, tmp_path: Path
) -> None:
    for table in ("here", "gone", "other"):
        execute(nameless, f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4)")
    file = new_file(nameless)
    for table in ("here", "gone", "other"):
        execute(nameless, f"INSERT INTO {name}.{table} VALUES (1, '{table}')")
    new_file(nameless)
    execute(nameless, f"DROP TABLE {name}.gone", f"ALTER TABLE {name}.other ADD COLUMN n INT")
    options, environment = live(nameless)
    chosen = [file, "--table", rf"{name}\..*", *options]
    result = binlog(*chosen, "--output", "json", **environment)
    assert result.exit_code == 0, result.stderr
    assert changed(result.stdout) == [{"id": 1, "v": "here"}, {"@1": 1, "@2": "gone"}, {"@1": 1, "@2": "other"}]
    (warning,) = [line for line in result.stderr.splitlines() if "warning" in line]
    assert f"{name}.gone (" in warning
    assert f"{name}.other (table {name}.other has 2 columns in the log and 3 now" in warning
    sql = shown(*chosen, "--output", "sql", **environment)
    assert f"-- no names of columns: INSERT INTO `{name}`.`gone` (`@1`, `@2`) VALUES (1, " in sql
    execute(nameless, f"DELETE FROM {name}.here")
    apply(nameless, sql)
    assert content(nameless, f"{name}.here", "v") == [(b"here".hex().upper(),)]
    for kind in ("csv", "arrow", "parquet"):
        shown(*chosen, "--output", kind, "--to", tmp_path / kind, **environment)
        assert len(list((tmp_path / kind).iterdir())) == 3
    assert pa.ipc.open_file(tmp_path / "arrow" / f"{name}.here.arrow").read_all().column("v").to_pylist() == ["here"]
    gone = pa.ipc.open_file(tmp_path / "arrow" / f"{name}.gone.arrow").read_all()
    assert gone.column_names[:2] == ["@1", "@2"]
    with pytest.raises(SchemaError, match="no column names"):
        binlog(file, "--table", rf"{name}\.gone", "--output", "sql")


def test_a_server_gives_the_charsets_that_the_ddl_does_not_tell(nameless: DatabaseServer, name: str) -> None:
    execute(nameless, f"ALTER DATABASE {name} CHARACTER SET latin1")
    file = new_file(nameless)
    execute(
        nameless,
        "SET NAMES utf8mb4",
        f"CREATE TABLE {name}.t (a VARCHAR(30), b TEXT)",
        f"INSERT INTO {name}.t VALUES ('grün', 'ü')",
    )
    options, environment = live(nameless)
    text = shown(file, "--table", rf"{name}\.t", "--output", "json", *options, **environment)
    assert changed(text) == [{"a": "grün", "b": "ü"}]
