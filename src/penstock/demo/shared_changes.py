"""Changes of rows that many orders share: products and tags."""

from decimal import Decimal
from typing import Any, ClassVar, Literal

from pymysql.cursors import Cursor

from penstock.demo.change import (
    UNCHANGED,
    AppliedChange,
    Document,
    Key,
    Name,
    Price,
    ShopChange,
    find_product,
    find_tag,
)
from penstock.demo.shop import SEARCHABLE

_RAISE = Decimal("1.01")


class ChangeProduct(ShopChange):
    """A product gets another name or price, and with it every order that has a line with it."""

    title: ClassVar[str] = "change a product"
    kind: Literal["change_product"] = "change_product"
    product: Key
    name: Name
    price: Price

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Update the product."""
        before = find_product(cursor, self.product)
        values = (self.name, self.price, self.product)
        if not cursor.execute("UPDATE shop.product SET name = %s, price = %s WHERE id = %s", values):
            return AppliedChange(UNCHANGED)
        text = f"{self.name} costs {self.price}"
        if before != self.name:
            text = f"{before} is now {self.name} and costs {self.price}"
        orders = _find_orders(
            cursor, "id IN (SELECT order_id FROM shop.order_line WHERE product_id = %s)", self.product
        )
        return AppliedChange(text, orders, self._is_shown)

    def _is_shown(self, document: Document | None) -> bool:
        if document is None:  # another change has deleted it since
            return True
        products = [product for product in _products(document) if product["id"] == self.product]
        return all(product["name"] == self.name and _price(product) == self.price for product in products)


class RenameTag(ShopChange):
    """A tag gets another name, and with it every order that has the tag."""

    title: ClassVar[str] = "rename a tag"
    kind: Literal["rename_tag"] = "rename_tag"
    tag: Key
    name: Name

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Update the tag."""
        before = find_tag(cursor, self.tag)
        if not cursor.execute("UPDATE shop.tag SET name = %s WHERE id = %s", (self.name, self.tag)):
            return AppliedChange(UNCHANGED)
        orders = _find_orders(cursor, "id IN (SELECT order_id FROM shop.order_tag WHERE tag_id = %s)", self.tag)
        return AppliedChange(f"the tag {before} is now {self.name}", orders, self._is_shown)

    def _is_shown(self, document: Document | None) -> bool:
        tags: list[dict[str, Any]] = [] if document is None else document["tags"]
        return all(tag["name"] == self.name for tag in tags if tag["id"] == self.tag)


class RaisePrices(ShopChange):
    """All products get one percent dearer, in one statement that touches every order."""

    title: ClassVar[str] = "raise all prices"
    kind: Literal["raise_prices"] = "raise_prices"

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Update all products."""
        products = cursor.execute("UPDATE shop.product SET price = LEAST(price * %s + 0.01, 99999.99)", (_RAISE,))
        cursor.execute("SELECT id, price FROM shop.product")
        prices: dict[int, Decimal] = dict(cursor.fetchall())

        def is_shown(document: Document | None) -> bool:
            return document is None or all(_price(product) == prices[product["id"]] for product in _products(document))

        orders = _find_orders(cursor, "id IN (SELECT order_id FROM shop.order_line)")
        return AppliedChange(f"{products} products cost 1 % more", orders, is_shown)


def _find_orders(cursor: Cursor, condition: str, *values: Any) -> tuple[int, ...]:
    """Return the searchable orders that meet a condition."""
    cursor.execute(f"SELECT id FROM shop.orders WHERE state IN %s AND {condition}", (SEARCHABLE, *values))
    return tuple(key for (key,) in cursor.fetchall())


def _products(document: Document) -> list[dict[str, Any]]:
    """Return the products in the lines of an order."""
    return [line["product"] for line in document["lines"]]


def _price(product: dict[str, Any]) -> Decimal:
    """Return the price of a product in a document."""
    return Decimal(str(product["price"]))
