"""The SQL of documents: how each kind of join is read, and how a changed row leads to root rows."""

from typing import Any

import pytest

from penstock.document import DocumentGraph, DocumentSpec
from penstock.document.graph_builder import resolve_spec
from penstock.document.queries import NodeQueries, RootLookup, find_lookups
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.document_shop import (
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
    text,
)

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


def queries_of(graph: DocumentGraph, name: str = "root") -> NodeQueries:
    return NodeQueries(graph, next(node for node in graph.nodes if node.name == name))


def test_root_rows_are_read_by_key_and_condition() -> None:
    graph = graph_of(
        fields=["number", {"kind": {"value": "x"}}, {"gross": {"sql": "total * 2", "type": "float"}}],
        where="state <> 'draft'",
        routing="customer_id",
    )
    query = queries_of(graph).select_rows([(1,), (2,)])
    assert query.sql == (
        "SELECT c.`id`, c.`number`, CONVERT(((total * 2) + 0) USING utf8mb4), c.`customer_id`"
        " FROM `shop`.`orders` AS c WHERE c.`id` IN (1, 2) AND (state <> 'draft')"
    )
    assert [column.name for column in query.columns] == ["id", "number", "field gross", "customer_id"]


def test_root_rows_of_a_composite_key() -> None:
    spec = DocumentSpec.model_validate({"index": "x", "root": {"table": "shop.order_line", "fields": ["quantity"]}})
    queries = queries_of(resolve_spec(spec, TABLES))
    assert queries.select_rows([(1, 2), (3, 4)]).sql == (
        "SELECT c.`order_id`, c.`position`, c.`quantity` FROM `shop`.`order_line` AS c"
        " WHERE ((c.`order_id` = 1 AND c.`position` = 2) OR (c.`order_id` = 3 AND c.`position` = 4))"
    )
    assert queries.select_page("", 7).sql.endswith("AS c ORDER BY c.`order_id`, c.`position` LIMIT 7")


def test_pages_continue_behind_the_last_key() -> None:
    queries = queries_of(graph_of(where="total > 0"))
    begin = "SELECT c.`id`, c.`number` FROM `shop`.`orders` AS c WHERE"
    assert queries.select_page("", 10).sql == f"{begin} (total > 0) ORDER BY c.`id` LIMIT 10"
    assert queries.select_page("(c.`id` > 5)", 10).sql == (
        f"{begin} (c.`id` > 5) AND (total > 0) ORDER BY c.`id` LIMIT 10"
    )


JOINED = {
    "customer": (
        "SELECT STRAIGHT_JOIN p.`id`, c.`id`, c.`name`, c.`city` FROM `shop`.`orders` AS p"
        " JOIN `shop`.`customer` AS c ON c.`id` = p.`customer_id` WHERE p.`id` IN (7)"
    ),
    "customer.country": (
        "SELECT STRAIGHT_JOIN p.`id`, c.`id`, c.`name` FROM `shop`.`customer` AS p"
        " JOIN `shop`.`country` AS c ON c.`id` = p.`country_id` WHERE p.`id` IN (7)"
    ),
    "lines": (
        "SELECT STRAIGHT_JOIN p.`id`, c.`order_id`, c.`position`, c.`quantity` FROM `shop`.`orders` AS p"
        " JOIN `shop`.`order_line` AS c ON c.`order_id` = p.`id` WHERE p.`id` IN (7)"
        " ORDER BY c.`order_id`, c.`position`"
    ),
    "tags": (
        "SELECT STRAIGHT_JOIN p.`id`, c.`id`, c.`name` FROM `shop`.`orders` AS p"
        " JOIN `shop`.`order_tag` AS l ON l.`order_id` = p.`id`"
        " JOIN `shop`.`tag` AS c ON c.`id` = l.`tag_id` WHERE p.`id` IN (7) ORDER BY c.`name`, c.`id`"
    ),
}


@pytest.mark.parametrize(("name", "sql"), JOINED.items(), ids=JOINED)
def test_joined_rows_come_with_the_key_of_their_parent(name: str, sql: str) -> None:
    assert queries_of(graph_of(JOINS), name).select_rows([(7,)]).sql == sql


def test_joined_rows_of_a_parent_with_a_composite_key() -> None:
    query = queries_of(graph_of(JOINS), "lines.product").select_rows([(1, 2)])
    assert query.sql == (
        "SELECT STRAIGHT_JOIN p.`order_id`, p.`position`, c.`id`, c.`name` FROM `shop`.`order_line` AS p"
        " JOIN `shop`.`product` AS c ON c.`id` = p.`product_id` WHERE ((p.`order_id` = 1 AND p.`position` = 2))"
    )
    assert [column.name for column in query.columns] == ["order_id", "position", "id", "name"]


