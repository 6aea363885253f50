"""Documents from rows: every kind of join, in order, with exact values, over a database in memory."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.document import DocumentBuilder, DocumentSpec
from penstock.document.graph_builder import resolve_spec
from penstock.model import TableName
from tests.support.document_orders import build_by_id, create_orders
from tests.support.document_shop import (
    COUNTRY,
    CUSTOMER,
    CUSTOMER_JOIN,
    LINES_JOIN,
    ORDER_TAG,
    ORDERS,
    TABLES,
    TAG,
    TAGS_JOIN,
    MemoryRows,
    graph_of,
)

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


@pytest.fixture
def rows() -> Iterator[MemoryRows]:
    memory = create_orders()
    yield memory
    memory.close()


def test_a_document_has_every_kind_of_join(rows: MemoryRows) -> None:
    assert build_by_id(rows, graph_of(JOINS), 1, 2, 3, 4, 8) == {
        "1": {
            "number": "A1",
            "customer": {"name": "Ann", "city": "Porto", "country": {"name": "Portugal"}},
            "lines": [
                {"quantity": 10, "product": {"name": "kettle"}},
                {"quantity": 20, "product": {"name": "lamp"}},
            ],
            "tags": [{"name": "blue"}, {"name": "red"}],
        },
        "2": {
            "number": "A2",
            "customer": {"name": "Ann", "city": "Porto", "country": {"name": "Portugal"}},
            "lines": [{"quantity": 30, "product": {"name": "kettle"}}, {"quantity": 40, "product": None}],
            "tags": [{"name": "red"}],
        },
        "3": {"number": "A3", "customer": None, "lines": [], "tags": []},
        "4": {"number": "A4", "customer": None, "lines": [], "tags": []},
    }


def test_the_text_is_exact_and_in_the_order_of_the_spec(rows: MemoryRows) -> None:
    rows.execute("UPDATE shop.orders SET number = 'k\"ö\\\n' WHERE id = 1")
    fields = ["number", {"kind": {"value": 'a"b'}}, "total", "made", {"on": {"value": True}}, {"again": "total"}]
    with rows.open_view():
        graph = graph_of({"customer": CUSTOMER_JOIN | {"joins": {}}}, fields=fields)
        built = DocumentBuilder(graph, rows).build_documents([(1,), (3,), (4,)])
    assert built.documents.to_pylist() == [
        (
            '{"number":"k\\"ö\\\\\\n","kind":"a\\"b","total":35.00,"made":"2024-02-29T10:00:00","on":true,"again":35.00,'
            '"customer":{"name":"Ann","city":"Porto"}}'
        ),
        '{"number":"A3","kind":"a\\"b","total":null,"made":null,"on":true,"again":null,"customer":null}',
        '{"number":"A4","kind":"a\\"b","total":-1.25,"made":null,"on":true,"again":-1.25,"customer":null}',
    ]


def test_a_document_may_have_constants_only(rows: MemoryRows) -> None:
    graph = graph_of({"customer": CUSTOMER_JOIN | {"joins": {}, "fields": {"kind": {"value": 1}}}})
    assert build_by_id(rows, graph, 1, 3)["1"] == {"number": "A1", "customer": {"kind": 1}}
    assert build_by_id(rows, graph_of(fields={"a": {"value": "x"}}), 1) == {"1": {"a": "x"}}


def test_expressions_have_the_type_that_is_said(rows: MemoryRows) -> None:
    fields = {
        "twice": {"sql": "total * 2", "type": "float"},
        "is_large": {"sql": "total > 1", "type": "boolean"},
        "shout": {"sql": "number || '!\"'"},
        "size": {"sql": "length(number)", "type": "integer"},
    }
    documents = build_by_id(rows, graph_of(fields=fields), 1, 3)
    assert documents["1"] == {"twice": 70, "is_large": True, "shout": 'A1!"', "size": 2}
    assert documents["3"] == {"twice": None, "is_large": None, "shout": 'A3!"', "size": 2}


def test_arrays_are_ordered_filtered_and_limited(rows: MemoryRows) -> None:
    rows.insert(
        "order_line",
        *((3, line_number, quantity, 7) for line_number, quantity in ((1, 5), (2, 9), (3, 5), (4, -1), (5, 7))),
    )
    rows.insert("order_line", (4, 1, 3, 7))

    def quantities(**changes: Any) -> list[list[int]]:
        lines = LINES_JOIN | {"joins": {}, "fields": ["position", "quantity"]} | changes
        documents = build_by_id(rows, graph_of({"lines": lines}), 3, 4)
        return [[line["position"] for line in documents[key]["lines"]] for key in ("3", "4")]

    assert quantities() == [[1, 2, 3, 4, 5], [1]]
    assert quantities(order="-quantity") == [[2, 5, 1, 3, 4], [1]]
    assert quantities(order=["quantity", "-position"]) == [[4, 3, 1, 5, 2], [1]]
    assert quantities(filter="quantity > 0 AND quantity < 9") == [[1, 3, 5], [1]]
    assert quantities(filter="quantity > 3") == [[1, 2, 3, 5], []]
    assert quantities(order="-quantity", limit=2) == [[2, 5], [1]]
    assert quantities(order="-quantity", limit=2, filter="quantity < 9") == [[5, 1], [1]]
    assert quantities(limit=1) == [[1], [1]]
    assert quantities(limit=100) == [[1, 2, 3, 4, 5], [1]]


def test_a_filter_of_a_single_join_may_leave_nothing(rows: MemoryRows) -> None:
    customer = CUSTOMER_JOIN | {"filter": "city <> 'Porto'"}
    assert build_by_id(rows, graph_of({"customer": customer}), 1) == {"1": {"number": "A1", "customer": None}}


def test_rows_that_are_not_searchable_are_not_built(rows: MemoryRows) -> None:
    rows.execute("UPDATE shop.orders SET is_deleted = 0 WHERE id = 1")
    rows.execute("UPDATE shop.orders SET is_deleted = 1 WHERE id = 2")
    assert set(build_by_id(rows, graph_of(where="state <> 'draft'"), 1, 2, 3, 4)) == {"1", "2", "4"}
    assert set(build_by_id(rows, graph_of(where={"state": "draft"}), 1, 2, 3, 4)) == {"3"}
    assert set(build_by_id(rows, graph_of(soft_delete="is_deleted"), 1, 2, 3, 4)) == {"1", "3", "4"}


def test_a_row_joined_to_many_is_the_same_in_each(rows: MemoryRows) -> None:
    rows.insert(
        "orders", *((number, f"B{number}", 5) for number in range(100, 140)), columns="(id, number, customer_id)"
    )
    documents = build_by_id(rows, graph_of({"customer": CUSTOMER_JOIN}), *range(100, 140))
    assert {json.dumps(document["customer"]) for document in documents.values()} == {
        '{"name": "Ann", "city": "Porto", "country": {"name": "Portugal"}}'
    }
    country = [sql for sql in rows.statements if "`country` AS c" in sql]
    assert len(country) == 1
    assert country[0].endswith("WHERE p.`id` IN (5)"), "what is shared is read once"


def test_a_link_that_is_there_twice_gives_two_objects(rows: MemoryRows) -> None:
    rows.insert("order_tag", (1, 1))
    tags = build_by_id(rows, graph_of({"tags": TAGS_JOIN}), 1)["1"]["tags"]
    assert tags == [{"name": "blue"}, {"name": "red"}, {"name": "red"}]


def test_a_table_joins_itself_and_comes_twice(rows: MemoryRows) -> None:
    rows.execute("UPDATE shop.orders SET parent_id = 1 WHERE id IN (2, 3)")
    parent = {"table": "shop.orders", "on": {"parent_id": "id"}, "fields": ["number"]}
    children = {"table": "shop.orders", "many": True, "on": {"id": "parent_id"}, "fields": ["number"], "order": "-id"}
    joins = {"parent": parent | {"joins": {"customer": CUSTOMER_JOIN}}, "children": children}
    documents = build_by_id(rows, graph_of(joins), 1, 2)
    assert documents["1"]["parent"] is None
    assert documents["1"]["children"] == [{"number": "A3"}, {"number": "A2"}]
    assert documents["2"]["parent"]["customer"]["city"] == "Porto"
    assert documents["2"]["children"] == []


def test_arrays_inside_of_arrays(rows: MemoryRows) -> None:
    lines = LINES_JOIN | {"fields": ["position"], "joins": {}}
    orders = {
        "table": "shop.orders",
        "many": True,
        "on": {"id": "customer_id"},
        "fields": ["number"],
        "order": "-id",
        "joins": {"lines": lines, "tags": TAGS_JOIN},
    }
    root = {"table": "shop.customer", "fields": ["name"], "joins": {"orders": orders}}
    graph = resolve_spec(DocumentSpec.model_validate({"index": "customer", "root": root}), TABLES)
    assert build_by_id(rows, graph, 5, 6) == {
        "5": {
            "name": "Ann",
            "orders": [
                {"number": "A2", "lines": [{"position": 1}, {"position": 2}], "tags": [{"name": "red"}]},
                {
                    "number": "A1",
                    "lines": [{"position": 1}, {"position": 2}],
                    "tags": [{"name": "blue"}, {"name": "red"}],
                },
            ],
        },
        "6": {"name": "Bob", "orders": []},
    }


@pytest.mark.parametrize(
    ("missing", "customer", "tags"),
    [
        ({CUSTOMER}, None, 2),
        ({COUNTRY}, {"name": "Ann", "city": "Porto", "country": None}, 2),
        ({TAG}, {"name": "Ann", "city": "Porto", "country": {"name": "Portugal"}}, 0),
        ({ORDER_TAG, CUSTOMER}, None, 0),
    ],
)
def test_a_table_that_is_not_there_gives_nothing(
    rows: MemoryRows, missing: set[TableName], customer: Any, tags: int
) -> None:
    for name in missing:
        rows.execute(f"DROP TABLE shop.{name.table}")
    graph = graph_of({"customer": CUSTOMER_JOIN, "tags": TAGS_JOIN})
    document = build_by_id(rows, graph, 1, missing=frozenset(missing))["1"]
    assert document["customer"] == customer
    assert len(document["tags"]) == tags


def test_without_the_root_table_there_are_no_documents(rows: MemoryRows) -> None:
    rows.execute("DROP TABLE shop.orders")
    builder = DocumentBuilder(graph_of(JOINS), rows, frozenset([ORDERS]))
    with rows.open_view():
        assert len(builder.build_documents([(1,)])) == 0
    assert list(builder.build_pages(10)) == []
    assert rows.statements == []


def test_no_keys_and_no_rows_are_no_documents(rows: MemoryRows) -> None:
    graph = graph_of(JOINS, routing="number")
    assert build_by_id(rows, graph) == {}
    assert rows.statements == []
    assert build_by_id(rows, graph, 77) == {}
    assert len(rows.statements) == 1, "joined tables are not asked when there is nothing to join to"
