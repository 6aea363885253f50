"""Changes of the demo's shop: the orders that a change says it touches are those whose documents differ after it, and
it can tell by a document whether the document shows it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from penstock.config import SourceSettings
from penstock.demo.change import UNCHANGED, AppliedChange, ShopChange
from penstock.demo.order_changes import AddLine, DeleteOrder, NewOrder, PutOnTag, RemoveLine, SetState, TakeOffTag
from penstock.demo.shared_changes import ChangeProduct, RaisePrices, RenameTag
from penstock.demo.shop import SPEC_FILE, ShopSize, create_shop
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, load_graph, load_spec
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of
from tests.support.document_orders import documents_of


@dataclass
class Shop:
    """A shop in a database, and the documents of its orders as they would be written now."""

    source: SourceSettings
    builder: DocumentBuilder

    def documents(self) -> dict[int, Any]:
        pages = [documents_of(page) for page in self.builder.build_pages(100)]
        return {int(key): document for page in pages for key, document in page.items()}

    def make(self, change: ShopChange) -> AppliedChange:
        """Make a change, and compare what it says with all documents before and after it."""
        before = self.documents()
        with closing(connect(self.source)) as connection, connection.cursor() as cursor:
            connection.begin()
            applied = change.apply(cursor)
            connection.commit()
        after = self.documents()
        differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert set(applied.orders) == differing
        assert len(applied.orders) == len(differing)
        for key in differing:
            assert not applied.shows(before.get(key)), before.get(key)
            assert applied.shows(after.get(key)), after.get(key)
        return applied

    def pick(self, sql: str) -> int:
        """Return the first number that a query selects."""
        with closing(connect(self.source)) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            ((number, *_), *_) = cursor.fetchall()
        return int(number)


@pytest.fixture(scope="module")
def shop(mariadb: DatabaseServer) -> Iterator[Shop]:
    execute(mariadb, "DROP DATABASE IF EXISTS shop")
    source = source_of(mariadb)
    rows = SourceRows(source, DOCUMENT_DECODING)
    counted: list[int] = []
    try:
        with closing(connect(source)) as connection, connection.cursor() as cursor:
            create_shop(connection, ShopSize(customers=20, orders=120), counted.append)
            graph = load_graph(cursor, load_spec(SPEC_FILE)).graph
        assert counted == [120]
        yield Shop(source, DocumentBuilder(graph, rows))
    finally:
        rows.close()
        execute(mariadb, "DROP DATABASE IF EXISTS shop")


def test_changes_of_an_order(shop: Shop) -> None:
    order = shop.make(NewOrder()).order
    assert order is not None
    document = shop.documents()[order]
    assert (len(document["lines"]), len(document["tags"]), document["state"]) == (2, 1, "open")
    assert document["number"] == f"A-{1000 + order}"

    added = shop.make(AddLine(order=order, product=3, quantity=5))
    assert added.orders == (order,)
    document = shop.documents()[order]
    assert (document["lines"][-1]["quantity"], document["lines"][-1]["product"]["id"]) == (5, 3)
    shop.make(RemoveLine(line=document["lines"][0]["id"]))

    tag = shop.pick(
        f"SELECT id FROM shop.tag WHERE id NOT IN (SELECT tag_id FROM shop.order_tag WHERE order_id = {order})"
    )
    shop.make(PutOnTag(order=order, tag=tag))
    assert shop.make(PutOnTag(order=order, tag=tag)).text == UNCHANGED
    shop.make(TakeOffTag(order=order, tag=tag))
    assert shop.make(TakeOffTag(order=order, tag=tag)).text == UNCHANGED

    shop.make(SetState(order=order, state="shipped"))
    assert shop.make(SetState(order=order, state="shipped")).text == UNCHANGED
    assert shop.make(SetState(order=order, state="draft")).orders == (order,)
    shop.make(SetState(order=order, state="paid"))
    shop.make(DeleteOrder(order=order))
    assert shop.pick(f"SELECT COUNT(*) FROM shop.order_line WHERE order_id = {order}") == 0


def test_changes_of_what_orders_share(shop: Shop) -> None:
    product = shop.pick("SELECT product_id, COUNT(*) FROM shop.order_line GROUP BY product_id ORDER BY 2 DESC")
    assert len(shop.make(ChangeProduct(product=product, name="zanzibar", price=Decimal("77.70"))).orders) > 1
    shop.make(ChangeProduct(product=product, name="zanzibar", price=Decimal("77.71")))
    assert shop.make(ChangeProduct(product=product, name="zanzibar", price=Decimal("77.71"))).text == UNCHANGED
    assert len(shop.make(RenameTag(tag=1, name="quetzal")).orders) > 5
    assert shop.make(RenameTag(tag=1, name="quetzal")).text == UNCHANGED
    assert len(shop.make(RaisePrices()).orders) == len(shop.documents())


def test_a_draft_has_no_document_that_a_change_touches(shop: Shop) -> None:
    order = shop.pick("SELECT id FROM shop.orders WHERE state = 'draft'")
    assert shop.make(AddLine(order=order, product=3)).orders == ()
    line = shop.pick(f"SELECT id FROM shop.order_line WHERE order_id = {order}")
    assert shop.make(RemoveLine(line=line)).orders == ()
    assert shop.make(DeleteOrder(order=order)).orders == ()


@pytest.mark.parametrize(
    "change",
    [
        AddLine(order=4_000_000, product=1),
        AddLine(order=1, product=4_000_000),
        RemoveLine(line=4_000_000),
        PutOnTag(order=1, tag=4_000_000),
        TakeOffTag(order=4_000_000, tag=1),
        SetState(order=4_000_000, state="paid"),
        DeleteOrder(order=4_000_000),
        ChangeProduct(product=4_000_000, name="x", price=Decimal(1)),
        RenameTag(tag=4_000_000, name="x"),
    ],
)
def test_a_row_that_is_not_there_is_named(shop: Shop, change: ShopChange) -> None:
    with pytest.raises(LookupError, match=r"there is no (order|product|line|tag) 4000000 any more"):
        shop.make(change)
