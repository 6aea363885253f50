"""Foreign keys that cascade: which rows a document names, and how the index leads from them to documents."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from penstock.document import ChangeReader, DocumentGraph
from penstock.document.graph import REFERENCES_FIELD
from penstock.document.references import reference_text, with_references
from penstock.errors import SchemaError, SinkUnavailableError
from penstock.model import TableName
from penstock.schema.foreign_keys import CascadingKey, parse_cascading_keys
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
    batch,
    change,
    graph_of,
    order,
    statement,
)
from tests.support.memory_sync import MemorySync


def follows(table: TableName, column: str, parent: TableName, parent_column: str = "id") -> CascadingKey:
    return CascadingKey(table, (column,), parent, (parent_column,), follows_deletes=True, follows_updates=True)


def referring(graph: DocumentGraph, *keys: CascadingKey) -> DocumentGraph:
    by_table: dict[TableName, list[CascadingKey]] = {}
    for key in keys:
        by_table.setdefault(key.table, []).append(key)
    return with_references(graph, by_table, TABLES)


def test_texts_that_a_collation_may_take_for_equal_have_one_name() -> None:
    table = TableName("a", "b")
    assert reference_text(table, (7,)) == "a.b:7"
    assert reference_text(table, (7, "x:y")) == "a.b:7:x%3Ay"
    for others in (("Ana", "ANA", "ána", "ana  "), ("ß", "SS", "ss"), ("ﬁ", "FI")):
        assert len({reference_text(table, (text,)) for text in others}) == 1, others
    assert reference_text(table, ("an",)) != reference_text(table, ("ana",))
    assert reference_text(table, (b"a",)) != reference_text(table, (b"A",))


def test_a_graph_without_such_keys_is_left_alone() -> None:
    graph = referring(graph_of({"customer": CUSTOMER_JOIN}))
    assert graph.references == ()
    assert REFERENCES_FIELD not in graph.field_kinds


def test_a_document_refers_to_the_rows_that_its_rows_follow() -> None:
    graph = referring(graph_of({"lines": LINES_JOIN}), follows(ORDERS, "customer_id", CUSTOMER))
    assert graph.reference_names == {"root(customer_id)->shop.customer"}
    assert graph.field_kinds[REFERENCES_FIELD] is FieldKind.KEYWORD
    assert graph.used_columns[CUSTOMER] == {"id"}
    assert CUSTOMER in graph.tables, "its changes must come in the stream"


def test_a_table_that_is_joined_below_its_parent_needs_no_reference() -> None:
    graph = referring(graph_of({"lines": LINES_JOIN}), follows(LINE, "order_id", ORDERS))
    assert graph.references == ()


def test_a_link_table_may_follow_the_tables_that_it_links_only() -> None:
    graph = graph_of({"tags": TAGS_JOIN})
    linked = referring(graph, follows(ORDER_TAG, "order_id", ORDERS), follows(ORDER_TAG, "tag_id", TAG))
    assert linked.reference_names == {"tags(id)->shop.tag"}
    with pytest.raises(SchemaError, match=r"link table shop.order_tag follow those of shop.customer"):
        referring(graph, follows(ORDER_TAG, "tag_id", CUSTOMER))


def test_a_parent_that_follows_another_is_read_for_its_reference_only() -> None:
    keys = follows(ORDERS, "customer_id", CUSTOMER), follows(CUSTOMER, "country_id", COUNTRY)
    graph = referring(graph_of(), *keys)
    assert graph.reference_names == {
        "root(customer_id)->shop.customer",
        "parent shop.customer(country_id)->shop.country",
    }
    assert [node.name for node in graph.nodes] == ["root"], "it gives no part of the document"
    assert [reference.leads_on for reference in graph.references] == [True]
    assert graph.used_columns[CUSTOMER] == {"id", "country_id"}
    assert COUNTRY in graph.tables


def test_a_parent_that_the_document_joins_leads_on_by_itself() -> None:
    keys = follows(ORDERS, "customer_id", CUSTOMER), follows(CUSTOMER, "country_id", COUNTRY)
    graph = referring(graph_of({"customer": CUSTOMER_JOIN}), *keys)
    assert graph.reference_names == {"root(customer_id)->shop.customer", "customer(country_id)->shop.country"}
    assert graph.parent_references == ()


def images(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [change(CUSTOMER, 10 + number, **row) for number, row in enumerate(rows)]


def test_every_changed_row_that_others_follow_is_looked_for() -> None:
    graph = referring(graph_of(), follows(ORDERS, "customer_id", CUSTOMER))
    rows = images(
        {"before": {"id": 1}},
        {"before": {"id": 2}, "after": {"id": 3}},
        {"before": {"id": 4, "name": "a"}, "after": {"id": 4, "name": "b"}},
        {"after": {"id": 5}},
    )
    touched = ChangeReader(graph).read_changes(batch(*rows))
    assert touched.references == {
        "shop.customer:1": 10,
        "shop.customer:2": 11,
        "shop.customer:3": 11,
        "shop.customer:5": 13,
    }, "all but the one of a column that no document uses"
    assert touched.roots == {}


@pytest.fixture
def shop() -> Iterator[MemorySync]:
    keys = follows(ORDERS, "customer_id", CUSTOMER), follows(CUSTOMER, "country_id", COUNTRY)
    made = MemorySync(referring(graph_of({"lines": LINES_JOIN}), *keys, follows(LINE, "product_id", PRODUCT)))
    made.insert_orders(1, 2, customer=5)
    made.insert_orders(3, customer=6)
    made.insert_orders(4)
    made.rows.insert("customer", (5, "Ann", "Porto", 1), (6, "Bob", "Lyon", 2))
    made.rows.insert("country", (1, "Portugal", "pt"), (2, "France", "fr"))
    made.rows.insert("order_line", (3, 1, 10, 7), (3, 2, 20, 8))
    made.rows.insert("product", (7, "kettle"), (8, "lamp"))
    made.sync.load_all(5)
    yield made
    made.rows.close()


def test_documents_name_what_they_depend_on(shop: MemorySync) -> None:
    assert {name: document[REFERENCES_FIELD] for name, document in shop.index.documents.items()} == {
        "1": ["shop.country:1", "shop.customer:5"],
        "2": ["shop.country:1", "shop.customer:5"],
        "3": ["shop.country:2", "shop.customer:6", "shop.product:7", "shop.product:8"],
        "4": [],
    }
    assert shop.index.documents["3"]["lines"][0] == {"quantity": 10, "product": {"name": "kettle"}}
    assert set(shop.index.documents["1"]) == {"number", "lines", REFERENCES_FIELD}, "a hidden table gives no field"


def test_documents_go_with_the_row_that_their_own_row_followed(shop: MemorySync) -> None:
    shop.rows.execute("DELETE FROM shop.orders WHERE customer_id = 5")
    shop.sync.apply_changes(batch(change(CUSTOMER, 10, before={"id": 5})))
    assert set(shop.index.documents) == {"3", "4"}
    assert shop.index.entries["1", None] == (10, None)


def test_documents_go_with_a_row_two_tables_away(shop: MemorySync) -> None:
    shop.rows.execute("DELETE FROM shop.orders WHERE customer_id = 5")
    shop.rows.execute("DELETE FROM shop.customer WHERE id = 5")
    shop.sync.apply_changes(batch(change(COUNTRY, 10, before={"id": 1})))
    assert set(shop.index.documents) == {"3", "4"}


def test_joined_rows_go_with_what_they_followed(shop: MemorySync) -> None:
    shop.rows.execute("DELETE FROM shop.order_line WHERE product_id = 7")
    shop.sync.apply_changes(batch(change(PRODUCT, 10, before={"id": 7, "name": "kettle"})))
    assert shop.index.documents["3"]["lines"] == [{"quantity": 20, "product": {"name": "lamp"}}]
    assert shop.index.documents["3"][REFERENCES_FIELD] == ["shop.country:2", "shop.customer:6", "shop.product:8"]


def test_a_key_that_cascades_from_now_on_writes_all_documents_again() -> None:
    plain = graph_of()
    shop = MemorySync(plain)
    shop.insert_orders(1, customer=5)
    shop.sync.load_all(5)
    shop.graph = referring(plain, follows(ORDERS, "customer_id", CUSTOMER))
    shop.sync.apply_changes(batch(statement("ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customer", 9)))
    shop.rows.close()
    assert shop.index.documents["1"][REFERENCES_FIELD] == ["shop.customer:5"]
    assert REFERENCES_FIELD in shop.index.fields


@pytest.mark.parametrize("failing", ["prepare", "write"])
def test_a_key_that_cascades_is_followed_after_a_failure(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are known by then as they are now: that alone does not say what is left to be done."""
    plain = graph_of()
    shop = MemorySync(plain)
    shop.insert_orders(1, customer=5)
    shop.sync.load_all(5)
    shop.graph = referring(plain, follows(ORDERS, "customer_id", CUSTOMER))
    changes = batch(statement("ALTER TABLE customer ADD KEY (name)", 9))  # by itself it says nothing of keys
    with monkeypatch.context() as patch:
        patch.setattr(shop.index, failing, Mock(side_effect=SinkUnavailableError("it restarts")))
        with pytest.raises(SinkUnavailableError):
            shop.sync.apply_changes(changes)
    shop.sync.apply_changes(changes)
    shop.rows.close()
    assert shop.index.documents["1"][REFERENCES_FIELD] == ["shop.customer:5"]
    assert REFERENCES_FIELD in shop.index.fields