def test_a_filter_and_expressions_see_the_names_of_their_own_table_only() -> None:
    lines = LINES_JOIN | {
        "filter": "quantity > 0",
        "order": ["-product_id", "position"],
        "fields": ["quantity", {"twice": {"sql": "quantity * 2", "type": "integer"}}],
    }
    query = queries_of(graph_of({"lines": lines}), "lines").select_rows([(7,)])
    assert query.sql == (
        "SELECT STRAIGHT_JOIN p.`id`, c.`order_id`, c.`position`, c.`quantity`, c.`field twice`"
        " FROM `shop`.`orders` AS p JOIN (SELECT `order_id`, `position`, `product_id`, `quantity`,"
        " CONVERT(CAST((quantity * 2) AS DECIMAL(65, 0)) USING utf8mb4) AS `field twice`"
        " FROM `shop`.`order_line` WHERE quantity > 0) AS c ON c.`order_id` = p.`id`"
        " WHERE p.`id` IN (7) ORDER BY c.`product_id` DESC, c.`position`, c.`order_id`, c.`position`"
    )


def test_labels_are_read_as_texts() -> None:
    name = TableName("shop", "t")
    state = Column("state", WireType.ENUM, size=1, labels=("on", "off"), charset="utf8mb4")
    spec = DocumentSpec.model_validate({"index": "x", "root": {"table": "shop.t", "fields": ["state"]}})
    graph = resolve_spec(spec, {name: TableSchema(name, (integer("id"), state), ("id",))})
    assert queries_of(graph).select_rows([(1,)]).sql.startswith("SELECT c.`id`, c.`state` FROM")


def test_odd_names_are_quoted() -> None:
    name = TableName("sh`op", "pro%duct")
    schema = TableSchema(name, (integer("i`d"), text("na%me")), ("i`d",))
    spec = DocumentSpec.model_validate({"index": "x", "root": {"table": str(name), "fields": ["na%me"]}})
    assert queries_of(resolve_spec(spec, {name: schema})).select_rows([(1,)]).sql == (
        "SELECT c.`i``d`, c.`na%me` FROM `sh``op`.`pro%duct` AS c WHERE c.`i``d` IN (1)"
    )


def lookups_of(joins: dict[str, Any], table: TableName) -> list[RootLookup]:
    return [lookup for lookup in find_lookups(graph_of(joins)) if lookup.table == table]


LOOKUPS = {
    "customer": (
        CUSTOMER,
        ["id"],
        "SELECT DISTINCT STRAIGHT_JOIN n1.`id` FROM `shop`.`orders` AS n1 WHERE n1.`customer_id` IN (5)",
    ),
    "country": (
        TableName("shop", "country"),
        ["id"],
        (
            "SELECT DISTINCT STRAIGHT_JOIN n2.`id` FROM `shop`.`customer` AS n1 JOIN `shop`.`orders` AS n2"
            " ON n1.`id` = n2.`customer_id` WHERE n1.`country_id` IN (5)"
        ),
    ),
    "line": (
        LINE,
        ["order_id"],
        "SELECT DISTINCT STRAIGHT_JOIN n1.`id` FROM `shop`.`orders` AS n1 WHERE n1.`id` IN (5)",
    ),
    "product": (
        PRODUCT,
        ["id"],
        (
            "SELECT DISTINCT STRAIGHT_JOIN n2.`id` FROM `shop`.`order_line` AS n1 JOIN `shop`.`orders` AS n2"
            " ON n1.`order_id` = n2.`id` WHERE n1.`product_id` IN (5)"
        ),
    ),
    "link": (
        ORDER_TAG,
        ["order_id"],
        "SELECT DISTINCT STRAIGHT_JOIN n1.`id` FROM `shop`.`orders` AS n1 WHERE n1.`id` IN (5)",
    ),
    "tag": (
        TAG,
        ["id"],
        (
            "SELECT DISTINCT STRAIGHT_JOIN n1.`id` FROM `shop`.`order_tag` AS l0 JOIN `shop`.`orders` AS n1"
            " ON l0.`order_id` = n1.`id` WHERE l0.`tag_id` IN (5)"
        ),
    ),
}


