"""The shape of a stream of all tables that match a filter, without Spark running."""

import json
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.binlog.events.file import LogFile
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table_rules import TableRules
from penstock.spark.generic_layout import GenericLayout
from penstock.spark.types import spark_schema
from tests.support.shop_log import NOTE, PRODUCT, shop_log
from tests.twins import event as ev
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, DELETE, INSERT, UPDATE, bitmap, packed

EVERYTHING = TableRules.parse("")
_TEXT: dict[str, Any] = {"size": 200, "charset": "utf8mb4"}
LINE = TableSchema(
    TableName("shop", "line"),
    (
        Column("order_id", WireType.LONGLONG, unsigned=True),
        Column("name", WireType.VARCHAR, **_TEXT),
        Column("made", WireType.TIMESTAMP2, size=0),
        Column("amount", WireType.NEWDECIMAL, precision=10, scale=2),
    ),
    ("order_id", "name", "made"),
)


def file_of(log: LogWriter, folder: Path) -> Path:
    path = folder / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    return path


def changes_in(log: LogWriter, folder: Path, layout: GenericLayout | None = None) -> list[dict[str, Any]]:
    """All changes of the log, by a layout that came from another process."""
    moved: GenericLayout = pickle.loads(pickle.dumps(layout or GenericLayout(EVERYTHING)))  # noqa: S301 - just made
    changes = list[dict[str, Any]]()
    for block in LogFile(file_of(log, folder)):
        for batch in moved.batches(block):
            assert batch.schema == moved.schema
            batch.validate(full=True)
            changes += batch.to_pylist()
    for change in changes:
        change["_key"] = change["_key"] and dict(change["_key"])
        for side in ("before", "after"):
            change[side] = change[side] and json.loads(change[side])
    return changes


def shown(changes: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(change[name] for name in names) for change in changes]


def changed(log: LogWriter, change: int, table: TableSchema, *images: Sequence[Any]) -> LogWriter:
    """One transaction."""
    log.begin()
    log.map(7, table)
    log.rows(change, 7, table, images)
    log.commit()
    return log


def test_a_change_is_one_row_with_what_was_before_and_what_is_after(tmp_path: Path) -> None:
    changes = changes_in(shop_log(), tmp_path)
    kettle, cheaper = ({"id": 1, "name": "kettle", "price": price} for price in ("35.00", "29.90"))
    oak = {"id": 2, "name": 'it\'s "oak"\n', "price": None}
    note = {"what": "a", "raw": "ACc="}
    assert shown(changes, "_change_type", "_table", "_key", "before", "after") == [
        ("insert", "shop.product", {"id": "1"}, None, kettle),
        ("insert", "shop.product", {"id": "2"}, None, oak),
        ("insert", "shop.note", None, None, note),
        ("insert", "shop.product", {"id": "3"}, None, {"id": 3, "name": "", "price": "0.01"}),
        ("update", "shop.product", {"id": "1"}, kettle, cheaper),
        ("delete", "shop.note", None, note, None),
    ]
    assert [change["_changed"] for change in changes] == [None] * 4 + [["price"], None]
    assert {change["_absent"] for change in changes} == {change["_partial"] for change in changes} == {None}


def test_where_a_change_is_from_is_said_of_its_last_image(tmp_path: Path) -> None:
    log = shop_log()
    last = [image for image in log.images if image.kind.text != "update_preimage"]
    changes = changes_in(log, tmp_path)
    assert shown(changes, "_file", "_offset", "_gtid") == [(image.file, image.offset, image.gtid) for image in last]
    assert [change["_seq"] & 0xFFFFFFFF for change in changes] == [image.offset for image in last]
    assert [change["_row"] for change in changes] == [image.ordinal << 32 | image.number for image in last]
    assert len({change["_commit_version"] for change in changes}) == 3


