"""A log without names gets them from its own DDL, from there on; what does not fit stays without."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import BinlogWarning
from penstock.inspect import log_tables
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.shop_log import binlog, shop_log, shown, written
from tests.twins import event as ev
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, table_map
from tests.twins.table_map_fields import without_fields

EVERY_FIELD = frozenset(range(1, 14))
ID = Column("@1", WireType.LONG, nullable=False)
NAME = Column("@2", WireType.VARCHAR, size=80)
NOTE = Column("@3", WireType.BLOB, size=2)
CREATE = "CREATE TABLE item (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), note TEXT)"
DATABASE = "CREATE DATABASE shop CHARACTER SET utf8mb4"
NO_DATABASE = ""


def table(*columns: Column, name: str = "item") -> TableSchema:
    return TableSchema(TableName("shop", name), columns)


ITEM = table(ID, NAME, NOTE)


def new_log(file: str = "binlog.000001") -> LogWriter:
    return LogWriter(file, is_mariadb=False).open()


def insert(log: LogWriter, shape: TableSchema, *rows: list[Any], number: int = 7) -> None:
    log.begin()
    log.add(ev.TABLE_MAP, without_fields(table_map(number, shape, is_mariadb=False), EVERY_FIELD))
    log.rows(INSERT, number, shape, rows)
    log.commit()


def after(*arguments: object) -> list[dict[str, Any]]:
    lines = map(json.loads, shown(*arguments, "--output", "json").splitlines())
    return [line["after"] for line in lines if "after" in line]


def created(*statements: str) -> LogWriter:
    log = new_log()
    for statement in statements:
        if statement:
            log.statement(statement)
    return log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    writer = created(DATABASE, CREATE)
    insert(writer, ITEM, [4_000_000_000 - 2**32, "ü", b"\xc3\xa4"])
    return written(writer, tmp_path)


def test_names_signs_charsets_and_keys_come_from_the_ddl(log: Path, tmp_path: Path) -> None:
    (line,) = (json.loads(line) for line in shown(log, "--output", "json").splitlines() if '"insert"' in line)
    assert line["after"] == {"id": 4_000_000_000, "name": "ü", "note": "ä"}
    assert line["key"] == {"id": 4_000_000_000}
    sql = shown(log, "--output", "sql")
    assert "INSERT INTO `shop`.`item` (`id`, `name`, `note`) VALUES (4000000000, 'ü', 'ä');" in sql
    assert shown(log, "--output", "csv").splitlines()[1].startswith('4000000000,"ü","ä",')
    assert "id=4000000000  name='ü'  note='ä'" in shown(log, "--output", "text")
    for kind in ("arrow", "parquet"):
        shown(log, "--output", kind, "--to", tmp_path / f"rows.{kind}")
    rows = pa.ipc.open_file(tmp_path / "rows.arrow").read_all()
    assert rows.select(["id", "name", "note"]).to_pylist() == [{"id": 4_000_000_000, "name": "ü", "note": "ä"}]
    typed = penstock.read_binlog(log, "shop.item")
    assert typed.select(["id", "name", "note"]).to_pylist() == [{"id": 4_000_000_000, "name": "ü", "note": "ä"}]
    assert "DELETE FROM `shop`.`item` WHERE `id`=4000000000;" in shown(log, "--flashback")


def test_names_hold_from_their_ddl_on(tmp_path: Path) -> None:
    log = new_log()
    insert(log, ITEM, [1, "a", None])
    log.statement(DATABASE)
    log.statement(CREATE)
    insert(log, ITEM, [2, "b", None], number=8)
    log.statement("ALTER TABLE item CHANGE name title VARCHAR(20), ADD COLUMN n INT FIRST")
    insert(log, table(replace(ID, nullable=True), ID, NAME, NOTE), [9, 3, "c", None], number=9)
    path = written(log, tmp_path)
    assert after(path) == [
        {"@1": 1, "@2": "a", "@3": None},
        {"id": 2, "name": "b", "note": None},
        {"n": 9, "id": 3, "title": "c", "note": None},
    ]


@pytest.mark.parametrize("aside_bytes", [0, 1 << 20])
def test_ddl_counts_for_later_files_also_where_those_before_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aside_bytes: int
) -> None:
    monkeypatch.setattr(log_tables, "_MAX_ASIDE", aside_bytes)
    first, second, third, fifth = created(DATABASE, CREATE), *map(new_log, ("a.2", "a.3", "a.5"))
    insert(second, ITEM, [1, "a", None])
    third.statement("ALTER TABLE item RENAME COLUMN name TO title")
    insert(third, ITEM, [2, "b", None])
    insert(fifth, ITEM, [3, "c", None])
    paths = [written(log, tmp_path, f"a.00000{i}") for i, log in ((1, first), (2, second), (3, third), (5, fifth))]
    assert after(*paths[:3]) == [{"id": 1, "name": "a", "note": None}, {"id": 2, "title": "b", "note": None}]
    assert after(*paths[:3], "--since", "a.000003:4") == [{"id": 2, "title": "b", "note": None}]
    assert after(*paths)[2] == {"@1": 3, "@2": "c", "@3": None}, "what the missing file did to the table is not known"
    third_only = penstock.read_binlog(paths[:3], "shop.item")
    assert third_only.column_names[:4] == ["id", "title", "note", "name"]


@pytest.mark.parametrize("offset", [None, "rows"])
def test_reading_may_begin_after_the_ddl_of_the_same_file(tmp_path: Path, offset: str | None) -> None:
    log = created(DATABASE, CREATE)
    position = log.position
    insert(log, ITEM, [1, "a", None])
    path = written(log, tmp_path)
    since = ["--since", f"binlog.000001:{position}"] if offset else []
    assert after(path, *since) == [{"id": 1, "name": "a", "note": None}]


@pytest.mark.parametrize(
    ("shape", "row", "why"),
    [
        (table(ID, NAME), [1, "a"], "2 columns in the log, 3 in the history"),
        (table(ID, replace(NAME, size=60), NOTE), [1, "a", None], "column name has the size 60 in the log, 80"),
        (table(ID, NAME, ID), [1, "a", 3], "column note has the type LONG in the log, BLOB"),
    ],
)
def test_a_table_that_does_not_fit_its_ddl_is_shown_without_names(
    tmp_path: Path, shape: TableSchema, row: list[Any], why: str
) -> None:
    log = created(DATABASE, CREATE, "CREATE TABLE other (n INT NOT NULL)")
    for _ in range(3):
        insert(log, shape, row)
    insert(log, table(ID, name="other"), [5], number=8)
    path = written(log, tmp_path)
    result = binlog(path, "--output", "json")
    assert result.exit_code == 0
    rows = [json.loads(line).get("after") for line in result.stdout.splitlines()]
    assert rows[-4:] == [*[{f"@{i}": value for i, value in enumerate(row, 1)}] * 3, {"n": 5}]
    assert result.stderr.count("warning") == 1
    assert "are shown as @1, @2 …: shop.item (" in result.stderr
    assert why in result.stderr
    with pytest.warns(BinlogWarning, match="have no names"):
        penstock.read_binlog(path, "shop.item")
    with warnings.catch_warnings(action="error"):
        penstock.read_binlog(path, "shop.other")


def test_ddl_that_nobody_understands_stops_its_table_only(tmp_path: Path) -> None:
    log = created(DATABASE, CREATE, "CREATE TABLE other (n INT NOT NULL)", "ALTER TABLE item FROBNICATE ALL")
    insert(log, ITEM, [1, "a", None])
    insert(log, table(ID, name="other"), [5], number=8)
    result = binlog(written(log, tmp_path), "--output", "json")
    rows = [json.loads(line).get("after") for line in result.stdout.splitlines()]
    assert rows[-2:] == [{"@1": 1, "@2": "a", "@3": None}, {"n": 5}]
    assert "ALTER TABLE item FROBNICATE ALL" in result.stderr


@pytest.mark.parametrize("size", [20, 40, 60, 80])
def test_a_database_that_was_there_before_leaves_charsets_open(tmp_path: Path, size: int) -> None:
    log = created(
        "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), old VARCHAR(9) CHARACTER SET latin1, note TEXT)"
    )
    shape = table(
        ID, replace(NAME, size=size, charset="binary"), Column("", WireType.VARCHAR, size=9, charset="binary"), NOTE
    )
    insert(log, shape, [1, "ü".encode(), b"\xfc", b"\xff\xfe"], [2, b"it's \\", b"", b"two\nlines"])
    path = written(log, tmp_path)
    assert after(path) == [
        {"id": 1, "name": "ü", "old": "ü", "note": "//4="},
        {"id": 2, "name": "it's \\", "old": "", "note": "two\nlines"},
    ]
    sql = shown(path, "--output", "sql")
    assert "(1, _binary'ü', 'ü', X'FFFE');" in sql
    assert r"(2, _binary'it''s \\', '', _binary'two\nlines');" in sql
    terminal = shown(path, "--output", "text")
    assert "name='ü'  old='ü'  note=0xFFFE" in terminal
    assert r"note='two\nlines'" in terminal
    assert '1,"ü","ü","//4=",' in shown(path, "--output", "csv")
    typed = penstock.read_binlog(path).select(["name", "old"])
    assert typed.schema.types == [pa.binary(), pa.string()], "a column has one type, whatever its values are"


def test_a_size_that_no_charset_gives_is_another_column(tmp_path: Path) -> None:
    log = created("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), note TEXT)")
    insert(log, table(ID, replace(NAME, size=84), NOTE), [1, "a", None])
    result = binlog(written(log, tmp_path), "--output", "json")
    assert '"@1":1' in result.stdout
    assert "VARCHAR(84) in the log" in result.stderr


def test_labels_and_types_that_the_log_cannot_tell_come_from_the_ddl(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.statement("CREATE TABLE item (size ENUM('small', 'größer'), u UUID, a INET4, b BINARY(16))")
    raw = {"type": WireType.STRING, "charset": "binary"}
    shape = table(
        Column("", WireType.ENUM, size=1, labels=("a", "b")),
        *(Column("", size=size, **raw) for size in (16, 4, 16)),  # type: ignore[arg-type]
    )
    log.begin()
    log.add(ev.TABLE_MAP, without_fields(table_map(7, shape), EVERY_FIELD))
    log.rows(INSERT, 7, shape, [["b", bytes(range(16)), bytes([10, 0, 0, 1]), b"\xff"]])
    log.commit()
    (row,) = after(written(log, tmp_path))
    assert row.pop("u") == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert row.pop("a") == "10.0.0.1"
    assert row["size"] == "größer"


def test_names_that_may_be_of_another_table_are_warned_of(tmp_path: Path) -> None:
    for statements, is_doubtful in (
        ([NO_DATABASE, CREATE.replace("TABLE", "TABLE IF NOT EXISTS")], True),
        (["CREATE DATABASE IF NOT EXISTS shop", CREATE.replace("TABLE", "TABLE IF NOT EXISTS")], True),
        ([DATABASE, CREATE.replace("TABLE", "TABLE IF NOT EXISTS")], False),
        ([NO_DATABASE, CREATE], False),
        ([CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), "DROP TABLE item", CREATE], False),
    ):
        log = created(*statements)
        insert(log, ITEM, [1, "a", None])
        result = binlog(written(log, tmp_path), "--output", "json")
        assert '"after":{"id":1,"name":"a","note":null}' in result.stdout
        assert ("IF NOT EXISTS, which changes nothing" in result.stderr) == is_doubtful, statements


def test_case_of_names_does_not_count(tmp_path: Path) -> None:
    log = created(DATABASE, CREATE.replace("item", "Item"), "ALTER TABLE ITEM RENAME COLUMN name TO title")
    insert(log, ITEM, [1, "a", None])
    assert after(written(log, tmp_path)) == [{"id": 1, "title": "a", "note": None}]


_CODE = """
import sys
from penstock.cli import app
try:
    app(["binlog", sys.argv[1], "--output", "json"])
except SystemExit as done:
    assert not done.code
print(*sorted({"penstock.schema.catalogue", "penstock.schema.log_catalogue"} & sys.modules.keys()), file=sys.stderr)
"""


def test_a_log_with_names_does_not_load_what_reads_ddl(tmp_path: Path, log: Path) -> None:
    with_names = written(shop_log(), tmp_path, "binlog.000002")
    for path, loaded in ((with_names, []), (log, ["penstock.schema.catalogue", "penstock.schema.log_catalogue"])):
        result = subprocess.run([sys.executable, "-c", _CODE, str(path)], capture_output=True, text=True, check=True)
        assert '"type":"ddl"' in result.stdout
        assert result.stderr.split() == loaded
