"""What the eight indexes must hold at rest: SQL written by hand for each, ordered and joined by the server.

A query names each value by its path in the document: `billing.country.name`. A path that ends in `?` has a key of the
joined row: when it is NULL there is no such row, and the object is null. A path that ends in `!bool` or `!float` has a
value that the spec gives this type. Arrays are queries of their own, whose `_of` is the key of the row they belong to.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from penstock.testing import DatabaseServer
from tests.support.shop.identity import document_id
from tests.support.shop.rows import Document, RowSource

_CUSTOMER_COUNTRY = "LEFT JOIN country {0}c ON {0}c.id = {0}.country_id"


def expected_documents(server: DatabaseServer, database: str) -> dict[str, dict[str, Document]]:
    """Return the documents of every index by their ids, all as of one moment."""
    with closing(RowSource.connect(server, database)) as rows:
        return {index: documents(rows) for index, documents in _ORACLES.items()}


def _orders(rows: RowSource) -> dict[str, Document]:
    lines = _arrays(
        rows,
        "SELECT l.order_id _of, l.position position, l.quantity quantity, l.price price,"
        " p.id `product.?`, p.sku `product.sku`, p.name `product.name`,"
        " c.code `product.category.?`, c.name `product.category.name`"
        " FROM order_line l LEFT JOIN product p ON p.id = l.product_id LEFT JOIN category c ON c.code = p.category_code"
        " WHERE l.quantity > 0 ORDER BY l.price DESC, l.position, l.order_id",
    )
    documents = rows.documents(
        "SELECT o.id _id, o.order_no number, o.state state, 'web' channel, o.total total, o.total * 1.2 `gross!float`,"
        " o.state IN ('paid', 'shipped') `is_paid!bool`, o.placed_at placed_at, o.paid_at paid_at, o.due due,"
        " b.id `billing.?`, b.first_name `billing.first_name`, b.last_name `billing.last_name`,"
        " bc.id `billing.country.?`, bc.code `billing.country.code`, bc.name `billing.country.name`,"
        " s.id `shipping.?`, s.last_name `shipping.last_name`, s.points `shipping.points`,"
        " sc.id `shipping.country.?`, sc.name `shipping.country.name`,"
        " t.id `store.?`, t.name `store.name`, t.city `store.city`,"
        " w.id `store.owner.?`, w.last_name `store.owner.last_name`,"
        " wc.id `store.owner.country.?`, wc.name `store.owner.country.name`, wc.vat `store.owner.country.vat`"
        " FROM orders o"
        f" LEFT JOIN customer b ON b.id = o.billing_id {_CUSTOMER_COUNTRY.format('b')}"
        f" LEFT JOIN customer s ON s.id = o.shipping_id {_CUSTOMER_COUNTRY.format('s')}"
        " LEFT JOIN store t ON t.id = o.store_id LEFT JOIN customer w ON w.id = t.owner_id"
        f" {_CUSTOMER_COUNTRY.format('w')}"
        " WHERE o.state <> 'draft' AND (o.deleted_at IS NULL OR o.deleted_at = 0)"
    )
    for document in documents:
        document["lines"] = lines[document["_id"]][:3]
    return _by_id(documents)


def _products(rows: RowSource) -> dict[str, Document]:
    tags = _arrays(
        rows,
        "SELECT l.product_id _of, t.name name FROM product_tag l JOIN tag t ON t.id = l.tag_id ORDER BY t.name, t.id",
    )
    sales = _arrays(
        rows,
        "SELECT l.product_id _of, l.quantity quantity, l.price price,"
        " o.id `order.?`, o.order_no `order.order_no`, b.id `order.billing.?`, b.last_name `order.billing.last_name`"
        " FROM order_line l LEFT JOIN orders o ON o.id = l.order_id LEFT JOIN customer b ON b.id = o.billing_id"
        " ORDER BY l.quantity DESC, l.order_id, l.position",
    )
    documents = rows.documents(
        "SELECT p.id _id, p.sku sku, p.name title, p.description description, p.price price, p.weight weight,"
        " p.stock stock, p.state state, p.guid guid, p.attributes attributes, p.updated_at updated_at,"
        " s.id `store.?`, s.name `store.name`, s.city `store.city`,"
        " sc.id `store.country.?`, sc.code `store.country.code`, sc.vat `store.country.vat`,"
        " c.code `category.?`, c.code `category.code`, c.name `category.name`,"
        " d.code `category.parent.?`, d.code `category.parent.code`, d.name `category.parent.name`,"
        " e.code `category.parent.parent.?`, e.name `category.parent.parent.name`"
        f" FROM product p LEFT JOIN store s ON s.id = p.store_id {_CUSTOMER_COUNTRY.format('s')}"
        " LEFT JOIN category c ON c.code = p.category_code LEFT JOIN category d ON d.code = c.parent_code"
        " LEFT JOIN category e ON e.code = d.parent_code"
        " WHERE p.state IN ('active', 'sold out') AND (p.deleted IS NULL OR p.deleted = 0)"
    )
    for document in documents:
        document["tags"] = tags[document["_id"]]
        document["sales"] = sales[document["_id"]][:4]
    return _by_id(documents)


def _customers(rows: RowSource) -> dict[str, Document]:
    products = _arrays(rows, "SELECT store_id _of, sku, stock FROM product WHERE deleted = 0 ORDER BY id DESC")
    lines = _arrays(
        rows,
        "SELECT l.order_id _of, l.quantity quantity, p.id `product.?`, p.name `product.name`"
        " FROM order_line l LEFT JOIN product p ON p.id = l.product_id ORDER BY l.order_id, l.position",
    )
    orders = _arrays(
        rows,
        "SELECT billing_id _of, id _id, order_no, state, placed_at FROM orders"
        " WHERE total > 10 AND state <> 'draft' ORDER BY state, placed_at DESC, id",
    )
    documents = rows.documents(
        "SELECT k.id _id, CONCAT_WS(' ', k.first_name, k.last_name) name, k.points points, k.born born, 7 level,"
        " kc.id `country.?`, kc.name `country.name`, s.id `store.?`, s.name `store.name`, s.id `store._id`"
        f" FROM customer k {_CUSTOMER_COUNTRY.format('k')} LEFT JOIN store s ON s.owner_id = k.id"
    )
    for order in (order for some in orders.values() for order in some):
        order["lines"] = lines[order.pop("_id")]
    for document in documents:
        if document["store"]:
            document["store"]["products"] = products[document["store"].pop("_id")][:2]
        document["orders"] = orders[document["_id"]][:3]
    return _by_id(documents)


def _categories(rows: RowSource) -> dict[str, Document]:
    tags = _arrays(
        rows, "SELECT l.product_id _of, t.name name FROM product_tag l JOIN tag t ON t.id = l.tag_id ORDER BY t.id"
    )
    products = _arrays(
        rows,
        "SELECT c.code _of, p.id _id, p.sku sku, p.price price FROM category c"
        " JOIN product p ON p.category_code = c.code WHERE p.state = 'active' ORDER BY p.price DESC, p.id",
    )
    children = _arrays(
        rows,
        "SELECT c.code _of, d.code code, d.place place FROM category c JOIN category d ON d.parent_code = c.code"
        " ORDER BY d.place, d.name, d.code",
    )
    documents = rows.documents(
        "SELECT c.code _id, c.code code, c.name name, c.place place,"
        " d.code `parent.?`, d.code `parent.code`, d.name `parent.name`"
        " FROM category c LEFT JOIN category d ON d.code = c.parent_code"
    )
    for product in (product for some in products.values() for product in some):
        product["tags"] = tags[product.pop("_id")]
    for child in (child for some in children.values() for child in some):
        child["products"] = products[child["code"]][:3]
    for document in documents:
        document["children"] = children[document["_id"]]
    return _by_id(documents)


def _lines(rows: RowSource) -> dict[str, Document]:
    tags = _arrays(
        rows,
        "SELECT l.product_id _of, t.name name FROM product_tag l JOIN tag t ON t.id = l.tag_id"
        " ORDER BY t.name DESC, t.id",
    )
    documents = rows.documents(
        "SELECT l.order_id _id, l.position _position, l.quantity quantity, l.price price,"
        " l.quantity * l.price `amount!float`,"
        " o.id `order.?`, o.order_no `order.order_no`, o.state `order.state`, o.due `order.due`,"
        " s.id `order.shipping.?`, s.first_name `order.shipping.first_name`, s.last_name `order.shipping.last_name`,"
        " sc.id `order.shipping.country.?`, sc.name `order.shipping.country.name`,"
        " m.position `bundle.?`, m.quantity `bundle.quantity`, m.price `bundle.price`,"
        " p.id `product.?`, p.sku `product.sku`, p.id `product._id`"
        " FROM order_line l LEFT JOIN orders o ON o.id = l.order_id LEFT JOIN customer s ON s.id = o.shipping_id"
        f" {_CUSTOMER_COUNTRY.format('s')} LEFT JOIN order_line m"
        " ON m.order_id = l.order_id AND m.position = l.bundle_position LEFT JOIN product p ON p.id = l.product_id"
        " WHERE l.quantity > 0 AND l.price IS NOT NULL"
    )
    for document in documents:
        if document["product"]:
            document["product"]["tags"] = tags[document["product"].pop("_id")][:2]
    return {document_id(document.pop("_id"), document.pop("_position")): document for document in documents}


def _stock(rows: RowSource) -> dict[str, Document]:
    documents = rows.documents(
        "SELECT id _id, sku, name title, description, price, weight, stock, state, 'goods' kind, guid, attributes,"
        " updated_at FROM product WHERE store_id BETWEEN -3 AND 6 AND (deleted IS NULL OR deleted = 0)"
    )
    return _by_id(documents)


def _codes(rows: RowSource) -> dict[str, Document]:
    return _by_id(rows.documents("SELECT code _id, code, parent_code, name, place FROM category"))


def _positions(rows: RowSource) -> dict[str, Document]:
    documents = rows.documents(
        "SELECT order_id _id, position _position, quantity, price, product_id product FROM order_line"
    )
    return {document_id(document.pop("_id"), document.pop("_position")): document for document in documents}


_ORACLES: Mapping[str, Callable[[RowSource], dict[str, Document]]] = {
    "orders": _orders,
    "products": _products,
    "customers": _customers,
    "categories": _categories,
    "lines": _lines,
    "stock": _stock,
    "codes": _codes,
    "positions": _positions,
}


def _arrays(rows: RowSource, sql: str) -> dict[Any, list[Document]]:
    """Return the elements of arrays, in order, by what they belong to."""
    arrays: defaultdict[Any, list[Document]] = defaultdict(list)
    for element in rows.documents(sql):
        arrays[element.pop("_of")].append(element)
    return arrays


def _by_id(documents: list[Document]) -> dict[str, Document]:
    """Return documents by their ids, which they do not contain."""
    return {document_id(document.pop("_id")): document for document in documents}
