"""The statements behind rows, which some logs hold beside them."""

import json
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from tests.support.shop_log import PRODUCT, binlog, shown, written
from tests.support.xa_log import lines, note, note_rows
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

FIRST = "INSERT INTO note\nVALUES ('a')"
SECOND = "INSERT INTO product -- \u00fc \U0001f600"


@pytest.fixture(params=[True, False], ids=["mariadb", "mysql"])
def log(request: pytest.FixtureRequest) -> LogWriter:
    log = LogWriter(is_mariadb=request.param).open()
    log.begin()
    note(log, FIRST.encode())
    note_rows(log, "a")
    note(log, SECOND.encode())
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "x", None], [2, "y", None]])
    log.rows(INSERT, 7, PRODUCT, [[3, "z", None]])
    log.commit()
    log.begin()
    note_rows(log, "without a note")
    log.commit()
    log.begin()
    note(log, b"rows of it are nowhere")
    log.commit()
    return log


def test_sql_has_them_as_comments(log: LogWriter, tmp_path: Path) -> None:
    body = shown(written(log, tmp_path), "--output", "sql").splitlines()[4:]
    assert body[:4] == [
        "BEGIN;",
        "-- INSERT INTO note",
        "-- VALUES ('a')",
        "INSERT INTO `shop`.`note` (`what`, `raw`) VALUES ('a', NULL);",
    ]
    assert body[4] == f"-- {SECOND}"
    assert [line.startswith("INSERT INTO `shop`.`product`") for line in body[5:8]] == [True] * 3
    assert "nowhere" not in "".join(body)


def test_with_a_choice_of_tables_only_those_of_their_rows(log: LogWriter, tmp_path: Path) -> None:
    sql = shown(written(log, tmp_path), "--output", "sql", "--table", "shop.product")
    assert f"BEGIN;\n-- {SECOND}\nINSERT" in sql
    assert "VALUES ('a')" not in sql


@pytest.mark.parametrize("tables", [(), ("shop.product",), ("shop.note",)])
def test_where_blocks_end_makes_no_difference(log: LogWriter, tables: tuple[str, ...]) -> None:
    whole = lines(log, "sql", tables=tables)
    for cut in range(100, len(log.data), 7):
        assert lines(log, "sql", [cut], tables) == whole, cut
    assert lines(log, "sql", range(100, 400, 3), tables) == whole


def test_json_and_table_have_them_when_asked(log: LogWriter, tmp_path: Path) -> None:
    path = written(log, tmp_path)
    lines = [json.loads(line) for line in shown(path, "--statements").splitlines()]
    assert [line["type"] for line in lines] == ["query", "insert", "query", "insert", "insert", "insert", "insert"]
    assert lines[0]["sql"] == FIRST
    assert lines[2]["sql"] == SECOND
    assert lines[0]["gtid"] == lines[1]["gtid"]
    assert set(lines[0]) == {"type", "ts", "gtid", "file", "pos", "sql"}
    assert [json.loads(line) for line in shown(path).splitlines()] == [
        line for line in lines if line["type"] != "query"
    ]
    text = shown(path, "--statements", "--output", "text").splitlines()
    assert text[1:3] == ["  # INSERT INTO note VALUES ('a')", "  INSERT shop.note  what='a'  raw=NULL"]


def test_what_is_no_utf8_and_what_a_client_would_choke_on(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.begin()
    note(log, b"SELECT '\xff\0\r'; DROP TABLE x\n;DROP TABLE y")
    note_rows(log, "a")
    log.commit()
    path = written(log, tmp_path)
    assert "-- SELECT '\ufffd\\0\\r'; DROP TABLE x\n-- ;DROP TABLE y\nINSERT" in shown(path, "--output", "sql")
    assert json.loads(shown(path, "--statements").splitlines()[0])["sql"].startswith("SELECT '\ufffd\0\r'")


@pytest.mark.parametrize("options", [["--flashback"], ["--stats"], ["--output", "csv"], ["--verify"]])
def test_formats_that_cannot_show_them_say_so(log: LogWriter, tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="takes no --statements"):
        binlog(written(log, tmp_path), "--statements", *options)