def test_a_key_that_changes_is_the_new_one_and_the_old_one_is_before(tmp_path: Path) -> None:
    log = changed(LogWriter().open(), UPDATE, PRODUCT, [1, "a", None], [9, "a", None])
    (change,) = changes_in(log, tmp_path)
    assert (change["_key"], change["before"]["id"], change["after"]["id"]) == ({"id": "9"}, 1, 9)
    assert change["_changed"] == ["id"]


@pytest.mark.parametrize("others", [0, 3])
def test_a_key_has_the_texts_that_a_json_function_finds_in_the_row(tmp_path: Path, others: int) -> None:
    """Alone in its block, and beside other tables."""
    log = LogWriter().open()
    log.begin()
    for number in range(others):
        log.map(20 + number, PRODUCT)
        log.rows(INSERT, 20 + number, PRODUCT, [[number, "x", None]])
    log.map(7, LINE)
    made = datetime(2026, 11, 17, 10, 0, tzinfo=UTC)
    log.rows(INSERT, 7, LINE, [[2**64 - 1, 'a "b"\n\\', made, Decimal("1.50")]])
    log.commit()
    change = changes_in(log, tmp_path)[-1]
    assert change["_key"] == {"order_id": str(2**64 - 1), "name": 'a "b"\n\\', "made": "2026-11-17T10:00:00Z"}
    assert change["after"] == {
        "order_id": 2**64 - 1,
        "name": 'a "b"\n\\',
        "made": "2026-11-17T10:00:00Z",
        "amount": "1.50",
    }


@pytest.mark.parametrize("others", [0, 3])
def test_minimal_images_have_only_what_they_carry_and_the_key_of_the_row_before(tmp_path: Path, others: int) -> None:
    log = LogWriter().open()
    log.begin()
    for number in range(others):
        log.map(20 + number, NOTE)
        log.rows(INSERT, 20 + number, NOTE, [["x", None]])
    log.map(7, PRODUCT)
    log.rows(
        UPDATE,
        7,
        PRODUCT,
        [[1, ABSENT, ABSENT], [ABSENT, ABSENT, None], [2, ABSENT, ABSENT], [ABSENT, ABSENT, Decimal("5.00")]],
    )
    log.rows(UPDATE, 7, PRODUCT, [[3, ABSENT, ABSENT], [4, "new", ABSENT]])
    log.rows(DELETE, 7, PRODUCT, [[5, ABSENT, ABSENT]])
    log.rows(DELETE, 7, PRODUCT, [[ABSENT, "no key", ABSENT]])
    log.commit()
    changes = changes_in(log, tmp_path)[others:]
    assert shown(changes, "_change_type", "_key", "before", "after", "_changed", "_absent") == [
        ("update", {"id": "1"}, {"id": 1}, {"price": None}, ["price"], ["id", "name"]),
        ("update", {"id": "2"}, {"id": 2}, {"price": "5.00"}, ["price"], ["id", "name"]),
        ("update", {"id": "4"}, {"id": 3}, {"id": 4, "name": "new"}, ["id", "name"], ["price"]),
        ("delete", {"id": "5"}, {"id": 5}, None, None, ["name", "price"]),
        ("delete", None, {"name": "no key"}, None, None, ["id", "price"]),
    ]


