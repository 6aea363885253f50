"""XA transactions: rows that are prepared here and committed, rolled back, or forgotten elsewhere."""

import json
from pathlib import Path

import pytest

from penstock.errors import BinlogError
from tests.support.shop_log import NOTE, binlog, shown, written
from tests.support.xa_log import lines, xa_outcome, xa_rows, xid_text
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

A, B, C, ONE = (xid_text(name) for name in (b"a", b"b", b"c", b"one"))


def product(number: int) -> list[object]:
    return [number, "x", None]


def plain(log: LogWriter, what: str) -> None:
    log.begin()
    log.map(8, NOTE)
    log.rows(INSERT, 8, NOTE, [[what, b""]])
    log.commit()


def xa_log(*, is_mariadb: bool) -> LogWriter:
    """a is committed after another transaction, b rolled back, c with the id of a again; one in one phase."""
    log = LogWriter(is_mariadb=is_mariadb).open()
    xa_rows(log, b"a", [product(1)])
    plain(log, "between")
    xa_rows(log, b"b", [product(2)])
    xa_outcome(log, "COMMIT", b"a")
    xa_outcome(log, "ROLLBACK", b"b")
    xa_rows(log, b"a", [product(3)])
    xa_outcome(log, "ROLLBACK", b"a")
    xa_rows(log, b"one", [product(4)], is_one_phase=True)
    return log


@pytest.fixture(params=[True, False], ids=["mariadb", "mysql"])
def log(request: pytest.FixtureRequest) -> LogWriter:
    return xa_log(is_mariadb=request.param)


def statements(sql: str) -> list[str]:
    return [line for line in sql.splitlines()[3:] if not line.startswith("--")]


def inserted(number: int) -> str:
    return f"INSERT INTO `shop`.`product` (`id`, `name`, `price`) VALUES ({number}, 'x', NULL);"


NOTE_ROW = "INSERT INTO `shop`.`note` (`what`, `raw`) VALUES ('between', X'');"


def test_the_sql_has_the_frame_of_the_log(log: LogWriter, tmp_path: Path) -> None:
    assert statements(shown(written(log, tmp_path), "--output", "sql")) == [
        *(f"XA START {A};", inserted(1), f"XA END {A};", f"XA PREPARE {A};"),
        *("BEGIN;", NOTE_ROW, "COMMIT;"),
        *(f"XA START {B};", inserted(2), f"XA END {B};", f"XA PREPARE {B};"),
        f"XA COMMIT {A};",
        f"XA ROLLBACK {B};",
        *(f"XA START {A};", inserted(3), f"XA END {A};", f"XA PREPARE {A};"),
        f"XA ROLLBACK {A};",
        *(f"XA START {ONE};", inserted(4), f"XA END {ONE};", f"XA COMMIT {ONE} ONE PHASE;"),
    ]


@pytest.mark.parametrize("kind", ["sql", "json", "table"])
def test_where_blocks_end_makes_no_difference(log: LogWriter, kind: str) -> None:
    whole = lines(log, kind)
    for cut in range(100, len(log.data), 23):
        assert lines(log, kind, [cut]) == whole, cut


def test_a_choice_of_tables_leaves_out_the_outcomes_of_others(log: LogWriter, tmp_path: Path) -> None:
    path = written(log, tmp_path)
    sql = statements(shown(path, "--output", "sql", "--table", "shop.note"))
    assert sql == ["BEGIN;", NOTE_ROW, "COMMIT;"]
    both = shown(path, "--output", "sql", "--table", "shop.product")
    assert [line for line in statements(both) if "ROLLBACK" in line] == [f"XA ROLLBACK {B};", f"XA ROLLBACK {A};"]


