"""A spec resolved against tables: nodes, columns in use, how fields are searched, and what does not fit."""

import pickle
import re
from dataclasses import replace
from typing import Any

import pytest

from penstock.document import DocumentSpec
from penstock.document.graph_builder import resolve_spec
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind
from tests.support.document_shop import (
    COUNTRY,
    CUSTOMER,
    CUSTOMER_JOIN,
    LINE,
    LINES_JOIN,
    ORDER_TAG,
    ORDERS,
    PRODUCT,
    TABLES,
    TAG,
    TAGS_JOIN,
    graph_of,
    integer,
    spec_of,
    table,
    text,
)

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


def test_nodes_come_after_their_parents_with_their_paths() -> None:
    graph = graph_of(JOINS)
    assert [node.name for node in graph.nodes] == [
        "root",
        "customer",
        "customer.country",
        "lines",
        "lines.product",
        "tags",
    ]
    assert [node.is_many for node in graph.nodes] == [False, False, False, True, False, True]
    assert set(graph.tables) == {ORDERS, CUSTOMER, COUNTRY, LINE, PRODUCT, TAG, ORDER_TAG}
    assert [node.key[0].name for node in graph.nodes] == ["id", "id", "id", "order_id", "id", "id"]


def test_columns_in_use_are_those_that_can_change_a_document() -> None:
    graph = graph_of(
        JOINS | {"lines": LINES_JOIN | {"filter": "quantity > 0", "order": ["-position"]}},
        fields=["number", {"gross": {"sql": "total * 1.2"}}, {"kind": {"value": "order"}}],
        where="state <> 'draft'",
        soft_delete="is_deleted",
        routing="note",
    )
    assert graph.used_columns == {
        ORDERS: {"id", "number", "total", "state", "is_deleted", "note", "customer_id"},
        CUSTOMER: {"id", "name", "city", "country_id"},
        COUNTRY: {"id", "name"},
        LINE: {"order_id", "position", "quantity", "product_id"},
        PRODUCT: {"id", "name"},
        TAG: {"id", "name"},
        ORDER_TAG: {"order_id", "tag_id"},
    }


def test_columns_that_order_or_filter_an_array_are_in_use() -> None:
    plain = {"table": "shop.customer", "many": True, "on": {"id": "id"}, "fields": ["name"]}
    assert graph_of({"c": plain}).used_columns[CUSTOMER] == {"id", "name"}
    assert graph_of({"c": plain | {"order": "-city"}}).used_columns[CUSTOMER] == {"id", "name", "city"}
    assert graph_of({"c": plain | {"filter": "country_id = 1"}}).used_columns[CUSTOMER] == {"id", "name", "country_id"}


def test_columns_of_a_table_that_is_joined_twice_are_put_together() -> None:
    parent = {"table": "shop.orders", "on": {"parent_id": "id"}, "fields": ["state"]}
    other = {"table": "shop.country", "on": {"parent_id": "id"}, "fields": ["code"]}
    graph = graph_of({"parent": parent, "customer": CUSTOMER_JOIN, "other": other})
    assert graph.used_columns[ORDERS] == {"id", "number", "parent_id", "customer_id", "state"}
    assert graph.used_columns[COUNTRY] == {"id", "name", "code"}


def test_a_name_in_other_letters_is_the_column() -> None:
    graph = graph_of(fields=["NUMBER"], where={"State": "open"}, routing="NOTE")
    assert graph.root.fields[0].name == "NUMBER"
    assert graph.root.fields[0].column == text("number")
    assert graph.routing == text("note")
    assert graph.condition == "`state` IN ('open')"


@pytest.mark.parametrize(
    ("root", "condition"),
    [
        ({}, ""),
        ({"where": " total > 0 OR total IS NULL "}, "(total > 0 OR total IS NULL)"),
        (
            {"where": {"state": ["a'b", "c\\d", 7], "total": [1.5, True]}},
            "`state` IN ('a''b', 'c\\\\d', 7) AND `total` IN (1.5, TRUE)",
        ),
        ({"soft_delete": "deleted_at"}, "(`deleted_at` IS NULL OR `deleted_at` = 0)"),
        (
            {"where": "total > 0", "soft_delete": "is_deleted"},
            "(total > 0) AND (`is_deleted` IS NULL OR `is_deleted` = 0)",
        ),
    ],
)
def test_the_condition_of_searchable_rows(root: dict[str, Any], condition: str) -> None:
    assert graph_of(**root).condition == condition