def test_rows_of_one_table_that_follow_each_other_are_found_to_the_last() -> None:
    shop = MemorySync(referring(graph_of(), follows(ORDERS, "parent_id", ORDERS)))
    for key, parent in ((1, None), (2, 1), (3, 2), (4, 3), (5, None)):
        shop.rows.insert("orders", (key, f"N{key}", parent), columns="(id, number, parent_id)")
    shop.sync.load_all(5)
    shop.rows.execute("DELETE FROM shop.orders WHERE id < 5")
    shop.sync.apply_changes(batch(change(ORDERS, 10, before=order(1))))
    shop.rows.close()
    assert set(shop.index.documents) == {"5"}


def test_rows_that_follow_each_other_are_found_where_one_between_them_is_no_document() -> None:
    shop = MemorySync(referring(graph_of(where={"state": "open"}), follows(ORDERS, "parent_id", ORDERS)))
    for key, state, parent in ((1, "open", None), (2, "draft", 1), (3, "draft", 2), (4, "open", 3), (5, "open", None)):
        shop.rows.insert("orders", (key, f"N{key}", state, parent), columns="(id, number, state, parent_id)")
    shop.sync.load_all(5)
    assert set(shop.index.documents) == {"1", "4", "5"}
    shop.rows.execute("DELETE FROM shop.orders WHERE id < 5")
    shop.sync.apply_changes(batch(change(ORDERS, 10, before=order(1))))
    shop.rows.close()
    assert set(shop.index.documents) == {"5"}


