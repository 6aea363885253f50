"""LOAD DATA in statement format: its rows are not in the log as rows, and nobody is left without a word of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.testing import DatabaseServer
from tests.support.canal_port import SOURCES, connected, listening, seen
from tests.support.capture import execute, poll
from tests.support.following import following

PENSTOCK = Path(sys.executable).with_name("penstock")
CONTENT = "1\tloaded-4711\n2\tloaded-4712\n"


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def schema(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(server)
    execute(server, *(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, v VARCHAR(20))" for table in ("t", "last")))
    return name


@pytest.fixture
def load(server: DatabaseServer, schema: str, tmp_path: Path) -> Callable[[], None]:
    """Load two rows into t in statement format, and write a row into last."""
    file = tmp_path / "rows.tsv"
    file.write_text(CONTENT)

    def run() -> None:
        execute(server, "SET GLOBAL local_infile = 1")
        with server.connect(local_infile=True, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = STATEMENT")
            cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {schema}.t")
            assert cursor.rowcount == 2
        execute(server, f"INSERT INTO {schema}.last VALUES (1, 'end')")

    return run


def test_the_instance_tells_that_it_is_not_captured(server: DatabaseServer, load: Callable[[], None]) -> None:
    with following(server) as instance:
        load()
        assert poll(lambda: instance.status()["changes_as_statements"]["count"] == 1)
        assert "LOAD DATA" in instance.status()["changes_as_statements"]["last"]


def test_clients_get_it_by_their_filter(server: DatabaseServer, schema: str, load: Callable[[], None]) -> None:
    with (
        listening(server) as port,
        connected(port, rf"{schema}\.t,{schema}\.last", client_id=1) as client,
        connected(port, rf"{schema}\.last", client_id=2) as other,
    ):
        load()
        ((kind, name, sql),) = seen(client, "last")[0]
        assert (kind, name, sql[:9]) == ("INSERT", f"{schema}.t", "LOAD DATA")
        assert seen(other, "last")[0] == []


def test_a_filter_keeps_the_file_out_of_the_store(
    server: DatabaseServer, schema: str, load: Callable[[], None]
) -> None:
    with following(server, filter={"allow": [rf"{schema}\.last"]}) as instance:
        begin = instance.store.latest
        load()
        end = instance.source_log.end()
        assert poll(lambda: instance.store.latest >= end)
        raw = b"".join(block.data.tobytes() for block in instance.read(begin, end))
        assert b"end" in raw
        assert b"loaded-4711" not in raw


def test_the_command_shows_it(server: DatabaseServer, schema: str, load: Callable[[], None]) -> None:
    execute(server, "FLUSH BINARY LOGS", f"DROP TABLE {schema}.last")
    execute(server, f"CREATE TABLE {schema}.last (id INT PRIMARY KEY, v VARCHAR(20))")
    load()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        file = server.data / cursor.fetchall()[-1][0]

    def shown(kind: str, *options: str) -> tuple[str, str]:
        command = [PENSTOCK, "binlog", file, "--output", kind, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    lines = [json.loads(line) for line in shown("json")[0].splitlines()]
    (statement,) = [line for line in lines if "LOAD DATA" in line.get("sql", "")]
    assert (statement["type"], f"`{schema}`.`t`" in statement["sql"] or f"{schema}.t" in statement["sql"]) == (
        "statement",
        True,
    )
    assert "LOAD DATA" in shown("text")[0]
    sql, warning = shown("sql")
    (line,) = [line for line in sql.splitlines() if "LOAD DATA" in line]
    assert line.startswith("-- LOAD DATA")
    assert "a LOAD DATA in statement format: its rows are not in this output" in warning
    assert "LOAD DATA in statement format: 1, whose rows are not counted\n" in shown("text", "--stats")[0]
    assert json.loads(shown("json", "--stats")[0])["load_data_statements"] == 1