KINDS = [
    (integer("c"), FieldKind.INTEGER),
    (Column("c", WireType.YEAR), FieldKind.INTEGER),
    (Column("c", WireType.BIT, size=3), FieldKind.INTEGER),
    (Column("c", WireType.DOUBLE, size=8), FieldKind.FLOAT),
    (Column("c", WireType.NEWDECIMAL, precision=5, scale=2), FieldKind.FLOAT),
    (Column("c", WireType.DATE), FieldKind.DATE),
    (Column("c", WireType.DATETIME2), FieldKind.DATE),
    (Column("c", WireType.TIMESTAMP2), FieldKind.DATE),
    (Column("c", WireType.TIME2), FieldKind.KEYWORD),
    (text("c"), FieldKind.TEXT),
    (Column("c", WireType.BLOB, size=2, charset="utf8mb4"), FieldKind.TEXT),
    (Column("c", WireType.BLOB, size=2, charset="binary"), FieldKind.KEYWORD),
    (Column("c", WireType.STRING, size=16, charset="binary"), FieldKind.KEYWORD),
    (Column("c", WireType.ENUM, size=1, labels=("a",), charset="utf8mb4"), FieldKind.KEYWORD),
    (Column("c", WireType.SET, size=1, labels=("a",), charset="utf8mb4"), FieldKind.KEYWORD),
    (Column("c", WireType.STRING, size=16, charset="utf8mb4", declared="uuid"), FieldKind.KEYWORD),
    (Column("c", WireType.JSON, size=4), None),
    (Column("c", WireType.GEOMETRY, size=4), None),
]


@pytest.mark.parametrize(("column", "kind"), KINDS, ids=lambda part: getattr(part, "type", part) and "")
def test_how_a_column_is_searched(column: Column, kind: FieldKind | None) -> None:
    schema = table("t", integer("id"), column)
    spec = DocumentSpec.model_validate({"index": "x", "root": {"table": "shop.t", "fields": ["c"]}})
    assert resolve_spec(spec, {schema.name: schema}).field_kinds == ({} if kind is None else {"c": kind})


def test_fields_of_joins_expressions_and_constants_have_kinds_by_their_path() -> None:
    fields = [
        "number",
        {"a": {"value": True}},
        {"b": {"value": 1}},
        {"c": {"value": 1.5}},
        {"d": {"value": "x"}},
        {"e": {"sql": "total"}},
        {"f": {"sql": "total + 1"}},
        {"g": {"sql": "made", "type": "date"}},
        {"h": {"column": "number", "type": "keyword"}},
    ]
    kinds = {(ORDERS, "total + 1"): FieldKind.FLOAT, (ORDERS, "made"): FieldKind.TEXT}
    graph = resolve_spec(spec_of(JOINS, fields=fields), TABLES, kinds)
    assert graph.field_kinds == {
        "number": FieldKind.TEXT,
        "a": FieldKind.BOOLEAN,
        "b": FieldKind.INTEGER,
        "c": FieldKind.FLOAT,
        "d": FieldKind.KEYWORD,
        "e": FieldKind.KEYWORD,
        "f": FieldKind.FLOAT,
        "g": FieldKind.DATE,
        "h": FieldKind.KEYWORD,
        "customer.name": FieldKind.TEXT,
        "customer.city": FieldKind.TEXT,
        "customer.country.name": FieldKind.TEXT,
        "lines.quantity": FieldKind.INTEGER,
        "lines.product.name": FieldKind.TEXT,
        "tags.name": FieldKind.TEXT,
    }


def test_nested_arrays_are_named_by_their_path() -> None:
    assert graph_of(JOINS).layout.nested == frozenset()
    lines = LINES_JOIN | {"nested": True}
    assert graph_of(JOINS | {"lines": lines}).layout.nested == {"lines"}


def joined(**changes: Any) -> dict[str, Any]:
    return {"joins": {"j": {"table": "shop.customer", "on": {"customer_id": "id"}, "fields": ["name"]} | changes}}


UNFIT = [
    ({"fields": ["nmae"]}, "table shop.orders has no column nmae; it has id, number, state, total"),
    ({"fields": {"a.b": "number"}}, "a field cannot be called 'a.b'"),
    ({"where": {"stat": "x"}}, "table shop.orders has no column stat; it has id"),
    ({"where": "total > (1"}, "shop.orders: the SQL 'total > (1' has a parenthesis without an end"),
    ({"where": "total > 1) OR (1"}, "closes a parenthesis that it did not open"),
    ({"where": "1; DROP TABLE x"}, "must be one expression"),
    ({"fields": {"a": {"sql": "'open"}}}, "cannot be read"),
    ({"soft_delete": "note"}, "soft_delete: shop.orders.note is a text; name a number, a date or a time"),
    ({"soft_delete": "gone"}, "no column gone"),
    ({"routing": "nowhere"}, "no column nowhere; it has id"),
    (
        {"id": "number"},
        "the id must be the primary key of shop.orders, which is (id), or another unique key, not (number)",
    ),
    ({"id": ["id", "number"]}, "which is (id), or another unique key, not (id, number)"),
    (joined(on={"shop_id": "id"}), "table shop.orders has no column shop_id"),
    (joined(on={"customer_id": "key"}), "table shop.customer has no column key; it has id, name, city, country_id"),
    (joined(on={"customer_id": "country_id"}), "join 'j' may find several rows of shop.customer: join its primary key"),
    (joined(table="shop.order_line", on={"id": "order_id"}, fields=["quantity"]), "primary key (order_id, position)"),
    (joined(fields=["nmae"]), "table shop.customer has no column nmae"),
    (joined(filter="name = ("), "shop.customer: the SQL 'name = ('"),
    (joined(many=True, order="-age"), "table shop.customer has no column age"),
    ({"joins": {"number": CUSTOMER_JOIN}}, "'number' is the name of a field and of a join"),
    (joined(joins={"name": CUSTOMER_JOIN["joins"]["country"]}), "'j.name' is the name of a field and of a join"),
    (joined(joins={"k": {"table": "shop.country", "on": {"x": "id"}, "fields": ["name"]}}), "no column x"),
    ({"joins": {"tags": TAGS_JOIN | {"many": False, "order": []}}}, "join 'tags' may find several rows of shop.tag"),
    ({"joins": {"tags": TAGS_JOIN | {"through": TAGS_JOIN["through"] | {"on": {"id": "x"}}}}}, "shop.order_tag has no"),
    ({"joins": {"tags": TAGS_JOIN | {"through": TAGS_JOIN["through"] | {"to": {"x": "id"}}}}}, "shop.order_tag has no"),
]