@pytest.mark.parametrize(("table", "columns", "sql"), LOOKUPS.values(), ids=LOOKUPS)
def test_a_changed_row_leads_to_roots(table: TableName, columns: list[str], sql: str) -> None:
    (lookup,) = lookups_of(JOINS, table)
    assert [column.name for column in lookup.columns] == columns
    assert lookup.select_roots([(5,)]).sql == sql
    assert lookup.names_roots == (table in (LINE, ORDER_TAG))


def test_a_link_table_below_another_join_is_passed_on_the_way_up() -> None:
    product = {"table": "shop.product", "on": {"id": "id"}, "fields": ["name"]}
    (lookup,) = lookups_of({"tags": TAGS_JOIN | {"joins": {"product": product}}}, PRODUCT)
    assert lookup.select_roots([(5,)]).sql == (
        "SELECT DISTINCT STRAIGHT_JOIN n2.`id` FROM `shop`.`tag` AS n1"
        " JOIN `shop`.`order_tag` AS l1 ON n1.`id` = l1.`tag_id`"
        " JOIN `shop`.`orders` AS n2 ON l1.`order_id` = n2.`id` WHERE n1.`id` IN (5)"
    )


def test_a_self_join_is_looked_up_by_the_other_column() -> None:
    parent = {"table": "shop.orders", "on": {"parent_id": "id"}, "fields": ["number"]}
    (lookup,) = lookups_of({"parent": parent}, ORDERS)
    assert lookup.select_roots([(5,)]).sql.endswith("FROM `shop`.`orders` AS n1 WHERE n1.`parent_id` IN (5)")
    assert not lookup.names_roots


def test_a_table_that_is_joined_twice_has_two_lookups() -> None:
    again = {"table": "shop.country", "on": {"parent_id": "id"}, "fields": ["name"]}
    assert len(lookups_of(JOINS | {"again": again}, TableName("shop", "country"))) == 2


@pytest.mark.parametrize(
    ("key", "reference", "is_named"),
    [
        (integer("id"), integer("order_id"), True),
        (Column("id", WireType.LONGLONG, unsigned=True), Column("order_id", WireType.SHORT), True),
        (text("id"), text("order_id"), False),
        (integer("id"), text("order_id"), False),
        (text("id"), integer("order_id"), False),
        (Column("id", WireType.NEWDECIMAL, precision=5), integer("order_id"), False),
        (Column("id", WireType.YEAR), Column("order_id", WireType.YEAR), False),
        (Column("id", WireType.DATE), Column("order_id", WireType.DATE), False),
    ],
)
def test_only_integers_name_roots_without_a_lookup(key: Column, reference: Column, is_named: bool) -> None:
    """Texts may be equal to the server and not the same, and so may a number and a text."""
    tables = TABLES | {
        ORDERS: TableSchema(ORDERS, (key, text("number")), ("id",)),
        LINE: TableSchema(LINE, (reference, integer("position")), ("order_id", "position")),
    }
    lines = {"table": "shop.order_line", "many": True, "on": {"id": "order_id"}, "fields": ["position"]}
    (lookup,) = find_lookups(resolve_spec(spec_of({"lines": lines}), tables))
    assert lookup.names_roots == is_named


def test_a_part_of_a_composite_key_names_no_root() -> None:
    product = {"table": "shop.product", "many": True, "on": {"order_id": "id"}, "fields": ["name"]}
    both = {
        "table": "shop.order_tag",
        "many": True,
        "on": {"position": "tag_id", "order_id": "order_id"},
        "fields": ["tag_id"],
    }
    swapped = both | {"on": {"order_id": "order_id", "position": "tag_id"}}
    root = {"table": "shop.order_line", "fields": ["quantity"], "joins": {"a": product, "b": both, "c": swapped}}
    graph = resolve_spec(DocumentSpec.model_validate({"index": "x", "root": root}), TABLES)
    assert [lookup.names_roots for lookup in find_lookups(graph)] == [False, False, True], "columns in the key's order"


def test_a_lookup_knows_the_tables_on_its_way() -> None:
    (country,) = lookups_of(JOINS, TableName("shop", "country"))
    assert country.uses_any(frozenset([CUSTOMER]))
    assert country.uses_any(frozenset([ORDERS]))
    assert not country.uses_any(frozenset([TableName("shop", "country"), TAG]))
    (tag,) = lookups_of(JOINS, TAG)
    assert tag.uses_any(frozenset([ORDER_TAG]))
    assert not tag.uses_any(frozenset([TAG]))
