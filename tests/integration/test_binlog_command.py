"""`penstock binlog` on logs of real servers: its SQL does the same again, and its way back leads back."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll

PENSTOCK = Path(sys.executable).with_name("penstock")
NewDatabase = Callable[[DatabaseServer], str]
SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")

COMMON = {
    "t1": ("TINYINT", ["-128", "127", "0"]),
    "b2": ("BIGINT UNSIGNED", ["0", "18446744073709551615"]),
    "m1": ("MEDIUMINT", ["-8388608", "8388607"]),
    "d1": ("DECIMAL(10,2)", ["-99999999.99", "0.01", "0"]),
    "d2": ("DECIMAL(65,30)", [f"-{'9' * 35}.{'9' * 30}", "0.000000000000000000000000000001"]),
    "f1": ("FLOAT", ["0.1", "-1.5e-30", "3.4e38", "16777216", "3.4028234663852886e38", "-3.4028234663852886e38"]),
    "f2": ("DOUBLE", ["0.1", "1e300", "-0e0", "5e-324", "1.7976931348623157e308"]),
    "y1": ("YEAR", ["0", "1901", "2155", "2000"]),
    "bi": ("BIT(13)", ["b'1010101010101'", "b'0'"]),
    "bl": ("BIT(64)", ["b'1'", "18446744073709551615"]),
    "v1": (
        "VARCHAR(40)",
        ["''", "'it''s'", "'a\\\\b\"c'", "'tab\\tline\\nnull\\0end\\Z'", "'ünï漢😀'", "'trailing  '"],
    ),
    "v2": ("VARCHAR(40) CHARACTER SET latin1", ["'Jürgen €'", "'ÿ'", "''"]),
    "v3": ("VARCHAR(40) CHARACTER SET gbk", ["'漢字'", "'a'"]),
    "c1": ("CHAR(10)", ["'pad'", "''", "'ABC'", "'abc'"]),
    "x1": ("LONGTEXT", ["REPEAT('long text ', 700)", "''"]),
    "n1": ("VARBINARY(20)", ["x'00ff27005c'", "''"]),
    "n2": ("BLOB", ["x'0001fffe'", "REPEAT(x'ab', 3000)"]),
    "n3": ("BINARY(4)", ["x'01020300'", "x'00'"]),
    "e1": ("ENUM('a','b','it''s','ü')", ["'a'", "'it''s'", "'ü'"]),
    "e2": ("SET('x','y','z')", ["''", "'x,z'"]),
    "da": ("DATE", ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'", "'2023-02-31'"]),
    "dt": ("DATETIME(6)", ["'9999-12-31 23:59:59.999999'", "'0000-00-00'", "'2024-02-29 12:34:56.000007'"]),
    "d0": ("DATETIME", ["'1000-01-01 00:00:00'", "'2024-10-10 10:10:10'"]),
    "ts": ("TIMESTAMP(3) NULL DEFAULT NULL", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999'", "'0000-00-00'"]),
    "up": (
        "TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
        ["'2001-02-03 04:05:06'", "'2011-12-13 14:15:16'"],
    ),
    "ti": ("TIME(2)", ["'-838:59:58.99'", "'00:00:00.01'", "'838:59:59'"]),
    "ge": ("GEOMETRY", ["ST_GeomFromText('POINT(1 2.5)')", "ST_GeomFromText('LINESTRING(0 0,1 1,2 4)')"]),
}
OWN = {
    "mariadb": {
        "js": ("JSON", ["'{\"a\": [1, null]}'"]),
        "uu": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"]),
        "i6": ("INET6", ["'2001:db8::1'", "'::'"]),
        "vc": ("VARCHAR(500) COMPRESSED", ["REPEAT('compress me ', 30)", "'short'"]),
    },
    "mariadb11": {
        "js": ("JSON", ["'{\"a\": [1, null]}'"]),
        "uu": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"]),
        "ve": ("VECTOR(3)", ["VEC_FromText('[1,2.5,-3]')", "VEC_FromText('[0,0,0]')"]),
        "vc": ("VARCHAR(500) COMPRESSED", ["REPEAT('compress me ', 30)", "'short'"]),
    },
    "mysql57": {"js": ("JSON", ['\'{"a": [1, null, "x"]}\'', "'1.5'", "'\"it''s\"'", "'[]'"])},
    "mysql80": {
        "js": ("JSON", ['\'{"a": [1, null, "x"]}\'', "'1.5'", "'\"it''s\"'", "'[]'"]),
        "pt": ("POINT SRID 4326", ["ST_GeomFromText('POINT(52.5 13.4)', 4326)"]),
    },
    "mysql9": {
        "js": ("JSON", ['\'{"a": [1, null, "x"]}\'', "'1.5'", "'\"it''s\"'", "'[]'"]),
        "pt": ("POINT SRID 4326", ["ST_GeomFromText('POINT(52.5 13.4)', 4326)"]),
        "ve": ("VECTOR(3)", ["STRING_TO_VECTOR('[1,2.5,-3e10]')", "STRING_TO_VECTOR('[0,0,0]')"]),
    },
}
LOOSE = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PENSTOCK, "binlog", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def lines_of(*arguments: str, **environment: str) -> str:
    """In this process, which has the kernels loaded already."""
    result = CliRunner().invoke(app, ["binlog", *arguments], env=environment, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def live(server: DatabaseServer) -> tuple[list[str], dict[str, str]]:
    return ["--host", server.host, "--port", str(server.port)], {"PENSTOCK_PASSWORD": server.password}


def new_log(server: DatabaseServer) -> Path:
    """Begin a log file; gives its path."""
    execute(server, "FLUSH BINARY LOGS")
    return server.data / log_files(server)[-1]


def second_of(server: DatabaseServer) -> int:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT UNIX_TIMESTAMP()")
        ((second,),) = cursor.fetchall()
        return int(second)


def log_files(server: DatabaseServer) -> list[str]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return [row[0] for row in cursor.fetchall()]


def apply(server: DatabaseServer, sql: str) -> None:
    """Statement by statement, in one session, as a client program would send them."""
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION wait_timeout = 600")
        for statement in sql.split(";\n"):
            if statement.strip():
                cursor.execute(statement)


def rows_of(server: DatabaseServer, table: str) -> list[tuple[Any, ...]]:
    """Every value of a table in a form that shows each bit of it."""
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        schema, name = table.split(".")
        cursor.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            " ORDER BY ordinal_position",
            (schema, name),
        )
        shown = [f"{name}+0" if kind == "bit" else f"HEX({name})" for name, kind in cursor.fetchall()]
        shown = [column.replace("HEX(f1)", "f1+0e0").replace("HEX(f2)", "f2+0e0") for column in shown]
        cursor.execute(f"SELECT {', '.join(shown)} FROM {table}")
        return sorted(cursor.fetchall(), key=repr)


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


class Work:
    """Random changes of two tables, one with a key and one without."""

    def __init__(self, server: DatabaseServer, name: str, columns: dict[str, tuple[str, list[str]]], seed: int) -> None:
        self.server, self.name, self.columns = server, name, columns
        self._dice = random.Random(seed)
        self._next = 1
        self._keys: list[int] = []

    def create(self) -> None:
        columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in self.columns.items())
        execute(
            self.server,
            LOOSE,
            f"CREATE TABLE {self.name}.keyed (id INT, part VARCHAR(10), {columns}, PRIMARY KEY (id, part))"
            " DEFAULT CHARSET utf8mb4",
            f"CREATE TABLE {self.name}.heap (id INT, {columns}) DEFAULT CHARSET utf8mb4",
        )

    def _value(self, name: str) -> str:
        return "NULL" if self._dice.random() < 0.2 else self._dice.choice(self.columns[name][1])

    def _insert(self) -> Iterator[str]:
        key, self._next = self._next, self._next + 1
        self._keys.append(key)
        values = ", ".join(self._value(name) for name in self.columns)
        yield f"INSERT INTO {self.name}.keyed VALUES ({key}, 'p{key % 3}', {values})"
        # The rows without a key come in pairs that differ in nothing, or in case only.
        yield f"INSERT INTO {self.name}.heap VALUES ({key // 2}, {values})"

    def _change(self) -> Iterator[str]:
        some = self._dice.sample(list(self.columns), 3)
        sets = ", ".join(f"`{name}` = {self._value(name)}" for name in some)
        key = self._dice.choice(self._keys)
        yield f"UPDATE {self.name}.keyed SET {sets} WHERE id = {key}"
        yield f"UPDATE {self.name}.heap SET {sets} WHERE id = {key // 2} LIMIT 1"
        for table in TABLES:
            yield f"UPDATE {self.name}.{table} SET js = JSON_SET(js, '$.a[0]', {key}) WHERE js LIKE '%a%' AND id < 9"

    def _move(self) -> Iterator[str]:
        key, new, self._next = self._dice.choice(self._keys), self._next, self._next + 1
        self._keys[self._keys.index(key)] = new
        yield f"UPDATE {self.name}.keyed SET id = {new}, part = 'moved' WHERE id = {key}"
        yield f"UPDATE {self.name}.heap SET id = id + 1 WHERE id < 5"

    def _delete(self) -> Iterator[str]:
        key = self._dice.choice(self._keys)
        self._keys.remove(key)
        yield f"DELETE FROM {self.name}.keyed WHERE id = {key}"
        yield f"DELETE FROM {self.name}.heap WHERE id = {key // 2} LIMIT 1"

    def do(self, transactions: int, *settings: str) -> None:
        statements = [LOOSE, *settings]
        for _ in range(transactions):
            statements.append("BEGIN")
            for _ in range(self._dice.randrange(1, 4)):
                kinds = [self._insert, self._insert, self._change, self._change, self._move, self._delete]
                statements += (self._dice.choice(kinds) if len(self._keys) > 3 else self._insert)()
            statements.append("COMMIT")
        execute(self.server, *statements)


TABLES = ("keyed", "heap")
# Ways of logging that change the bytes and must not change the result, in the runs with the second seed.
SETTINGS = {
    "mysql80": ("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",),
    "mysql9": (
        "SET SESSION binlog_transaction_compression = ON",
        "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
    ),
}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_sql_does_the_same_again_and_the_way_back_leads_back(
    server: DatabaseServer, database: NewDatabase, seed: int, request: pytest.FixtureRequest
) -> None:
    name = database(server)
    source = request.node.callspec.params["server"]
    work = Work(server, name, COMMON | OWN[source], seed)
    work.create()
    work.do(5)
    execute(server, LOOSE, *(f"CREATE TABLE {name}.{table}_before LIKE {name}.{table}" for table in TABLES))
    execute(server, LOOSE, *(f"INSERT INTO {name}.{table}_before SELECT * FROM {name}.{table}" for table in TABLES))
    log = new_log(server)
    work.do(40, *(SETTINGS.get(source, ()) if seed == 2 else ()))
    new_log(server)
    # Logs of 5.7 have no names, no charsets and no keys: the server is asked for them.
    options, environment = live(server)
    chosen = [str(log), "--table", rf"{name}\.(keyed|heap)", *(options if source == "mysql57" else [])]

    redo = lines_of(*chosen, "--output", "sql", **environment)
    undo = lines_of(*chosen, "--flashback", **environment)
    assert redo.count("BEGIN;\n") == redo.count("COMMIT;\n") == undo.count("BEGIN;\n") == undo.count("COMMIT;\n") == 40

    before = {table: rows_of(server, f"{name}.{table}_before") for table in TABLES}
    after = {table: rows_of(server, f"{name}.{table}") for table in TABLES}
    assert before != after
    apply(server, undo)
    for table in TABLES:
        assert rows_of(server, f"{name}.{table}") == before[table], table
    apply(server, redo)
    for table in TABLES:
        assert rows_of(server, f"{name}.{table}") == after[table], table


def test_the_largest_float_is_written_as_servers_take_it(server: DatabaseServer, database: NewDatabase) -> None:
    """Its fewest digits, 3.4028235e38, are beyond the range of FLOAT."""
    table = f"{database(server)}.t"
    execute(server, f"CREATE TABLE {table} (id INT PRIMARY KEY, f FLOAT)")
    log = new_log(server)
    execute(server, f"INSERT INTO {table} VALUES (1, 3.4028234663852886e38), (2, -3.4028234663852886e38), (3, 0.1)")
    options, environment = live(server)
    redo = lines_of(str(log), "--table", table, "--output", "sql", *options, **environment)
    csv = lines_of(str(log), "--table", table, "--output", "csv", *options, **environment)
    assert [line.split(",")[1] for line in csv.splitlines()[1:]] == [
        "3.4028234663852886e+38",
        "-3.4028234663852886e+38",
        "0.1",
    ]
    execute(server, f"DELETE FROM {table}")
    apply(server, redo)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT f + 0e0 FROM {table} ORDER BY id")
        numbers = [row[0] for row in cursor.fetchall()]
    assert numbers == [3.4028234663852886e38, -3.4028234663852886e38, 0.10000000149011612]


CLIENTS = {
    "mariadb": lambda server: [*server.installation.tool_command("mariadb"), "--no-defaults"],
    "mariadb11": lambda server: [*server.installation.tool_command("mariadb"), "--no-defaults"],
    "mysql9": lambda server: [*server.tool("mysql"), "--no-defaults"],
}


@pytest.mark.parametrize("source", ["mariadb", "mariadb11", "mysql9"])
def test_the_servers_own_client_runs_the_sql(
    source: str, database: NewDatabase, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = request.getfixturevalue(source)
    name = database(server)
    log = new_log(server)
    execute(
        server,
        f"USE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a TEXT, b BLOB) DEFAULT CHARSET utf8mb4",
        f"CREATE TABLE {name}.audit (id INT PRIMARY KEY AUTO_INCREMENT, what TEXT) DEFAULT CHARSET utf8mb4",
        f"CREATE PROCEDURE {name}.p() BEGIN SELECT 1; SELECT 'two; $$ words'; END",
        f"INSERT INTO {name}.t VALUES (1, 'a;\\nb\\'c', x'00275c0a'), (2, '-- no comment', x'1a')",
        f"ALTER TABLE {name}.t ADD COLUMN c INT",
        f"UPDATE {name}.t SET c = id, a = CONCAT(a, '\\\\')",
    )
    new_log(server)
    sql = lines_of(str(log), "--output", "sql")
    before = rows_of(server, f"{name}.t")
    execute(server, f"DROP DATABASE {name}", f"CREATE DATABASE {name}")
    password = tmp_path / "client.cnf"
    password.write_text(f"[client]\npassword={server.password}\n")
    program, *options = CLIENTS[source](server)[:-1], "--user=root"
    command = [
        *program,
        f"--defaults-extra-file={password}",
        *options,
        f"--host={server.host}",
        f"--port={server.port}",
    ]
    done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert rows_of(server, f"{name}.t") == before
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT routine_name FROM information_schema.routines WHERE routine_schema = %s", (name,))
        assert cursor.fetchall() == (("p",),)


def test_minimal_images_are_replayed_but_not_undone(server: DatabaseServer, database: NewDatabase) -> None:
    name = database(server)
    execute(
        server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(10)) DEFAULT CHARSET utf8mb4"
    )
    log = new_log(server)
    execute(
        server,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        f"INSERT INTO {name}.t (id, b) VALUES (1, 'x'), (2, NULL)",
        f"UPDATE {name}.t SET a = NULL WHERE id = 1",
        f"UPDATE {name}.t SET b = 'z', id = 3 WHERE id = 2",
        f"INSERT INTO {name}.t VALUES (4, 4, 'four')",
        f"DELETE FROM {name}.t WHERE id = 4",
    )
    new_log(server)
    options, environment = live(server)
    chosen = [str(log), "--table", rf"{name}\.t", *options]
    after = rows_of(server, f"{name}.t")
    redo = lines_of(*chosen, "--output", "sql", **environment)
    execute(server, f"TRUNCATE {name}.t")
    apply(server, redo)
    assert rows_of(server, f"{name}.t") == after
    changes = [json.loads(line) for line in lines_of(*chosen, **environment).splitlines()]
    update = next(change for change in changes if change["type"] == "update")
    assert update["after"] == {"a": None}
    assert update["before"] == {"id": 1}
    refused = run(*chosen, "--flashback", **environment)
    assert refused.returncode == 1
    assert "does not carry column" in refused.stderr
    assert "MINIMAL" in refused.stderr
    assert not refused.stdout


def test_a_server_is_read_from_a_position_a_gtid_and_a_time(server: DatabaseServer, database: NewDatabase) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    for number in range(1, 7):
        execute(server, f"INSERT INTO {name}.t VALUES ({number})")
        if number in {2, 4}:
            new_log(server)
            opened = second_of(server)  # files are told apart by the second in which they were opened
            assert poll(lambda opened=opened: second_of(server) > opened)
    options, environment = live(server)
    options += ["--table", rf"{name}\.t", "--output", "json"]

    def read(*further: str) -> list[dict[str, Any]]:
        lines = lines_of(*options, *further, **environment).splitlines()
        return [change for change in map(json.loads, lines) if change["type"] != "ddl"]

    def numbers(*further: str) -> list[int]:
        return [next(iter(change["after"].values())) for change in read(*further)]

    whole = read("--since", "-1h")
    assert [next(iter(change["after"].values())) for change in whole] == [1, 2, 3, 4, 5, 6]
    third = whole[2]
    assert read("--from", f"{third['file']}:{third['pos']}") == whole[2:]
    last = whole[-1]
    assert read("--from", f"{last['file']}:{last['pos']}") == [last]
    assert numbers("--from", third["gtid"]) == [3, 4, 5, 6]
    assert numbers("--since", third["ts"]) == [3, 4, 5, 6]
    assert numbers("--since", third["ts"], "--until", whole[4]["ts"]) == [3, 4]
    assert numbers("--from", f"{third['file']}:4", "--until", f"{third['file']}:{whole[3]['pos']}") == [3]
    assert numbers("--since", "now") == []
    if "-" in third["gtid"].rpartition(":")[2]:
        after_third = f"{third['gtid']},77-1-5"
    else:
        source, _, number = third["gtid"].rpartition(":")
        after_third = f"{source}:1-{number}"
    assert numbers("--from", after_third) == [4, 5, 6]
    lost = run(*options, "--from", "binlog.999999:4", **environment)
    assert lost.returncode == 1
    assert "ahead of the log" in lost.stderr


def test_following_shows_what_is_committed_until_it_is_stopped(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    options, environment = live(server)
    output = tmp_path / "followed"
    with output.open("wb") as file:
        follower = subprocess.Popen(
            [PENSTOCK, "binlog", *options, "--follow", "--table", rf"{name}\.t"],
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.PIPE,
        )
    try:
        counter = iter(range(1, 10_000))

        def is_seen() -> bool:
            execute(server, f"INSERT INTO {name}.t VALUES ({next(counter)})")
            return output.stat().st_size > 0

        assert poll(is_seen, 60)
        follower.send_signal(signal.SIGINT)
        _, errors = follower.communicate(timeout=30)
    finally:
        follower.kill()
    assert (follower.returncode, errors) == (130, b"")
    first = json.loads(output.read_text().splitlines()[0])
    assert first["table"] == f"{name}.t"


def test_statistics_and_files_agree_with_the_server(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(mariadb)
    log = new_log(mariadb)
    execute(
        mariadb,
        f"USE {name}",
        f"CREATE TABLE {name}.a (id INT PRIMARY KEY, v DECIMAL(8,2), n BLOB) DEFAULT CHARSET utf8mb4",
        f"CREATE TABLE {name}.b (id INT PRIMARY KEY)",
        f"INSERT INTO {name}.a SELECT seq, seq / 4, REPEAT('x', 100) FROM seq_1_to_5000",
        "BEGIN",
        f"UPDATE {name}.a SET v = v + 1 WHERE id <= 10",
        f"INSERT INTO {name}.b VALUES (1), (2)",
        "COMMIT",
        f"DELETE FROM {name}.a WHERE id > 4990",
    )
    new_log(mariadb)
    stats = json.loads(lines_of(str(log), "--stats", "--output", "json"))
    tables = {table["table"]: table for table in stats["tables"]}
    assert tables[f"{name}.a"]["rows"] == {"insert": 5000, "update": 10, "delete": 10}
    assert tables[f"{name}.a"]["transactions"] == 3
    assert tables[f"{name}.b"]["rows"]["insert"] == 2
    assert stats["transactions"] == 5
    assert stats["statements"] == 2
    assert stats["rows"] == 5022
    assert stats["largest_transactions"][0]["rows"] == 5000
    assert sum(bar["rows"] for bar in stats["rate"]["bars"]) == 5022
    assert stats["bytes"] <= log.stat().st_size < stats["bytes"] + 400

    lines_of(str(log), "--output", "parquet", "--to", str(tmp_path / "tables"), "--table", rf"{name}\..*")
    table = pq.read_table(tmp_path / "tables" / f"{name}.a.parquet")
    assert table.num_rows == 5000 + 20 + 10
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v, n FROM {name}.a ORDER BY id")
        expected = cursor.fetchall()
    newest = {row["id"]: (row["id"], row["v"], row["n"]) for row in table.to_pylist()}
    assert [newest[row[0]] for row in expected] == list(expected)
    assert "whole, checksums match" in lines_of(str(log), "--verify")


def xa(name: str, xid: str, number: int, *outcome: str) -> list[str]:
    return [
        f"XA START {xid}",
        f"INSERT INTO {name}.t VALUES ({number}, 'row {number}')",
        f"UPDATE {name}.t SET a = CONCAT(a, '!') WHERE id = {number}",
        f"XA END {xid}",
        *outcome,
    ]


def test_xa_transactions_are_done_again_and_undone_as_they_ended(
    server: DatabaseServer, database: NewDatabase, request: pytest.FixtureRequest
) -> None:
    """One is committed, one rolled back, one committed in one phase."""
    name = database(server)
    source = request.node.callspec.params["server"]
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a VARCHAR(20)) DEFAULT CHARSET utf8mb4")
    log = new_log(server)
    execute(
        server,
        *xa(name, "'one','branch',7", 1, "XA PREPARE 'one','branch',7", "XA COMMIT 'one','branch',7"),
        *xa(name, "'two'", 2, "XA PREPARE 'two'", "XA ROLLBACK 'two'"),
        *xa(name, "'three'", 3, "XA COMMIT 'three' ONE PHASE"),
    )
    new_log(server)
    options, environment = live(server)
    chosen = [str(log), "--table", rf"{name}\.t", *(options if source == "mysql57" else [])]
    after = rows_of(server, f"{name}.t")
    assert len(after) == 2
    redo = lines_of(*chosen, "--output", "sql", **environment)
    undo = lines_of(*chosen, "--flashback", **environment)
    assert "XA START X'6f6e65',X'6272616e6368',7;\n" in redo
    assert "XA ROLLBACK X'74776f',X'',1;\n" in redo
    apply(server, undo)
    assert rows_of(server, f"{name}.t") == []
    apply(server, redo)
    assert rows_of(server, f"{name}.t") == after
    changes = [json.loads(line) for line in lines_of(*chosen, **environment).splitlines()]
    decided = {change["xa"]: change["type"] for change in changes if change["type"] in {"commit", "rollback"}}
    assert decided["X'6f6e65',X'6272616e6368',7"] == "commit"
    assert decided["X'74776f',X'',1"] == "rollback"


def test_what_is_only_prepared_is_not_undone(server: DatabaseServer, database: NewDatabase) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a VARCHAR(20)) DEFAULT CHARSET utf8mb4")
    log = new_log(server)
    xid = f"'{name}'"
    # The session ends here, and the transaction lives on.
    execute(server, *xa(name, xid, 1, f"XA PREPARE {xid}"))
    try:
        options, environment = live(server)
        chosen = [str(log), "--table", rf"{name}\.t", *options]
        refused = run(*chosen, "--flashback", **environment)
        assert refused.returncode == 1
        assert f"prepares the XA transaction X'{name.encode().hex()}',X'',1" in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert not refused.stdout
    finally:
        assert poll(lambda: is_done(server, f"XA ROLLBACK {xid}"), 30)
    # What was rolled back leaves nothing to undo.
    assert "`t`" not in lines_of(*chosen, "--flashback", **environment)


def is_done(server: DatabaseServer, statement: str) -> bool:
    """A session that has gone may still hold the transaction for a moment."""
    try:
        execute(server, statement)
    except Exception:  # noqa: BLE001 - each server says it in another way
        return False
    return True


@pytest.mark.parametrize("source", ["mariadb", "mariadb11", "mysql9"])
def test_the_statements_behind_rows(source: str, database: NewDatabase, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(source)
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a VARCHAR(20)) DEFAULT CHARSET utf8mb4")
    log = new_log(server)
    statement = f"INSERT INTO {name}.t\nVALUES (1, 'ü'), (2, '')"
    switch = "binlog_annotate_row_events" if source.startswith("mariadb") else "binlog_rows_query_log_events"
    execute(server, f"SET SESSION {switch} = ON", statement)
    new_log(server)
    chosen = [str(log), "--table", rf"{name}\.t"]
    first, second = statement.splitlines()
    assert f"BEGIN;\n-- {first}\n-- {second}\nINSERT INTO" in lines_of(*chosen, "--output", "sql")
    query, *rows = [json.loads(line) for line in lines_of(*chosen, "--statements").splitlines()]
    assert (query["type"], query["sql"]) == ("query", statement)
    assert [row["after"]["id"] for row in rows] == [1, 2]


def test_types_that_the_log_of_mariadb_does_not_tell(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {name}.t (id UUID PRIMARY KEY, six INET6, four INET4, plain BINARY(16), n INT)"
        " DEFAULT CHARSET utf8mb4",
    )
    log = new_log(mariadb)
    uuid = "123e4567-e89b-12d3-a456-426655440000"
    execute(
        mariadb,
        f"INSERT INTO {name}.t VALUES ('{uuid}', '2001:db8::1', '10.0.0.7', REPEAT('x', 16), 1)",
        f"UPDATE {name}.t SET n = 2",
    )
    new_log(mariadb)
    options, environment = live(mariadb)
    chosen = [str(log), "--table", rf"{name}\.t"]
    row = json.loads(lines_of(*chosen, *options, **environment).splitlines()[0])["after"]
    assert row == {
        "id": uuid,
        "six": "2001:db8::1",
        "four": "10.0.0.7",
        "plain": "eHh4eHh4eHh4eHh4eHh4eA==",
        "n": 1,
    }
    alone = json.loads(lines_of(*chosen).splitlines()[0])["after"]
    assert alone["id"] == "Ej5FZ+ibEtOkVkJmVUQAAA=="
    lines_of(*chosen, *options, "--output", "parquet", "--to", str(tmp_path / "t.parquet"), **environment)
    assert pq.read_table(tmp_path / "t.parquet").to_pylist()[0]["id"] == uuid
    # The SQL finds and restores such values.
    after = rows_of(mariadb, f"{name}.t")
    undo, redo = (lines_of(*chosen, *options, *way, **environment) for way in (["--flashback"], ["--output", "sql"]))
    apply(mariadb, undo)
    assert rows_of(mariadb, f"{name}.t") == []
    apply(mariadb, redo)
    assert rows_of(mariadb, f"{name}.t") == after


def test_a_time_inside_a_transaction_takes_it_whole_or_not(server: DatabaseServer, database: NewDatabase) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    with server.connect() as connection, connection.cursor() as cursor:
        begun = second_of(server)
        assert poll(lambda: second_of(server) > begun)
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {name}.t VALUES (1)")
        inside = second_of(server) + 1
        assert poll(lambda: second_of(server) > inside)
        cursor.execute(f"INSERT INTO {name}.t VALUES (2)")
        cursor.execute("COMMIT")
    options, environment = live(server)
    options += ["--table", rf"{name}\.t", "--output", "json"]

    def numbers(since: str) -> list[int]:
        lines = map(json.loads, lines_of(*options, "--since", since, **environment).splitlines())
        inserts = [change for change in lines if change["type"] == "insert"]
        assert all(change["gtid"] for change in inserts)
        return [next(iter(change["after"].values())) for change in inserts]

    moment = datetime.fromtimestamp(inside, UTC).isoformat()
    assert numbers(moment) in ([1, 2], [])
    assert numbers(datetime.fromtimestamp(begun, UTC).isoformat()) == [1, 2]