@pytest.mark.parametrize(("root", "message"), UNFIT, ids=[message[:40] for _, message in UNFIT])
def test_what_does_not_fit_is_explained(root: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message)) as raised:
        graph_of(**root)
    assert str(raised.value).startswith("document 'orders': ")


def change_tables(name: TableName, **changes: Any) -> dict[TableName, TableSchema]:
    return TABLES | {name: replace(TABLES[name], **changes)}


INEXACT = [
    (ORDERS, {"key": ()}, "the id must be the primary key of shop.orders, which is (missing)"),
    (CUSTOMER, {"key": ()}, "join 'customer': shop.customer has no primary key"),
    (ORDERS, {"columns": (Column("id", WireType.DOUBLE, size=8), text("number"), integer("customer_id"))}, "the key"),
    (
        ORDERS,
        {"columns": (integer("id"), text("number"), Column("customer_id", WireType.FLOAT, size=4))},
        "join 'customer': shop.orders.customer_id has a type that cannot be joined by",
    ),
]


@pytest.mark.parametrize(("name", "changes", "message"), INEXACT, ids=[message[:30] for *_, message in INEXACT])
def test_rows_must_be_found_by_exact_values(name: TableName, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message)):
        resolve_spec(spec_of({"customer": CUSTOMER_JOIN}), change_tables(name, **changes))


def test_a_routing_has_an_exact_text() -> None:
    columns = (integer("id"), text("number"), Column("weight", WireType.FLOAT, size=4))
    with pytest.raises(SchemaError, match=r"shop.orders.weight cannot be the routing"):
        resolve_spec(spec_of(routing="weight"), change_tables(ORDERS, columns=columns))


def test_a_column_of_the_servers_own_is_none_of_the_table() -> None:
    columns = (integer("id"), text("number"), integer("DB_ROW_HASH_1", is_hidden=True))
    with pytest.raises(SchemaError, match=r"no column DB_ROW_HASH_1; it has id, number$"):
        resolve_spec(spec_of(fields=["DB_ROW_HASH_1"]), change_tables(ORDERS, columns=columns))


def test_a_part_of_a_composite_key_with_the_rest_finds_one_row() -> None:
    line = {"table": "shop.order_line", "on": {"id": "order_id", "parent_id": "position"}, "fields": ["quantity"]}
    assert not graph_of({"line": line}).nodes[1].is_many


@pytest.mark.parametrize(
    ("on", "unique_keys", "is_one"),
    [
        ({"note": "name"}, [("name",)], True),
        ({"note": "name", "number": "city"}, [("city",)], True),
        ({"note": "name"}, [("name", "city")], False),
        ({"note": "name"}, [], False),
    ],
)
def test_a_unique_key_finds_one_row(on: dict[str, str], unique_keys: list[tuple[str, ...]], is_one: bool) -> None:
    spec = spec_of({"c": {"table": "shop.customer", "on": on, "fields": ["city"]}})
    if is_one:
        assert not resolve_spec(spec, TABLES, {}, {CUSTOMER: unique_keys}).nodes[1].is_many
        return
    with pytest.raises(SchemaError, match=r"join 'c' may find several rows of shop.customer"):
        resolve_spec(spec, TABLES, {}, {CUSTOMER: unique_keys, ORDERS: [("name",)]})


def test_a_graph_travels_to_other_processes() -> None:
    graph = pickle.loads(pickle.dumps(graph_of(JOINS, routing="note")))  # noqa: S301 - our own
    assert graph.used_columns == graph_of(JOINS, routing="note").used_columns
    assert all(node.parent is None or node in node.parent.children for node in graph.nodes)
