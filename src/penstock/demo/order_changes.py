"""Changes that touch one order: the order itself, its lines, its tags."""

from typing import ClassVar, Literal

from pydantic import field_validator
from pymysql.cursors import Cursor

from penstock.demo.change import (
    AppliedChange,
    Document,
    Key,
    Quantity,
    ShopChange,
    find_line,
    find_order,
    find_product,
    find_tag,
)
from penstock.demo.shop import SEARCHABLE, STATES, order_number


class NewOrder(ShopChange):
    """A new order of some customer, with two lines and a tag."""

    title: ClassVar[str] = "new order"
    kind: Literal["new_order"] = "new_order"

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Insert the order, its lines and its tag."""
        cursor.execute(
            "INSERT INTO shop.orders (number, state, placed_on, customer_id)"
            " SELECT '', 'open', CURRENT_DATE, id FROM shop.customer ORDER BY RAND() LIMIT 1"
        )
        key = cursor.lastrowid
        number = order_number(key)
        cursor.execute("UPDATE shop.orders SET number = %s WHERE id = %s", (number, key))
        cursor.execute(
            "INSERT INTO shop.order_line (order_id, position, product_id, quantity)"
            " SELECT %s, ROW_NUMBER() OVER (ORDER BY id), id, 1"
            " FROM (SELECT id FROM shop.product ORDER BY RAND() LIMIT 2) AS product",
            (key,),
        )
        cursor.execute(
            "INSERT INTO shop.order_tag (order_id, tag_id) SELECT %s, id FROM shop.tag ORDER BY RAND() LIMIT 1", (key,)
        )
        return AppliedChange(f"order {number} is new", (key,), lambda document: document is not None, key)


class SetState(ShopChange):
    """An order gets another state; as a draft it is not searchable."""

    title: ClassVar[str] = "set a state"
    kind: Literal["set_state"] = "set_state"
    order: Key
    state: str

    @field_validator("state")
    @classmethod
    def _check_state(cls, state: str) -> str:
        if state not in STATES:
            raise ValueError(f"a state is one of {', '.join(STATES)}")
        return state

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Update the order."""
        order = find_order(cursor, self.order)
        if not cursor.execute("UPDATE shop.orders SET state = %s WHERE id = %s", (self.state, self.order)):
            return order.keep()
        if self.state in SEARCHABLE:
            text = f"order {order.number} is {self.state}"
            return AppliedChange(text, (self.order,), self._is_shown, self.order)
        text = f"order {order.number} is a {self.state} and gone from the index"
        return AppliedChange(text, (self.order,), lambda document: document is None, self.order)

    def _is_shown(self, document: Document | None) -> bool:
        return document is not None and document["state"] == self.state


class AddLine(ShopChange):
    """An order gets another line."""

    title: ClassVar[str] = "add a line"
    kind: Literal["add_line"] = "add_line"
    order: Key
    product: Key
    quantity: Quantity = 1

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Insert the line behind the others."""
        order, name = find_order(cursor, self.order), find_product(cursor, self.product)
        cursor.execute(
            "INSERT INTO shop.order_line (order_id, position, product_id, quantity)"
            " SELECT %s, COALESCE(MAX(position), 0) + 1, %s, %s FROM shop.order_line WHERE order_id = %s",
            (self.order, self.product, self.quantity, self.order),
        )
        line = cursor.lastrowid
        text = f"order {order.number} has {self.quantity} × {name}"
        return order.apply_change(text, lambda document: _has(document, "lines", line))


class RemoveLine(ShopChange):
    """An order loses a line."""

    title: ClassVar[str] = "remove a line"
    kind: Literal["remove_line"] = "remove_line"
    line: Key

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Delete the line."""
        key, name = find_line(cursor, self.line)
        order = find_order(cursor, key)
        if not cursor.execute("DELETE FROM shop.order_line WHERE id = %s", (self.line,)):
            return order.keep()
        text = f"order {order.number} is without {name}"
        return order.apply_change(text, lambda document: not _has(document, "lines", self.line))


class PutOnTag(ShopChange):
    """An order gets a tag, by a row of the link table."""

    title: ClassVar[str] = "put on a tag"
    kind: Literal["put_on_tag"] = "put_on_tag"
    order: Key
    tag: Key

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Insert the row of the link table, unless it is there."""
        order, name = find_order(cursor, self.order), find_tag(cursor, self.tag)
        if not cursor.execute("INSERT IGNORE INTO shop.order_tag VALUES (%s, %s)", (self.order, self.tag)):
            return order.keep()
        text = f"order {order.number} has the tag {name}"
        return order.apply_change(text, lambda document: _has(document, "tags", self.tag))


class TakeOffTag(ShopChange):
    """An order loses a tag, by a row of the link table."""

    title: ClassVar[str] = "take off a tag"
    kind: Literal["take_off_tag"] = "take_off_tag"
    order: Key
    tag: Key

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Delete the row of the link table."""
        order, name = find_order(cursor, self.order), find_tag(cursor, self.tag)
        statement = "DELETE FROM shop.order_tag WHERE order_id = %s AND tag_id = %s"
        if not cursor.execute(statement, (self.order, self.tag)):
            return order.keep()
        text = f"order {order.number} is without the tag {name}"
        return order.apply_change(text, lambda document: not _has(document, "tags", self.tag))


class DeleteOrder(ShopChange):
    """An order is deleted; a foreign key deletes its lines and tags, which is not in the log."""

    title: ClassVar[str] = "delete an order"
    kind: Literal["delete_order"] = "delete_order"
    order: Key

    def apply(self, cursor: Cursor) -> AppliedChange:
        """Delete the order."""
        order = find_order(cursor, self.order)
        cursor.execute("DELETE FROM shop.orders WHERE id = %s", (self.order,))
        return order.apply_change(f"order {order.number} is deleted", lambda document: document is None)


def _has(document: Document | None, field: str, key: int) -> bool:
    """Tell whether an array of a document has the object of this key."""
    return document is not None and any(item["id"] == key for item in document[field])
