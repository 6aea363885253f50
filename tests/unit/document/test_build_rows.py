"""Documents from rows: keys, pages, routings and values, over a database in memory."""

import json
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.document import DocumentBuilder, DocumentSpec
from penstock.document.build import KEYS_PER_QUERY
from penstock.document.graph_builder import resolve_spec
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.document_orders import build_by_id, create_orders, documents_of
from tests.support.document_shop import (
    CUSTOMER_JOIN,
    LINE,
    LINES_JOIN,
    ORDERS,
    TABLES,
    TAGS_JOIN,
    MemoryRows,
    graph_of,
    integer,
    spec_of,
    text,
)

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


@pytest.fixture
def rows() -> Iterator[MemoryRows]:
    memory = create_orders()
    yield memory
    memory.close()


def test_routings_and_ids_come_with_the_documents(rows: MemoryRows) -> None:
    with rows.open_view():
        built = DocumentBuilder(graph_of(routing="customer_id"), rows).build_documents([(2,), (3,)])
    assert (built.keys, built.ids, built.routings) == ([(2,), (3,)], ["2", "3"], ["5", "9"])
    assert built.documents.to_pylist() == ['{"number":"A2"}', '{"number":"A3"}'], "the routing is no field"


def test_composite_keys_are_joined_by_both_parts(rows: MemoryRows) -> None:
    root = {"table": "shop.order_line", "fields": ["quantity"], "joins": {"product": LINES_JOIN["joins"]["product"]}}
    graph = resolve_spec(DocumentSpec.model_validate({"index": "line", "root": root}), TABLES)
    with rows.open_view():
        built = DocumentBuilder(graph, rows).build_documents([(2, 1), (1, 2), (7, 7)])
    assert documents_of(built) == {
        "2:1": {"quantity": 30, "product": {"name": "kettle"}},
        "1:2": {"quantity": 20, "product": {"name": "lamp"}},
    }


def test_many_keys_are_read_in_several_queries_and_stay_in_order(rows: MemoryRows) -> None:
    count = 2 * KEYS_PER_QUERY + 1
    first = 1000
    rows.insert(
        "orders", *((first + number, f"C{number}", 5) for number in range(count)), columns="(id,number,customer_id)"
    )
    rows.insert("order_line", *((first + number, line, line, 7) for number in range(count) for line in (3, 1, 2)))
    graph = graph_of({"lines": LINES_JOIN | {"joins": {}, "order": "-position", "limit": 2}})
    documents = build_by_id(rows, graph, *range(first, first + count))
    assert len(documents) == count
    assert all(document["lines"] == [{"quantity": 3}, {"quantity": 2}] for document in documents.values())
    assert len(rows.statements) == 6, "three for the orders, three for the lines"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_pages_have_every_document_once(rows: MemoryRows, size: int) -> None:
    pages = [documents_of(page) for page in DocumentBuilder(graph_of(JOINS), rows).build_pages(size)]
    assert [key for page in pages for key in page] == ["1", "2", "3", "4"]
    assert all(len(page) <= size for page in pages)
    assert rows.views == len(rows.statements) - sum(" AS p " in sql for sql in rows.statements), "a view for each page"


def test_pages_of_a_composite_key_begin_behind_the_last(rows: MemoryRows) -> None:
    root = {"table": "shop.order_line", "fields": ["quantity"], "where": "quantity <> 20"}
    graph = resolve_spec(DocumentSpec.model_validate({"index": "line", "root": root}), TABLES)
    pages = DocumentBuilder(graph, rows).build_pages(1)
    assert [page.ids for page in pages] == [["1:1"], ["2:1"], ["2:2"]]


def test_values_of_every_kind(rows: MemoryRows) -> None:
    name = TableName("shop", "v")
    columns = (
        integer("id"),
        Column("big", WireType.LONGLONG, unsigned=True),
        Column("real", WireType.DOUBLE, size=8),
        Column("day", WireType.DATE),
        Column("moment", WireType.TIMESTAMP2, size=3),
        Column("clock", WireType.TIME2),
        Column("raw", WireType.BLOB, size=2, charset="binary"),
        Column("doc", WireType.JSON, size=4),
        Column("exact", WireType.NEWDECIMAL, precision=30, scale=10),
    )
    rows.execute(f"CREATE TABLE shop.v ({', '.join(column.name for column in columns)})")
    exact = "12345678901234567890.0123456789"
    rows.insert(
        "v", (1, 2**63 - 1, 0.1, "2024-02-29", "2024-02-29 10:11:12.500", "-01:00:00", b"\x00\xff", '{"a": [1]}', exact)
    )
    rows.insert("v", (2, *[None] * 8))
    rows.insert("v", (3, 0, 1e300, "2024-13-00", "0000-00-00 00:00:00.000", "00:00:00", b"", "null", "0E-10"))
    root = {"table": "shop.v", "fields": [column.name for column in columns[1:]]}
    graph = resolve_spec(
        DocumentSpec.model_validate({"index": "v", "root": root}), {name: TableSchema(name, columns, ("id",))}
    )
    with rows.open_view():
        texts: list[str] = DocumentBuilder(graph, rows).build_documents([(1,), (2,), (3,)]).documents.to_pylist()
    first, nulls, third = (json.loads(document, parse_float=Decimal) for document in texts)
    assert first == {
        "big": 2**63 - 1,
        "real": Decimal("0.1"),
        "day": "2024-02-29",
        "moment": "2024-02-29T10:11:12.500Z",
        "clock": "-01:00:00",
        "raw": "AP8=",
        "doc": {"a": [1]},
        "exact": Decimal(exact),
    }
    assert set(nulls.values()) == {None}
    assert third == {
        "big": 0,
        "real": Decimal("1e300"),
        "day": None,
        "moment": None,
        "clock": "00:00:00",
        "raw": "",
        "doc": None,
        "exact": Decimal(0),
    }


def test_texts_as_keys_keep_their_rows_apart() -> None:
    orders = TableSchema(ORDERS, (text("id"), text("number")), ("id",))
    line = TableSchema(LINE, (text("order_id"), integer("position"), text("note")), ("order_id", "position"))
    rows = MemoryRows({ORDERS: orders, LINE: line})
    keys = ["", "a", "A", "a'b", "%", "漢", "a b", "1", "01"]
    rows.insert("orders", *((key, key) for key in keys))
    rows.insert("order_line", *((key, line_number, key * line_number) for key in keys for line_number in (1, 2)))
    lines = {"table": "shop.order_line", "many": True, "on": {"id": "order_id"}, "fields": ["note"]}
    graph = resolve_spec(spec_of({"lines": lines}), TABLES | {ORDERS: orders, LINE: line})
    with rows.open_view():
        built = DocumentBuilder(graph, rows).build_documents([(key,) for key in keys])
    rows.close()
    assert len(built) == len(keys)
    for (key,), document in zip(built.keys, built.documents.to_pylist(), strict=True):
        assert json.loads(document)["lines"] == [{"note": key}, {"note": key * 2}]


def test_an_empty_table_has_the_types_of_its_columns(rows: MemoryRows) -> None:
    with rows.open_view():
        built = DocumentBuilder(graph_of(JOINS), rows).build_documents([(77,)])
    assert len(built) == 0
    assert pa.types.is_string(built.documents.type) or pa.types.is_large_string(built.documents.type)