def test_an_outcome_without_its_rows_is_only_named(log: LogWriter, tmp_path: Path) -> None:
    path = written(log, tmp_path)
    gtids = [json.loads(line)["gtid"] for line in shown(path).splitlines() if '"commit"' in line]
    sql = shown(path, "--output", "sql", "--since", gtids[0])
    assert f"-- XA COMMIT {A}: prepared before this part of the log\n" in sql
    assert statements(sql)[0] == f"XA START {A};"
    result = binlog(path, "--flashback", "--since", gtids[0])
    assert f"cannot be undone: XA COMMIT {A}, prepared before" in result.stdout


def test_the_way_back_takes_what_was_committed(log: LogWriter, tmp_path: Path) -> None:
    undo = statements(shown(written(log, tmp_path), "--flashback"))
    assert [line for line in undo if line.startswith("DELETE FROM `shop`.`product`")] == [
        "DELETE FROM `shop`.`product` WHERE `id`=4;",
        "DELETE FROM `shop`.`product` WHERE `id`=1;",
    ]
    assert undo.count("BEGIN;") == undo.count("COMMIT;") == 3


def test_the_way_back_does_not_guess(log: LogWriter, tmp_path: Path) -> None:
    xa_rows(log, b"c", [product(5)])
    with pytest.raises(BinlogError, match=rf"binlog\.000001:\d+ prepares the XA transaction {C}.*--until"):
        binlog(written(log, tmp_path), "--flashback")


def test_the_outcome_may_be_in_the_next_file(tmp_path: Path) -> None:
    first, second = LogWriter().open(), LogWriter(file="binlog.000002").open()
    xa_rows(first, b"a", [product(1)])
    xa_rows(first, b"b", [product(2)])
    xa_outcome(second, "ROLLBACK", b"a")
    xa_outcome(second, "COMMIT", b"b")
    files = written(first, tmp_path), written(second, tmp_path, "binlog.000002")
    undo = statements(shown(*files, "--flashback"))
    assert undo == ["BEGIN;", "DELETE FROM `shop`.`product` WHERE `id`=2;", "COMMIT;"]
    with pytest.raises(BinlogError, match="does not say whether it was committed"):
        binlog(files[0], "--flashback")


def test_json_marks_the_rows_and_says_what_became_of_them(log: LogWriter, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in shown(written(log, tmp_path)).splitlines()]
    assert [(line["type"], line.get("xa")) for line in lines] == [
        *(("insert", A), ("prepare", A)),
        ("insert", None),
        *(("insert", B), ("prepare", B)),
        *(("commit", A), ("rollback", B)),
        *(("insert", A), ("prepare", A), ("rollback", A)),
        *(("insert", ONE), ("commit", ONE)),
    ]
    assert lines[0]["gtid"] == lines[1]["gtid"] != lines[5]["gtid"]


def test_people_see_it_in_the_heading(log: LogWriter, tmp_path: Path) -> None:
    text = shown(written(log, tmp_path), "--output", "text").splitlines()
    assert text[0].endswith(f"  XA {A}")
    assert text[1:3] == ["  INSERT shop.product  id=1  name='x'  price=NULL", f"  XA PREPARE {A}"]
    assert text[-1] == f"  XA COMMIT {ONE} ONE PHASE"


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_files_of_rows_come_with_a_warning(log: LogWriter, tmp_path: Path, kind: str) -> None:
    result = binlog(written(log, tmp_path), "--output", kind, "--to", tmp_path / "out")
    assert "there are rows of XA transactions, committed or not: 4; --output json says which" in result.stderr


def test_they_are_no_statements_to_statistics(log: LogWriter, tmp_path: Path) -> None:
    stats = json.loads(shown(written(log, tmp_path), "--stats", "--output", "json"))
    assert stats["statements"] == 0
    assert stats["rows"] == 5


def test_a_limit_inside_one_still_gives_whole_sql(log: LogWriter, tmp_path: Path) -> None:
    sql = statements(shown(written(log, tmp_path), "--output", "sql", "--limit", "1"))
    assert sql == [f"XA START {A};", inserted(1), f"XA END {A};", f"XA PREPARE {A};"]
