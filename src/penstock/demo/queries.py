"""What the page asks for besides changes: searches in the index, and the shop as the database has it."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

from pymysql.cursors import Cursor

from penstock.demo.pipeline import DemoPipeline
from penstock.demo.shop import SEARCHABLE, STATES
from penstock.source import connect
from penstock.source.connection import translate_errors

_HITS = 20
_ORDER = """
SELECT o.number, o.state, o.placed_on, customer.name, customer.city
FROM shop.orders AS o JOIN shop.customer AS customer ON customer.id = o.customer_id WHERE o.id = %s"""
# With each product and tag comes the number of documents that a change of it touches.
_LINES = """
SELECT line.id, line.quantity, product.id, product.name, product.price, (
    SELECT COUNT(DISTINCT o.id) FROM shop.orders AS o JOIN shop.order_line AS other ON other.order_id = o.id
    WHERE other.product_id = product.id AND o.state IN %s)
FROM shop.order_line AS line JOIN shop.product AS product ON product.id = line.product_id
WHERE line.order_id = %s ORDER BY line.position, line.id"""
_TAGS = """
SELECT tag.id, tag.name, (
    SELECT COUNT(*) FROM shop.orders AS o JOIN shop.order_tag AS other ON other.order_id = o.id
    WHERE other.tag_id = tag.id AND o.state IN %s)
FROM shop.order_tag AS link JOIN shop.tag AS tag ON tag.id = link.tag_id
WHERE link.order_id = %s ORDER BY tag.name, tag.id"""


class ShopQueries:
    """The searches and reads of the page.

    queries = ShopQueries(pipeline)
    hits = queries.search("copper kettle")["hits"]
    """

    def __init__(self, pipeline: DemoPipeline) -> None:
        self._pipeline = pipeline

    def search(self, text: str) -> dict[str, Any]:
        """Search the index."""
        index = self._pipeline.index
        hits = [{"id": hit.id, **hit.document} for hit in index.search(text, _HITS + 1)]
        return {"documents": index.count(), "hits": hits[:_HITS], "has_more": len(hits) > _HITS}

    def read_numbers(self) -> dict[str, Any]:
        """Return the numbers of the picture."""
        return self._pipeline.numbers.read(self._pipeline.query)

    def list_choices(self) -> dict[str, Any]:
        """Return what an order can be given: products, tags and states."""
        with self._open_cursor() as cursor:
            cursor.execute("SELECT id, name FROM shop.product ORDER BY name, id")
            products = [{"id": key, "name": name} for key, name in cursor.fetchall()]
            cursor.execute("SELECT id, name FROM shop.tag ORDER BY name, id")
            tags = [{"id": key, "name": name} for key, name in cursor.fetchall()]
        return {"products": products, "tags": tags, "states": STATES}

    def load_order(self, key: int) -> dict[str, Any] | None:
        """Return an order from the database, not from the index; None if there is none."""
        with self._open_cursor() as cursor:
            cursor.execute(_ORDER, (key,))
            row = cursor.fetchone()
            if row is None:
                return None
            number, state, placed_on, customer, city = row
            cursor.execute(_LINES, (SEARCHABLE, key))
            lines = [_line(*row) for row in cursor.fetchall()]
            cursor.execute(_TAGS, (SEARCHABLE, key))
            tags = [{"id": tag, "name": name, "documents": documents} for tag, name, documents in cursor.fetchall()]
        head = {"id": key, "number": number, "state": state, "placed_on": placed_on.isoformat()}
        return head | {"customer": {"name": customer, "city": city}, "lines": lines, "tags": tags}

    @contextmanager
    def _open_cursor(self) -> Generator[Cursor]:
        """Give a cursor of a connection of its own."""
        source = self._pipeline.source
        with translate_errors(source), closing(connect(source)) as connection, connection.cursor() as cursor:
            yield cursor


def _line(key: int, quantity: int, product: int, name: str, price: object, documents: int) -> dict[str, Any]:
    """Return a line with its product, and how many documents have that product."""
    return {
        "id": key,
        "quantity": quantity,
        "product": {"id": product, "name": name, "price": str(price), "documents": documents},
    }
