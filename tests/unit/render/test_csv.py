"""What CSV tells apart, and that its columns are those of the handbook and of the other formats."""

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from penstock.binlog.rows.fields import choose_free_names
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.render.csv_lines import METADATA_COLUMNS
from tests.support.shop_log import shop_log, shown, written
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, DELETE, INSERT, UPDATE

TABLE = TableSchema(
    TableName("shop", "file"),
    (
        Column("id", WireType.LONG),
        Column("raw", WireType.BLOB, size=2, charset="binary"),
        Column("name", WireType.VARCHAR, size=20, charset="utf8mb4"),
    ),
    ("id",),
)
HANDBOOK = Path(__file__).parents[3] / "docs" / "binlog.md"


def log_of(table: TableSchema, *changes: tuple[int, list[list[object]]]) -> LogWriter:
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    for kind, images in changes:
        log.rows(kind, 7, table, images)
    log.commit()
    return log


def cells(line: str) -> list[str]:
    """As they stand in the file, quotes and all."""
    return re.findall(r'((?:"(?:[^"]|"")*")|[^,]*)(?:,|$)', line)


def test_null_nothing_and_what_is_not_there(tmp_path: Path) -> None:
    log = log_of(
        TABLE,
        (INSERT, [[1, b"", ""], [2, None, None], [3, b"x", "x"]]),
        (UPDATE, [[1, ABSENT, ABSENT], [ABSENT, None, ABSENT]]),
    )
    head, *rows = shown(written(log, tmp_path), "--output", "csv").splitlines()
    absent = head.split(",").index("_absent")
    assert [cells(row)[:3] for row in rows] == [
        ["1", '""', '""'],
        ["2", "", ""],
        ["3", '"eA=="', '"x"'],
        ["1", "", ""],
        ["", "", ""],
    ]
    texts = [row[absent] for row in csv.reader(rows)]
    assert [json.loads(names) if names else None for names in texts] == [
        *(None, None, None),
        ["raw", "name"],
        ["id", "name"],
    ]


def test_an_image_that_carries_no_column_to_show_has_its_line(tmp_path: Path) -> None:
    log = log_of(TABLE, (UPDATE, [[1, ABSENT, ABSENT], [ABSENT, b"x", ABSENT]]), (DELETE, [[1, ABSENT, ABSENT]]))
    path = written(log, tmp_path)
    text = shown(path, "--output", "csv", "--columns", "name")
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["name"], row["_change_type"], row["_absent"]) for row in rows] == [
        ("", kind, '["name"]') for kind in ("update_preimage", "update_postimage", "delete")
    ]
    update, delete = map(json.loads, shown(path, "--columns", "name").splitlines())
    assert (update["before"], update["after"], delete["before"]) == ({}, {}, {})


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_a_table_with_two_ids_is_in_the_order_of_the_log(tmp_path: Path, kind: str) -> None:
    """The second id is the lower one, and the first follows it a second time."""
    other = TableSchema(TableName("shop", "other"), TABLE.columns, ("id",))
    log = LogWriter().open()
    for number, (table_id, table) in enumerate([(9, TABLE), (8, other), (7, TABLE), (9, TABLE), (7, TABLE)]):
        log.begin()
        log.map(table_id, table)
        log.rows(INSERT, table_id, table, [[number, b"", "x"]])
        log.commit()
    path = written(log, tmp_path)
    for options, expected in ((), [0, 2, 3, 4]), (("--limit", 9), [0, 2, 3, 4]), (("--limit", 4), [0, 2, 3]):
        out = tmp_path / f"out{len(expected)}{len(options)}"
        shown(path, "--output", kind, *options, "--to", out)
        file = out / f"shop.file.{kind}"
        if kind == "csv":
            ids = [int(row["id"]) for row in csv.DictReader(file.read_text().splitlines())]
        else:
            ids = (pq.read_table(file) if kind == "parquet" else feather.read_table(file)).column("id").to_pylist()
        assert ids == expected


def test_each_image_has_its_own_position(tmp_path: Path) -> None:
    path = written(shop_log(), tmp_path)
    text = shown(path, "--output", "csv", "--table", "shop.product")
    shown(path, "--output", "parquet", "--table", "shop.product", "--to", tmp_path / "p.parquet")
    expected = pq.read_table(tmp_path / "p.parquet").to_pylist()
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert [(int(row["_seq"]), int(row["_offset"]), row["_change_type"]) for row in rows] == [
        (row["_seq"], row["_offset"], row["_change_type"]) for row in expected
    ]
    assert len({row["_seq"] for row in rows}) == len(rows)
    assert [row["_gtid"] for row in rows] == [row["_gtid"] for row in expected]


def test_the_columns_are_in_the_order_of_the_handbook(tmp_path: Path) -> None:
    head = shown(written(log_of(TABLE, (DELETE, [[1, None, None]])), tmp_path), "--output", "csv").splitlines()[0]
    assert head.split(",") == ["id", "raw", "name", *METADATA_COLUMNS]
    section = HANDBOOK.read_text().split("### csv, arrow, parquet")[1].split("##")[0]
    named = re.findall(r"`(_\w+)`", section.split("Arrow and Parquet")[0])
    assert tuple(named) == METADATA_COLUMNS


def test_a_column_with_a_name_of_ours(tmp_path: Path) -> None:
    table = TableSchema(
        TableName("shop", "odd"),
        (Column("id", WireType.LONG), Column("_seq", WireType.LONG), Column("_GTID", WireType.LONG)),
        ("id",),
    )
    path = written(log_of(table, (INSERT, [[1, 77, 88]])), tmp_path)
    (row,) = csv.DictReader(shown(path, "--output", "csv").splitlines())
    assert (row["_seq"], row["_GTID"], row["__gtid"]) == ("77", "88", "5-1-1")
    for kind in ("parquet", "arrow"):
        shown(path, "--output", kind, "--limit", "1", "--to", tmp_path / f"odd.{kind}")
    rows = pq.read_table(tmp_path / "odd.parquet")
    assert len({name.casefold() for name in rows.column_names}) == len(rows.column_names)
    (line,) = rows.to_pylist()
    assert (line["_seq"], line["__seq"], line["__gtid"]) == (77, int(row["__seq"]), "5-1-1")
    assert json.loads(shown(path).splitlines()[0])["after"] == {"id": 1, "_seq": 77, "_GTID": 88}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([], ["_seq", "_file"]),
        (["_seq"], ["__seq", "_file"]),
        (["_seq", "__SEQ", "_file"], ["___seq", "__file"]),
    ],
)
def test_names_of_ours(columns: list[str], expected: list[str]) -> None:
    assert choose_free_names(["_seq", "_file"], columns) == expected