def test_many_tables_come_in_the_order_of_the_log(tmp_path: Path) -> None:
    """Those with many rows, which are read one by one, and those with few, which are read together."""
    log, row_id = LogWriter().open(), 0
    few = [TableSchema(TableName("shop", f"t{n}"), PRODUCT.columns, ("id",)) for n in range(4)]
    for round_ in range(6):
        log.begin()
        for number, table in enumerate(few):
            log.map(20 + number, table)
            log.rows(INSERT, 20 + number, table, [[row_id, "few", None]])
            row_id += 1
        for number, table in enumerate((PRODUCT, LINE)):
            log.map(7 + number, table)
            tail = [None] * (len(table.columns) - 2)
            images = [[row_id + n // 2, f"{round_}{'x' * 150}", *tail] for n in range(400)]
            log.rows(UPDATE, 7 + number, table, images)
            row_id += 200
        log.commit()
    changes = changes_in(log, tmp_path)
    keys = [change["_key"].get("id") or change["_key"]["order_id"] for change in changes]
    assert keys == [str(n) for n in range(row_id)]
    order = shown(changes, "_seq", "_row")
    assert order == sorted(order)
    assert {change["_table"] for change in changes[:204]} == {*(f"shop.t{n}" for n in range(4)), "shop.product"}


def test_rows_are_decoded_by_the_columns_that_they_were_written_with(tmp_path: Path) -> None:
    """Through ADD, DROP, RENAME and MODIFY; nothing stops the stream."""
    log = changed(LogWriter().open(), INSERT, PRODUCT, [1, "a", None])
    log.statement("ALTER TABLE product DROP price, CHANGE name title VARCHAR(9), ADD stock INT FIRST")
    later = TableSchema(
        PRODUCT.name, (Column("stock", WireType.LONG), PRODUCT.columns[0], Column("title", WireType.VARCHAR, **_TEXT))
    )
    log.begin()
    log.map(8, later)
    log.rows(INSERT, 8, later, [[5, 1, "a"]])
    log.commit()
    log.statement("DROP TABLE product")
    changes = changes_in(log, tmp_path)
    assert [change["after"] for change in changes] == [
        {"id": 1, "name": "a", "price": None},
        {"stock": 5, "id": 1, "title": "a"},
    ]
    assert [change["_key"] for change in changes] == [{"id": "1"}, None]


def test_only_tables_that_match_the_filter_come(tmp_path: Path) -> None:
    layout = GenericLayout(TableRules.parse(r"shop\.pro.*"))
    assert {change["_table"] for change in changes_in(shop_log(), tmp_path, layout)} == {"shop.product"}


def test_ddl_comes_on_request_in_its_order(tmp_path: Path) -> None:
    log = shop_log()
    log.statement("ALTER TABLE product ADD x INT")
    changed(log, INSERT, PRODUCT, [9, "a", None])
    layout = GenericLayout(TableRules.parse(r"shop\.product"), include_ddl=True)
    changes = changes_in(log, tmp_path, layout)
    create, alter = "CREATE TABLE product (id INT)", "ALTER TABLE product ADD x INT"
    kinds = ["ddl", "insert", "insert", "insert", "update", "ddl", "insert"]
    assert [change["_change_type"] for change in changes] == kinds
    assert [change["ddl"] for change in changes] == [create, None, None, None, None, alter, None]
    assert {change["_table"] for change in changes} == {"shop.product"}
    ddl = changes[5]
    nothing = ("_key", "before", "after", "_changed", "_absent", "_partial")
    assert [ddl[name] for name in nothing] == [None] * 6
    assert ddl["_gtid"] == "5-1-5"
    order = shown(changes, "_seq", "_row")
    assert order == sorted(order)
    assert "ddl" not in GenericLayout(EVERYTHING).schema.names


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("CREATE TABLE a (id INT)", "shop.a"),
        ("ALTER TABLE crm.a ADD c INT", None),
        ("RENAME TABLE crm.a TO b", "shop.b"),
        ("DROP TABLE crm.a, shop.c, shop.d", "shop.c"),
        ("TRUNCATE a", "shop.a"),
        ("CREATE INDEX i ON a (id)", "shop.a"),
        ("ALTER TABLE a FROBNICATE", "shop.a"),
        ("CREATE DATABASE shop", "shop"),
        ("DROP DATABASE crm", None),
        ("CREATE TRIGGER r AFTER INSERT ON b FOR EACH ROW SET @a = 1", "shop.b"),
        ("CREATE VIEW v AS SELECT 1", None),
        ("ANALYZE TABLE a", None),
        ("CREATE USER u IDENTIFIED BY 'secret'", None),
        ("GRANT SELECT ON shop.a TO u", None),
        ("SET PASSWORD FOR u = 'secret'", None),
    ],
)
def test_ddl_is_of_the_first_table_that_passes(tmp_path: Path, text: str, table: str | None) -> None:
    log = LogWriter().open()
    log.statement(text)
    changes = changes_in(log, tmp_path, GenericLayout(TableRules.parse(r"shop\..*"), include_ddl=True))
    assert shown(changes, "_table", "ddl") == ([(table, text)] if table else [])