def test_a_document_whose_id_is_a_checksum_cannot_be_found_and_it_is_said(shop: MemorySync) -> None:
    shop.index.entries["%#abc", None] = 5, {REFERENCES_FIELD: ["shop.customer:5"]}
    with pytest.raises(SchemaError, match="its key is too long to be found by its id"):
        shop.sync.apply_changes(batch(change(CUSTOMER, 10, before={"id": 5})))


def test_keys_are_read_from_the_text_of_a_table() -> None:
    text = """CREATE TABLE `t` (
  `a` int, `b` int,
  CONSTRAINT `one` FOREIGN KEY (`a`, `b`) REFERENCES `o``ther` (`x`, `y`) ON DELETE CASCADE,
  CONSTRAINT `two` FOREIGN KEY (`a`) REFERENCES `shop`.`country` (`id`) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT `three` FOREIGN KEY (`b`) REFERENCES `u` (`id`) ON DELETE NO ACTION ON UPDATE RESTRICT,
  CONSTRAINT `four` FOREIGN KEY (`b`) REFERENCES `u` (`id`)
) ENGINE=InnoDB COMMENT='ON DELETE CASCADE'"""
    table = TableName("d", "t")
    two_columns = CascadingKey(table, ("a", "b"), TableName("d", "o`ther"), ("x", "y"), True, False)
    assert parse_cascading_keys(text, table) == [
        two_columns,
        replace(follows(table, "a", COUNTRY), follows_deletes=True),
    ]


def test_a_row_that_moved_to_another_parent_before_that_parent_went(shop: MemorySync) -> None:
    # customer 5 moves to country 2, whose delete takes customers 5 and 6 and all their orders, unlogged
    shop.rows.execute("DELETE FROM shop.orders WHERE customer_id IN (5, 6)")
    shop.rows.execute("DELETE FROM shop.customer")
    shop.sync.apply_changes(
        batch(
            change(CUSTOMER, 10, {"id": 5, "country_id": 1}, {"id": 5, "country_id": 2}),
            change(COUNTRY, 11, before={"id": 2}),
        )
    )
    assert set(shop.index.documents) == {"4"}
