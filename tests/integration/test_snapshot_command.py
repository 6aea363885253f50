"""`penstock snapshot` on real servers: every format has the rows, and an interrupted run resumes."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute

PENSTOCK = Path(sys.executable).with_name("penstock")
NewDatabase = Callable[[Any], str]
_ROWS = 20_000


@pytest.fixture
def table(mariadb: DatabaseServer, database: NewDatabase) -> str:
    schema = database(mariadb)
    execute(
        mariadb,
        f"USE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2), made DATETIME(3))",
        f"INSERT INTO {schema}.t SELECT seq, CONCAT('nr, \"', seq, '\"'), seq / 4, '2024-02-29 12:00:00.5'"
        f" FROM seq_1_to_{_ROWS}",
        f"UPDATE {schema}.t SET name = NULL WHERE id = 7",
        f"ANALYZE TABLE {schema}.t",
    )
    return f"{schema}.t"


def _environment(server: DatabaseServer) -> Mapping[str, str]:
    return {**os.environ, "PENSTOCK_PASSWORD": server.password}


def _command(server: DatabaseServer, *arguments: str) -> list[str]:
    connection_options = ["--host", server.host, "--port", str(server.port), "--user", server.user]
    return [str(PENSTOCK), "snapshot", *arguments, *connection_options]


def run(server: DatabaseServer, *arguments: str, code: int = 0) -> tuple[bytes, str]:
    done = subprocess.run(
        _command(server, *arguments), env=_environment(server), capture_output=True, timeout=120, check=False
    )
    errors = done.stderr.decode()
    assert done.returncode == code, errors
    return done.stdout, errors


def test_json_and_csv_come_as_lines(mariadb: DatabaseServer, table: str) -> None:
    output, errors = run(mariadb, table, "--chunk-rows", "3000")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["id"] for row in rows] == list(range(1, _ROWS + 1))
    assert rows[0] == {"id": 1, "name": 'nr, "1"', "price": "0.25", "made": "2024-02-29T12:00:00.500"}
    assert rows[6]["name"] is None
    assert f"{_ROWS:,} rows of {table}" in errors
    assert f"at {end_of(mariadb)}" in errors
    output, _ = run(mariadb, table, "--output", "csv", "--columns", "id,name")
    lines = list(csv.reader(io.StringIO(output.decode())))
    assert lines[0] == ["id", "name"]
    assert lines[1:4] == [["1", 'nr, "1"'], ["2", 'nr, "2"'], ["3", 'nr, "3"']]
    assert len(lines) == _ROWS + 1


def test_arrow_and_parquet_have_the_types(mariadb: DatabaseServer, table: str, tmp_path: Path) -> None:
    output, _ = run(mariadb, table, "--output", "arrow")
    streamed = pa.ipc.open_stream(output).read_all()
    run(mariadb, table, "--output", "parquet", "--to", str(tmp_path / "t.parquet"))
    written = pq.read_table(tmp_path / "t.parquet")
    types = [pa.int32(), pa.string(), pa.decimal128(10, 2), pa.timestamp("us")]
    assert streamed.schema.types == written.schema.types == types
    assert written.equals(streamed)
    assert written.num_rows == _ROWS
    assert not list(tmp_path.glob("*.partial"))
    run(mariadb, table, "--output", "parquet", "--to", f"{tmp_path / 't.v1'}/")
    assert pq.read_table(tmp_path / "t.v1" / "part-000000.parquet").equals(written), "a slash is that of a folder"


def test_a_killed_run_resumes_in_its_folder(mariadb: DatabaseServer, table: str, tmp_path: Path) -> None:
    target = tmp_path / "rows"
    arguments = (table, "--output", "parquet", "--to", str(target), "--chunk-rows", "1000", "--connections", "1")
    process = subprocess.Popen(
        _command(mariadb, *arguments, "--rows-per-s", "4000"), env=_environment(mariadb), stderr=subprocess.DEVNULL
    )
    try:
        assert poll_until(lambda: len(list(target.glob("part-*.parquet"))) >= 3, 60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = json.loads((target / "_snapshot.json").read_text())["finished"]
    before = {entry["file"]: (target / entry["file"]).stat().st_mtime_ns for entry in finished.values()}
    assert 0 < len(before) < 20
    execute(mariadb, f"UPDATE {table} SET name = 'later' WHERE id = {_ROWS}")
    _, errors = run(mariadb, *arguments)
    assert f"{len(before)} chunks already: resuming" in errors
    assert {name: (target / name).stat().st_mtime_ns for name in before} == before, "finished chunks are not read again"
    state = json.loads((target / "_snapshot.json").read_text())
    rows = pa.concat_tables(pq.read_table(target / entry["file"]) for entry in state["finished"].values())
    assert sorted(rows.column("id").to_pylist()) == list(range(1, _ROWS + 1))
    assert "later" in rows.column("name").to_pylist()
    assert sum(entry["rows"] for entry in state["finished"].values()) == _ROWS
    assert all(entry["low"]["file"] and entry["low"] == entry["high"] for entry in state["finished"].values())


def test_a_limit_on_rows_per_second_is_kept(mariadb: DatabaseServer, table: str) -> None:
    began = time.monotonic()
    run(mariadb, table, "--rows-per-s", "8000", "--chunk-rows", "2000")
    # The first batch of each connection is not waited for.
    assert time.monotonic() - began > (_ROWS - 2 * 2 * 2000) / 8000


def test_bad_input_is_refused_with_words(mariadb: DatabaseServer, table: str, tmp_path: Path) -> None:
    for arguments, words in (
        (("t",), "not a table name"),
        ((table, "--output", "xml"), "--output is one of parquet, csv, json, arrow"),
        ((table, "--output", "parquet"), "parquet needs a file or a folder"),
        ((table, "--columns", "nam"), "has no column nam"),
        (("mysql.nothing",), "there is no table"),
    ):
        _, errors = run(mariadb, *arguments, code=1)
        assert errors.startswith("penstock: ")
        assert words in errors
        assert errors.count("\n") == 1
    (tmp_path / "other").write_text("")
    _, errors = run(mariadb, table, "--to", str(tmp_path), code=1)
    assert "is not empty, and has no snapshot in it" in errors
    target = tmp_path / "rows"
    run(mariadb, table, "--to", str(target))
    _, errors = run(mariadb, table, "--to", str(target), "--columns", "id", code=1)
    assert "has a snapshot with another columns" in errors
    execute(mariadb, f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (price, id)")
    _, errors = run(mariadb, table, "--to", str(target), code=1)
    assert "has a snapshot with another key" in errors
