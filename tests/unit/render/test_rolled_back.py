"""Transactions that end in ROLLBACK: what they did in tables without transactions stayed, and only that."""

import json
from pathlib import Path

import pytest

from penstock.errors import BinlogError
from tests.support.shop_log import binlog, shown, written
from tests.support.xa_log import lines, note_rows
from tests.twins import event as ev
from tests.twins.log import LogWriter


@pytest.fixture
def log() -> LogWriter:
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    note_rows(log, "gone")
    log.add(ev.QUERY, ev.query(b"rollback"))
    log.begin()
    note_rows(log, "there")
    log.commit()
    return log


def test_sql_rolls_back_too(log: LogWriter, tmp_path: Path) -> None:
    sql = shown(written(log, tmp_path), "--output", "sql").splitlines()
    assert [line for line in sql if line in {"BEGIN;", "COMMIT;", "ROLLBACK;"}] == [
        *("BEGIN;", "ROLLBACK;"),
        *("BEGIN;", "COMMIT;"),
    ]


def test_json_says_so_after_the_rows(log: LogWriter, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in shown(written(log, tmp_path)).splitlines()]
    assert [line["type"] for line in lines] == ["insert", "rollback", "insert"]
    assert lines[0]["gtid"] == lines[1]["gtid"] != lines[2]["gtid"]
    assert set(lines[1]) == {"type", "ts", "gtid", "file", "pos"}


def test_people_see_it(log: LogWriter, tmp_path: Path) -> None:
    text = shown(written(log, tmp_path), "--output", "text").splitlines()
    assert text[1:3] == ["  INSERT shop.note  what='gone'  raw=NULL", "  ROLLBACK"]
    assert text.count("  ROLLBACK") == 1


@pytest.mark.parametrize("kind", ["sql", "json", "table"])
def test_where_blocks_end_makes_no_difference(log: LogWriter, kind: str) -> None:
    whole = lines(log, kind)
    for cut in range(100, len(log.data), 11):
        assert lines(log, kind, [cut]) == whole, cut


def test_one_without_rows_to_show_is_not_shown(log: LogWriter, tmp_path: Path) -> None:
    path = written(log, tmp_path)
    with_rows = json.loads(shown(path).splitlines()[0])
    after = f"binlog.000001:{with_rows['pos'] + 1}"
    assert [json.loads(line)["type"] for line in shown(path, "--since", after).splitlines()] == ["insert"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_of_rows_come_with_a_warning(log: LogWriter, tmp_path: Path, kind: str) -> None:
    result = binlog(written(log, tmp_path), "--output", kind, "--to", tmp_path / "out")
    assert "there are rows of transactions that end in ROLLBACK: 1;" in result.stderr


def test_there_is_no_way_back(log: LogWriter, tmp_path: Path) -> None:
    with pytest.raises(BinlogError, match=r"binlog\.000001:\d+ the transaction ends in ROLLBACK.*--since"):
        binlog(written(log, tmp_path), "--flashback")


def test_nor_from_a_savepoint(tmp_path: Path) -> None:
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.add(ev.QUERY, ev.query(b"SAVEPOINT `s`"))
    note_rows(log, "gone")
    log.add(ev.QUERY, ev.query(b"ROLLBACK TO `s`"))
    log.commit()
    path = written(log, tmp_path)
    with pytest.raises(BinlogError, match=r"binlog\.000001:\d+ the transaction goes back to a savepoint"):
        binlog(path, "--flashback")
    assert "\nROLLBACK TO `s`;\n" in shown(path, "--output", "sql")