def test_accounts_never_come_and_passwords_are_masked(tmp_path: Path) -> None:
    log = LogWriter().open()
    for text in (
        "CREATE USER u IDENTIFIED BY 'secret'",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'secret')",
    ):
        log.statement(text)
    (change,) = changes_in(log, tmp_path, GenericLayout(EVERYTHING, include_ddl=True))
    assert change["_table"] is None
    assert change["ddl"] == "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD '***')"


def test_an_alter_in_two_phases_comes_once(tmp_path: Path) -> None:
    """MariaDB with binlog_alter_two_phase: when it begins (flags 2 behind the GTID's), and when it is done (4)."""
    log = LogWriter(is_checksummed=False).open()
    for number, flags in enumerate((2, 4), 1):
        gtid = number.to_bytes(8, "little") + (5).to_bytes(4, "little") + bytes([1, flags]) + bytes(8)
        log.add(ev.MARIADB_GTID, gtid)
        log.add(ev.QUERY, ev.query(b"ALTER TABLE a ADD x INT", "shop", b"\x00\x00\x00\x00\x00"))
    changes = changes_in(log, tmp_path, GenericLayout(EVERYTHING, include_ddl=True))
    assert shown(changes, "_gtid", "ddl") == [("5-1-2", "ALTER TABLE a ADD x INT")]


def test_changes_of_documents_that_the_log_does_not_have_are_operations(tmp_path: Path) -> None:
    """binlog_row_value_options=PARTIAL_JSON with minimal images: id, j and n, of which j is JSON."""
    table = TableSchema(
        TableName("shop", "pj"),
        (Column("id", WireType.LONG), Column("j", WireType.JSON, size=4), Column("n", WireType.LONG)),
        ("id",),
    )
    path = b"$.a"
    difference = b"\x00" + packed(len(path)) + path + packed(3) + b"\x05\x04\x00"  # REPLACE by the 16-bit integer 4
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.map(7, table)
    body = (7).to_bytes(6, "little") + b"\x01\x00" + b"\x02\x00" + packed(3)
    body += bitmap([True, False, False]) + bitmap([False, True, True])
    body += b"\x00" + (1).to_bytes(4, "little")  # before: the key
    body += packed(1) + bitmap([True]) + b"\x00"  # after: value options, which documents are partial, no NULL
    body += len(difference).to_bytes(4, "little") + difference + (8).to_bytes(4, "little")
    log.add(39, body)
    log.commit()
    (change,) = changes_in(log, tmp_path)
    assert (change["_key"], change["before"], change["after"]) == ({"id": "1"}, {"id": 1}, {"n": 8})
    assert change["_absent"] == ["id", "j"]
    assert change["_changed"] == ["j", "n"]
    assert change["_partial"] == [{"column": "j", "op": "replace", "path": "$.a", "value": "4"}]


def test_a_table_without_any_column_to_show_is_an_empty_object(tmp_path: Path) -> None:
    layout = GenericLayout(EVERYTHING, columns_of=no_columns)
    changes = changes_in(shop_log(), tmp_path, layout)
    assert shown(changes[:1], "_key", "before", "after") == [(None, None, {})]


def no_columns(table: TableSchema) -> Sequence[Column]:
    return table.columns[:0]


@pytest.mark.parametrize("include_ddl", [False, True])
def test_batches_have_exactly_the_types_that_spark_expects(include_ddl: bool) -> None:
    schema = GenericLayout(EVERYTHING, include_ddl=include_ddl).schema
    assert to_arrow_schema(spark_schema(schema), timezone="UTC") == schema
