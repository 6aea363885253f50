"""Statements that change rows without logging them, and tables that change while documents are read."""

from collections.abc import Iterator

import pytest

from penstock.errors import ProtocolError, SchemaError, SourceConnectionError
from tests.support.document_shop import (
    COUNTRY,
    CUSTOMER,
    CUSTOMER_JOIN,
    LINES_JOIN,
    ORDERS,
    TAGS_JOIN,
    batch,
    change,
    graph_of,
    order,
    statement,
)
from tests.support.memory_sync import MemorySync

JOINS = {"customer": CUSTOMER_JOIN, "lines": LINES_JOIN, "tags": TAGS_JOIN}


@pytest.fixture
def shop() -> Iterator[MemorySync]:
    made = MemorySync(graph_of(JOINS, where="state IS NULL OR state <> 'draft'"))
    yield made
    made.rows.close()


def test_after_a_truncate_what_is_older_is_deleted(shop: MemorySync, caplog: pytest.LogCaptureFixture) -> None:
    shop.insert_orders(1, 2, 3)
    shop.sync.load_all(5)
    shop.index.entries["9", None] = 40, {"number": "newer"}
    shop.rows.execute("DELETE FROM shop.orders")
    shop.insert_orders(4)
    with caplog.at_level("WARNING"):
        counts = shop.sync.apply_changes(
            batch(
                change(ORDERS, 20, after=order(1)),
                statement("TRUNCATE TABLE orders", 30),
                change(ORDERS, 31, after=order(4)),
            )
        )
    assert set(shop.index.documents) == {"4", "9"}, "what was written later is left to its own change"
    assert shop.index.versions == {"1": 30, "2": 30, "3": 30, "4": 31, "9": 40}
    assert counts.documents.deleted == 3
    assert "TRUNCATE TABLE orders" in caplog.text
    assert "index=orders" in caplog.text


def test_a_rebuild_leaves_the_old_document_where_the_new_one_is_refused(shop: MemorySync) -> None:
    shop.insert_orders(1, 2)
    shop.sync.load_all(5)
    shop.index.refused["2"] = "bad"
    counts = shop.sync.apply_changes(batch(statement("ALTER TABLE orders MODIFY number TEXT", 30)))
    assert shop.index.versions == {"1": 30, "2": 5}
    assert counts.documents.rejected == 1
    assert [refused for _, refused in shop.outcomes if refused] == [["2"]]


def test_a_statement_that_changes_no_rows_loads_the_tables_again_and_rebuilds_nothing(shop: MemorySync) -> None:
    shop.insert_orders(1)
    shop.sync.apply_changes(batch(statement("ALTER TABLE orders ADD COLUMN x INT", 30)))
    assert (shop.loads, shop.index.writes) == (2, [])


def test_a_dropped_table_gives_nothing_and_returns_with_its_create(shop: MemorySync) -> None:
    shop.insert_orders(1, customer=5)
    shop.rows.insert("customer", (5, "Ann", "Porto", 1))
    shop.sync.load_all(5)
    shop.rows.execute("ALTER TABLE shop.customer RENAME TO gone")
    shop.missing = frozenset([CUSTOMER])
    shop.sync.apply_changes(batch(statement("DROP TABLE customer", 10)))
    assert shop.index.documents["1"]["customer"] is None
    assert shop.index.versions == {"1": 10}
    shop.sync.apply_changes(batch(change(COUNTRY, 11, after={"id": 1})))
    assert shop.index.versions == {"1": 10}, "the way to the root leads through the table that is gone"
    shop.rows.execute("ALTER TABLE shop.gone RENAME TO customer")
    shop.missing = frozenset()
    shop.sync.apply_changes(batch(statement("CREATE TABLE IF NOT EXISTS customer (id INT)", 12)))
    assert shop.index.documents["1"]["customer"]["name"] == "Ann"


def test_without_the_root_table_every_document_is_deleted(shop: MemorySync) -> None:
    shop.insert_orders(1, 2)
    shop.sync.load_all(5)
    shop.rows.execute("DROP TABLE shop.orders")
    shop.missing = frozenset([ORDERS])
    shop.sync.apply_changes(batch(change(ORDERS, 9, after=order(1)), statement("DROP TABLE orders", 10)))
    assert shop.index.documents == {}


@pytest.mark.parametrize("error", [SchemaError("altered meanwhile"), ProtocolError("no such table")])
def test_an_error_of_the_tables_loads_them_again_and_tries_once_more(shop: MemorySync, error: Exception) -> None:
    shop.insert_orders(1)
    shop.rows.failures = [error]
    shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    assert (shop.loads, shop.index.versions) == (2, {"1": 10})
    shop.rows.failures = [error, error]
    with pytest.raises(type(error)):
        shop.sync.apply_changes(batch(change(ORDERS, 11, after=order(1))))


def test_an_error_of_the_connection_is_left_to_the_caller(shop: MemorySync) -> None:
    shop.insert_orders(1)
    shop.rows.failures = [SourceConnectionError("gone")]
    with pytest.raises(SourceConnectionError):
        shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    assert shop.loads == 1
    shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    assert shop.index.versions == {"1": 10}
