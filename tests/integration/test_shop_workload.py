"""The shop that proves index sync, proved itself: the oracle on cases small enough to check by hand, and the writer."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import yaml

from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll
from tests.support.shop import INDEXES, ShopWriter, compare, create_shop, expected_documents, spec_texts
from tests.support.shop.identity import document_id
from tests.support.shop.schema import TABLES, create_tables
from tests.support.shop.steps import STEPS
from tests.support.shop.writer import SHAPES

SOURCES = ("mariadb", "mysql80")
ROUNDS = 15
LARGE = (1 << 63) + 5
SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+05:30'"
Shop = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def shop(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> Shop:
    """Run statements in an empty shop (`{}` stands for the database) and return all expected documents."""
    name = database(server)
    create_tables(server, name)

    def run(*statements: str) -> dict[str, dict[str, Any]]:
        execute(server, SESSION, f"USE `{name}`", *statements)
        return expected_documents(server, name)

    return run


def test_an_empty_shop_has_no_documents(shop: Shop) -> None:
    assert shop() == {index: {} for index in INDEXES}


def test_each_spec_names_its_index_and_tables_that_exist() -> None:
    specs = {index: yaml.safe_load(text) for index, text in spec_texts("other").items()}
    assert [spec["index"] for spec in specs.values()] == list(INDEXES)
    tables: set[str] = set()

    def visit(part: dict[str, Any]) -> None:
        tables.update(inner["table"] for inner in (part, part.get("through", {})) if inner)
        for join in part.get("joins", {}).values():
            visit(join)

    for spec in specs.values():
        visit(spec["root"])
    assert tables == {f"other.{table}" for table in TABLES}


def test_an_order_has_both_customers_its_store_and_the_dearest_lines(shop: Shop) -> None:
    documents = shop(
        "INSERT INTO country (id, code, name, vat) VALUES (1, 'DE', 'Deutschland', 19), (2, 'FR', 'France', NULL)",
        f"INSERT INTO customer (id, first_name, last_name, points, country_id)"
        f" VALUES (5, NULL, 'Five', 50, 2), ({LARGE}, 'L', 'Large', 3, 1)",
        "INSERT INTO store (id, name, city, owner_id, country_id) VALUES (-1, 'S', NULL, 5, 1)",
        "INSERT INTO category (code, name) VALUES ('Toys', 'T')",
        "INSERT INTO product (id, sku, name, category_code) VALUES"
        " (7, 'k', 'Kite', 'TOYS '), (8, NULL, 'Kettle', 'no')",
        "INSERT INTO orders (id, order_no, state, total, billing_id, shipping_id, store_id, placed_at, due)"
        f" VALUES (1, 'n1', 'paid', 10, {LARGE}, 5, -1, '2024-02-29 01:02:03.004', '2024-02-30'),"
        " (2, 'n2', 'open', 0, 77, NULL, NULL, NULL, '2024-02-29')",
        "INSERT INTO order_line (order_id, position, product_id, quantity, price) VALUES"
        " (1, 1, 7, 1, 5), (1, 2, 8, 1, 6), (1, 3, NULL, 2, 5), (1, 4, 99, 1, NULL), (1, 5, 7, 0, 9)",
    )["orders"]
    assert documents == {
        "1": {
            "number": "n1",
            "state": "paid",
            "channel": "web",
            "total": Decimal("10.00"),
            "gross": 12.0,
            "is_paid": True,
            "placed_at": "2024-02-29T01:02:03.004",
            "paid_at": None,
            "due": None,
            "billing": {"first_name": "L", "last_name": "Large", "country": {"code": "DE", "name": "Deutschland"}},
            "shipping": {"last_name": "Five", "points": 50, "country": {"name": "France"}},
            "store": {
                "name": "S",
                "city": None,
                "owner": {"last_name": "Five", "country": {"name": "France", "vat": None}},
            },
            "lines": [
                {"position": 2, "quantity": 1, "price": Decimal("6.00")}
                | {"product": {"sku": None, "name": "Kettle", "category": None}},
                {"position": 1, "quantity": 1, "price": Decimal("5.00")}
                | {"product": {"sku": "k", "name": "Kite", "category": {"name": "T"}}},
                {"position": 3, "quantity": 2, "price": Decimal("5.00"), "product": None},
            ],
        },
        "2": {
            "number": "n2",
            "state": "open",
            "channel": "web",
            "total": Decimal("0.00"),
            "gross": 0.0,
            "is_paid": False,
            "placed_at": None,
            "paid_at": None,
            "due": "2024-02-29",
            "billing": None,
            "shipping": None,
            "store": None,
            "lines": [],
        },
    }
    assert [document["is_paid"] for document in documents.values()] == [True, False]
    assert all(isinstance(document["is_paid"], bool) for document in documents.values())


def test_orders_leave_and_return_with_where_and_soft_delete(shop: Shop) -> None:
    insert = "INSERT INTO orders (id, order_no, state, billing_id, deleted_at) VALUES"
    rows = "(1, '', 'draft', 1, NULL), (2, '', NULL, 1, NULL), (3, '', 'open', 1, '2024-01-01'), (4, '', 'open', 1, 0)"
    assert set(shop(f"{insert} {rows}")["orders"]) == {"4"}
    assert set(shop("UPDATE orders SET state = 'paid', deleted_at = NULL")["orders"]) == {"1", "2", "3", "4"}
    assert set(shop("UPDATE orders SET id = 40, state = 'draft' WHERE id = 4")["orders"]) == {"1", "2", "3"}


def test_a_product_has_bytes_tags_in_order_and_three_levels_of_categories(shop: Shop) -> None:
    documents = shop(
        "INSERT INTO category (code, parent_code, name) VALUES ('a', 'B', 'A'), ('b', 'c  ', 'B'), ('C', 'a', 'CC')",
        "INSERT INTO product (id, name, price, weight, state, guid, deleted, updated_at, category_code) VALUES"
        " (1, 'one', 1234567890123456.7, 0.1, 'active', x'00ff', 0, '2024-01-01 00:00:00.5', 'A'),"
        " (2, 'two', NULL, NULL, 'sold out', NULL, NULL, NULL, NULL), (3, 'three', 1, 1, 'active', NULL, 1, NULL, 'a'),"
        " (4, 'four', 1, 1, 'hidden', NULL, 0, NULL, 'a'), (5, 'five', 1, 1, NULL, NULL, 0, NULL, 'a')",
        "INSERT INTO tag (id, name) VALUES (1, 'zebra'), (2, NULL), (3, 'Ape'), (4, 'ape'), (5, 'unused')",
        "INSERT INTO product_tag (product_id, tag_id) VALUES (1, 4), (1, 3), (1, 2), (1, 1), (1, 9), (2, 1), (3, 1)",
        "INSERT INTO customer (id, last_name) VALUES (1, 'One')",
        "INSERT INTO orders (id, order_no, billing_id) VALUES (1, 'o1', 1), (2, 'o2', 9)",
        "INSERT INTO order_line (order_id, position, product_id, quantity) VALUES"
        " (2, 1, 1, 3), (1, 2, 1, 3), (1, 1, 1, 3), (3, 1, 1, 9), (3, 2, 1, 1)",
    )["products"]
    assert set(documents) == {"1", "2"}
    product = documents["1"]
    assert product["price"] == Decimal("1234567890123456.7000")
    assert str(product["price"]) == "1234567890123456.7000"
    assert (product["guid"], product["updated_at"]) == ("AP8AAAAAAAAAAAAAAAAAAA==", "2023-12-31T18:30:00.500000Z")
    assert product["category"] == {
        "code": "a",
        "name": "A",
        "parent": {"code": "b", "name": "B", "parent": {"name": "CC"}},
    }
    assert [tag["name"] for tag in product["tags"]] == [None, "Ape", "ape", "zebra"]
    sold = [
        (sale["quantity"], sale["order"] and (sale["order"]["order_no"], sale["order"]["billing"]))
        for sale in product["sales"]
    ]
    assert sold == [(9, None), (3, ("o1", {"last_name": "One"})), (3, ("o1", {"last_name": "One"})), (3, ("o2", None))]
    assert documents["2"]["tags"] == [{"name": "zebra"}]
    assert documents["2"]["sales"] == []


def test_a_customer_has_the_store_they_own_and_arrays_inside_arrays(shop: Shop) -> None:
    documents = shop(
        "INSERT INTO customer (id, first_name, last_name, points, born)"
        f" VALUES ({LARGE}, NULL, 'L', 7, 0), (1, 'a', 'b', 0, NULL)",
        f"INSERT INTO store (id, name, owner_id) VALUES (3, 'mine', {LARGE})",
        "INSERT INTO product (id, sku, name, stock, store_id, deleted) VALUES"
        " (1, 'one', 'p', 1, 3, 0), (2, 'two', 'q', 2, 3, 0), (3, 'three', 'r', 3, 3, 1), (4, 'four', 's', NULL, 3, 0)",
        "INSERT INTO orders (id, order_no, state, total, billing_id, placed_at) VALUES"
        f" (1, 'a', 'shipped', 11, {LARGE}, '2024-01-01'), (2, 'b', 'open', 11, {LARGE}, '2024-01-01'),"
        f" (3, 'c', 'open', 11, {LARGE}, '2024-01-02'), (4, 'd', 'open', 11, {LARGE}, NULL),"
        f" (5, 'e', 'draft', 11, {LARGE}, NULL), (6, 'f', 'open', 10, {LARGE}, NULL)",
        "INSERT INTO order_line (order_id, position, product_id, quantity) VALUES"
        " (2, 9, 1, 1), (2, 1, 3, -1), (4, 1, 9, 1)",
    )["customers"]
    assert documents == {
        str(LARGE): {
            "name": "L",
            "points": 7,
            "born": None,
            "level": 7,
            "country": None,
            "store": {"name": "mine", "products": [{"sku": "four", "stock": None}, {"sku": "two", "stock": 2}]},
            "orders": [
                {"order_no": "c", "state": "open", "placed_at": "2024-01-02T00:00:00.000", "lines": []},
                {"order_no": "b", "state": "open", "placed_at": "2024-01-01T00:00:00.000"}
                | {"lines": [{"quantity": -1, "product": {"name": "r"}}, {"quantity": 1, "product": {"name": "p"}}]},
                {"order_no": "d", "state": "open", "placed_at": None, "lines": [{"quantity": 1, "product": None}]},
            ],
        },
        "1": {"name": "a b", "points": 0, "born": None, "level": 7, "country": None, "store": None, "orders": []},
    }


def test_categories_join_themselves_in_any_spelling(shop: Shop) -> None:
    documents = shop(
        "INSERT INTO category (code, parent_code, name, place) VALUES"
        " ('Root', NULL, 'r', NULL), ('x', 'ROOT', 'same', 2), ('y', 'root', 'Same', 2), ('z', 'root ', 'z', NULL),"
        " ('%', 'x', 'percent', 1), ('', 'none', 'empty', 1)",
        "INSERT INTO product (id, sku, name, state, price, category_code) VALUES"
        " (1, 'a', '', 'active', 1, 'X'), (2, 'b', '', 'active', NULL, 'x '), (3, 'c', '', 'active', 2, 'x'),"
        " (4, 'd', '', 'active', 1, 'x'), (5, 'e', '', 'draft', 9, 'x')",
        "INSERT INTO tag (id, name) VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO product_tag (product_id, tag_id) VALUES (3, 2), (3, 1)",
    )["categories"]
    assert set(documents) == {"Root", "x", "y", "z", "%25", "%"}
    assert documents["%25"]["parent"] == {"code": "x", "name": "same"}
    assert documents["%"] == {"code": "", "name": "empty", "place": 1, "parent": None, "children": []}
    children = documents["Root"]["children"]
    assert [child["code"] for child in children] == ["z", "x", "y"]
    assert children[1]["products"] == [
        {"sku": "c", "price": Decimal("2.0000"), "tags": [{"name": "one"}, {"name": "two"}]},
        {"sku": "a", "price": Decimal("1.0000"), "tags": []},
        {"sku": "d", "price": Decimal("1.0000"), "tags": []},
    ]
    assert set(shop("UPDATE category SET code = 'ROOT' WHERE code = 'root'")["categories"]) >= {"ROOT"}


def test_lines_have_composite_ids_and_the_bundle_they_belong_to(shop: Shop) -> None:
    documents = shop(
        "INSERT INTO order_line (order_id, position, bundle_position, product_id, quantity, price) VALUES"
        " (1, -2, 3, 7, 2, 1.5), (1, 3, NULL, NULL, 0, 4), (2, 3, 4, NULL, 1, 4), (2, 4, NULL, NULL, 1, NULL)",
        "INSERT INTO product (id, sku, name) VALUES (7, 'seven', '')",
        "INSERT INTO tag (id, name) VALUES (1, 'a'), (2, 'b'), (3, NULL)",
        "INSERT INTO product_tag (product_id, tag_id) VALUES (7, 1), (7, 2), (7, 3)",
        "INSERT INTO orders (id, order_no, state, billing_id, shipping_id, due) VALUES"
        " (1, 'n', 'draft', 1, 4, '2024-01-31')",
        "INSERT INTO customer (id, last_name) VALUES (4, 'Four')",
    )["lines"]
    assert documents == {
        "1:-2": {
            "quantity": 2,
            "price": Decimal("1.50"),
            "amount": 3.0,
            "order": {"order_no": "n", "state": "draft", "due": "2024-01-31"}
            | {"shipping": {"first_name": None, "last_name": "Four", "country": None}},
            "bundle": {"quantity": 0, "price": Decimal("4.00")},
            "product": {"sku": "seven", "tags": [{"name": "b"}, {"name": "a"}]},
        },
        "2:3": {
            "quantity": 1,
            "price": Decimal("4.00"),
            "amount": 4.0,
            "order": None,
            "bundle": {"quantity": 1, "price": None},
            "product": None,
        },
    }


def test_one_seed_does_every_kind_of_step_and_shape(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    create_shop(server, name)
    writer = ShopWriter(server, name, seed=5, large_rows=30, columns=2)
    wanted = {*STEPS, *SHAPES, "add_column"}
    for _ in range(ROUNDS):
        if wanted <= writer.done.keys():
            break
        writer.run(transactions=100)
    assert wanted - writer.done.keys() == set()
    assert writer.done["add_column"] == 2
    assert writer.refused
    documents = expected_documents(server, name)
    assert all(len(documents[index]) > 5 for index in INDEXES)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA RECOVER")
        assert not [xid for *_, xid in cursor.fetchall() if name in str(xid)]


def test_an_error_of_the_work_comes_out_of_a_writer_in_the_background(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    create_shop(server, name)
    writer = ShopWriter(server, name, seed=6)
    writer.start()
    execute(server, f"DROP TABLE `{name}`.product_tag")
    with pytest.raises(Exception, match="product_tag"):
        writer.finish(at_least_s=60)


@pytest.mark.mariadb
def test_a_writer_that_reconnects_survives_a_crash_of_the_server_and_leaves_nothing_prepared(
    private_server: Callable[..., Any],
) -> None:
    server = private_server("mariadb")
    create_shop(server, "shop")
    writer = ShopWriter(server, "shop", seed=7, reconnect_timeout_s=60.0)
    writer.start()
    assert poll(lambda: writer.transactions > 50, 60)
    server.kill()
    server.start()
    assert poll(lambda: writer.reconnects > 0, 60)
    before = writer.transactions
    assert poll(lambda: writer.transactions > before + 20, 60)
    writer.finish()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA RECOVER")
        assert cursor.fetchall() == ()


def test_differences_are_named_by_kind() -> None:
    expected = {"1": {"a": Decimal("35.00"), "b": [{"c": 1}]}, "2": {"a": None}, "3": {"x": 0.1}, "4": {"x": True}}
    same = [("1", '{"a": 35.00, "b": [{"c": 1}]}'), ("2", '{"a": null}'), ("3", '{"x": 1e-1}'), ("4", '{"x": true}')]
    assert not compare(expected, same)
    wrong = [("1", '{"a": 35.0, "b": []}'), ("2", "{}"), ("2", '{"a": null}'), ("4", '{"x": 1}'), ("5", '{"a": 1}')]
    differences = compare(expected, wrong)
    assert (differences.missing, differences.stale, differences.extra) == (["3"], ["1", "2", "4"], ["2", "5"])
    assert "stale '1': .a is 35.0, expected 35.00" in str(differences)


def test_ids_are_escaped_and_never_too_long() -> None:
    assert [document_id(key) for key in (7, -1, LARGE, "a:b", "50%", "", "%", "%25", " ")] == [
        *("7", "-1", str(LARGE), "a:b", "50%", "%", "%25", "%2525", " ")
    ]
    assert document_id(1, "a:b%", "") == "1:a%3Ab%25:"
    assert document_id("x" * 512) == "x" * 512
    assert document_id("x" * 513).startswith("%#")
    assert len(document_id("🎁" * 150)) == 66
