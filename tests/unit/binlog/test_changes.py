"""The columns beside a row's own: what changed, in which order, and when a schema does not fit."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table
from penstock.binlog.rows.locate import MAX_CELLS
from penstock.binlog.values import compressed
from penstock.errors import BinlogError, SchemaError
from penstock.model import Column, Sequence, TableName, TableSchema, WireType
from tests.twins.feed import EPOCH, read, rows_in
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, INSERT, UPDATE

ORDERS = TableSchema(
    TableName("shop", "orders"),
    (
        Column("id", WireType.LONG),
        Column("name", WireType.VARCHAR, size=40, charset="utf8mb4"),
        Column("state", WireType.ENUM, size=1, labels=("new", "sent"), charset="utf8mb4"),
        Column("flags", WireType.SET, size=1, labels=("a", "b", "c"), charset="utf8mb4"),
    ),
    ("id",),
)
_ROW = [1, "x", "new", ["a"]]


def one_event(change: int, images: list[list[object]], table: TableSchema = ORDERS) -> list[Block]:
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    log.rows(change, 7, table, images)
    log.commit()
    return read(log)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (_ROW, _ROW, []),
        (_ROW, [1, "y", "sent", ["a"]], ["name", "state"]),
        ([1, None, "new", []], [1, "", "new", []], ["name"]),
        ([1, "", "new", []], [1, None, "new", []], ["name"]),
        ([1, None, "new", []], [2, None, "new", []], ["id"]),
        # Minimal images: the key before, the changed columns after.
        ([1, ABSENT, ABSENT, ABSENT], [ABSENT, "y", ABSENT, ABSENT], ["name"]),
        ([1, ABSENT, ABSENT, ABSENT], [ABSENT, None, ABSENT, ["b", "c"]], ["name", "flags"]),
    ],
)
def test_changed_names_the_columns_that_differ(before: list[object], after: list[object], changed: list[str]) -> None:
    rows = rows_in(one_event(UPDATE, [before, after, before, after]), ORDERS)
    assert [row["_changed"] for row in rows] == [None, changed, None, changed]


def test_changed_speaks_of_the_columns_that_were_read() -> None:
    blocks = one_event(UPDATE, [_ROW, [1, "y", "sent", ["b"]]])
    assert rows_in(blocks, ORDERS, ["id", "state"])[1]["_changed"] == ["state"]
    assert rows_in(blocks, ORDERS, ["id"])[1]["_changed"] == []


def test_inserts_have_no_changed_columns() -> None:
    (row,) = rows_in(one_event(INSERT, [_ROW]), ORDERS)
    assert row["_changed"] is None


def test_a_column_that_came_later_is_null_before() -> None:
    fields = arrow_fields_of_table(replace(ORDERS, columns=(*ORDERS.columns, Column("late", WireType.LONGLONG))))
    (block,) = one_event(INSERT, [_ROW])
    (batch,) = decode_changes(block, ORDERS.name, fields)
    assert batch.schema == pa.schema([*fields, *CHANGE_FIELDS])
    assert batch.column("late").to_pylist() == [None]
    assert batch.column("_absent").to_pylist() == [["late"]]


@pytest.mark.parametrize("names", [["late"], []])
@pytest.mark.parametrize("rest", [[ABSENT] * 3, _ROW[1:]], ids=["minimal", "whole"])
def test_none_of_the_columns_that_are_read_was_there(names: list[str], rest: list[object]) -> None:
    """Of such images nothing is located."""
    later = replace(ORDERS, columns=(*ORDERS.columns, Column("late", WireType.LONGLONG)))
    (block,) = one_event(UPDATE, [[1, *rest], [2, *rest]])
    (batch,) = decode_changes(block, ORDERS.name, arrow_fields_of_table(later, names))
    assert batch.column("_absent").to_pylist() == [names or None] * 2
    assert batch.column("_changed").to_pylist() == [None, []]


def test_minimal_images_of_a_wide_table_are_cut() -> None:
    """A cell of each column for each image is much more than the log itself has."""
    wide = TableSchema(ORDERS.name, tuple(Column(f"c{i}", WireType.LONG) for i in range(1000)))
    image = [1, *[ABSENT] * 999]
    (block,) = one_event(INSERT, [image] * 9000, wide)
    batches = list(decode_changes(block, wide.name, arrow_fields_of_table(wide, ["c0", "c1"])))
    assert [batch.num_rows for batch in batches] == [9000]
    batches = list(decode_changes(block, wide.name, arrow_fields_of_table(wide)))
    assert len(batches) > 1
    assert all(batch.num_rows * 1000 <= MAX_CELLS for batch in batches)
    assert np.concatenate([batch.column("_row") for batch in batches]).tolist() == list(range(9000))
    assert batches[-1].column("_absent")[-1].as_py() == [f"c{i}" for i in range(1, 1000)]


def test_columns_that_grow_too_long_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "_MANY_BYTES", 5000)
    text = Column("text", WireType.BLOB_COMPRESSED, size=2, charset="utf8mb4")
    table = replace(ORDERS, columns=(*ORDERS.columns, text))
    images = [[*_ROW, chr(97 + i) * 1000] for i in range(22)]
    (block,) = one_event(UPDATE, images, table)
    batches = list(decode_changes(block, table.name, arrow_fields_of_table(table)))
    assert len(batches) > 3
    assert [row["text"] for batch in batches for row in batch.to_pylist()] == [image[-1] for image in images]
    whole = [row["_changed"] for batch in batches for row in batch.to_pylist()]
    assert whole == [None, ["text"]] * 11


def test_a_column_that_became_wider_is_read_in_its_new_type() -> None:
    (block,) = one_event(INSERT, [_ROW])
    fields = arrow_fields_of_table(replace(ORDERS, columns=(Column("id", WireType.LONGLONG), *ORDERS.columns[1:])))
    (batch,) = decode_changes(block, ORDERS.name, fields)
    assert batch.schema == pa.schema([*fields, *CHANGE_FIELDS])
    assert batch.column("id").to_pylist() == [1]


@pytest.mark.parametrize("other", [WireType.TINY, WireType.DATE])
def test_an_altered_column_stops_with_its_position(other: WireType) -> None:
    (block,) = one_event(INSERT, [_ROW])
    fields = arrow_fields_of_table(replace(ORDERS, columns=(Column("id", other), *ORDERS.columns[1:])))
    with pytest.raises(SchemaError, match=r"shop\.orders\.id is int32 at binlog\.000001:\d+.*altered"):
        list(decode_changes(block, ORDERS.name, fields))


def test_versions_of_a_table_come_in_log_order() -> None:
    log = LogWriter().open()
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("late", WireType.LONGLONG)))
    for number, table in ((7, ORDERS), (8, wider), (7, ORDERS)):
        log.begin()
        log.map(number, table)
        log.rows(INSERT, number, table, [[log.position, *_ROW[1:], *([9] if number == 8 else [])]])
        log.commit()
    rows = rows_in(read(log), wider)
    assert [row["late"] for row in rows] == [None, 9, None]
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)


def test_commit_version_is_the_sequence_of_the_transaction() -> None:
    log = LogWriter(is_mariadb=False).open()
    start = log.position
    log.begin()
    log.map(7, ORDERS)
    log.rows(INSERT, 7, ORDERS, [_ROW, _ROW])
    log.commit()
    rows = rows_in(read(log), ORDERS)
    assert {row["_commit_version"] for row in rows} == {int(Sequence(EPOCH, 1, start))}
    assert [row["_row"] for row in rows] == [0, 1]


@pytest.mark.parametrize(("number", "value"), [(2, 3), (3, 0b1000)])
def test_a_value_without_label_is_refused_with_its_position(number: int, value: int) -> None:
    """ENUM and SET of a table map that does not fit the rows."""
    cells: list[object] = list(_ROW)
    cells[number] = "three" if number == 2 else ["d"]
    written = list(ORDERS.columns)
    written[number] = replace(written[number], labels=("new", "sent", "three") if number == 2 else ("a", "b", "c", "d"))
    (block,) = one_event(INSERT, [_ROW, cells], replace(ORDERS, columns=tuple(written)))
    (known,) = one_event(INSERT, [_ROW])
    block = replace(block, tables=known.tables)
    with pytest.raises(
        BinlogError,
        match=rf"^binlog\.000001:\d+ \(epoch 3\) WRITE_ROWS_V1 of shop\.orders: column \w+ has the value {value:#x},",
    ):
        rows_in([block], ORDERS)


@pytest.mark.parametrize(("file", "offset"), [("binlog.1048576", 4), ("binlog.000001", 1 << 34)])
def test_what_no_sequence_can_order_is_refused(file: str, offset: int) -> None:
    (block,) = one_event(INSERT, [_ROW])
    block = replace(block.with_columns(position=block.column("position") + offset), file=file)
    with pytest.raises(BinlogError, match=rf"^{file}:\d+ has no `_seq`"):
        rows_in([block], ORDERS)


def test_unknown_columns_are_named() -> None:
    with pytest.raises(SchemaError, match=r"shop\.orders has no column nope; it has id, name, state, flags"):
        arrow_fields_of_table(ORDERS, ["id", "nope"])


def test_binary_columns_get_their_trailing_zeros_back() -> None:
    columns = (
        Column("fixed", WireType.STRING, size=4, charset="binary"),
        Column("free", WireType.VARCHAR, size=4, charset="binary"),
    )
    table = TableSchema(TableName("shop", "codes"), columns)
    rows = rows_in(one_event(INSERT, [[b"a", b"a"], [b"", b""], [None, None], [b"abcd", b"abcd"]], table), table)
    assert [row["fixed"] for row in rows] == [b"a\0\0\0", b"\0\0\0\0", None, b"abcd"]
    assert [row["free"] for row in rows] == [b"a", b"", None, b"abcd"]


@pytest.mark.parametrize("count", [1, 40])
def test_an_image_may_carry_nothing(count: int) -> None:
    """An INSERT of nothing but defaults, with minimal images: its row has no bytes."""
    log = LogWriter().open()
    log.begin()
    log.map(7, ORDERS)
    for _ in range(count):
        log.rows(INSERT, 7, ORDERS, [[ABSENT] * 4])
    log.commit()
    rows = rows_in(read(log), ORDERS)
    assert [row["_absent"] for row in rows] == [["id", "name", "state", "flags"]] * count
    assert [row["_row"] >> 32 for row in rows] == list(range(count))
