"""A small shop: its tables, a few thousand rows that are the same each time, and the document that is searched."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

SPEC_FILE = Path(__file__).with_name("orders.yml")
SEARCHABLE = ("open", "paid", "shipped")
STATES = (*SEARCHABLE, "draft")

_TABLES = (
    "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
    """CREATE TABLE shop.customer (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) NOT NULL, city VARCHAR(80) NOT NULL)""",
    """CREATE TABLE shop.product (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(120) NOT NULL, price DECIMAL(10, 2) NOT NULL)""",
    """CREATE TABLE shop.tag (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) NOT NULL)""",
    """CREATE TABLE shop.orders (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
        number VARCHAR(20) NOT NULL,
        state ENUM('open', 'paid', 'shipped', 'draft') NOT NULL,
        placed_on DATE NOT NULL,
        customer_id INT UNSIGNED NOT NULL,
        FOREIGN KEY (customer_id) REFERENCES shop.customer (id))""",
    """CREATE TABLE shop.order_line (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
        order_id INT UNSIGNED NOT NULL,
        position INT UNSIGNED NOT NULL,
        product_id INT UNSIGNED NOT NULL,
        quantity INT UNSIGNED NOT NULL,
        FOREIGN KEY (order_id) REFERENCES shop.orders (id) ON DELETE CASCADE,
        FOREIGN KEY (product_id) REFERENCES shop.product (id))""",
    """CREATE TABLE shop.order_tag (
        order_id INT UNSIGNED NOT NULL,
        tag_id INT UNSIGNED NOT NULL,
        PRIMARY KEY (order_id, tag_id),
        FOREIGN KEY (order_id) REFERENCES shop.orders (id) ON DELETE CASCADE,
        FOREIGN KEY (tag_id) REFERENCES shop.tag (id))""",
)
_FIRST_DAY = date(2026, 1, 1)
_ORDERS_PER_INSERT = 500

_CITIES = ("Lisbon", "Porto", "Lyon", "Gent", "Turin", "Graz", "Malmö", "Kraków", "Brno", "Tartu")
_FIRST_NAMES = ("Ana", "Bruno", "Clara", "David", "Elsa", "Filip", "Greta", "Hugo", "Inês", "Jan", "Karin", "Luca")
_LAST_NAMES = ("Almeida", "Berg", "Costa", "Dvořák", "Eklund", "Fontana", "Gruber", "Horák", "Janssens", "Kowalska")
_TAGS = (
    *("birthday", "express", "first order", "fragile", "gift", "insured"),
    *("invoice", "loyal customer", "newsletter", "pick-up", "returned", "wholesale"),
)
_THINGS = (
    *("kettle", "teapot", "bread knife", "cutting board", "saucepan", "pepper mill"),
    *("watering can", "trowel", "hammock", "bird feeder", "garden hose", "lantern"),
    *("desk lamp", "notebook", "fountain pen", "stapler", "monitor stand", "desk chair"),
    *("backpack", "suitcase", "travel mug", "rain jacket", "sleeping bag", "map case"),
    *("ukulele", "metronome", "drum sticks", "guitar strap", "music stand", "harmonica"),
    *("chess set", "playing cards", "dice tower", "puzzle", "marbles", "go board"),
)
_MAKES = ("oak", "steel", "ceramic", "copper", "linen", "bamboo", "walnut", "glass", "wool", "brass", "cork", "slate")
_LOOKS = ("blue", "green", "black", "ivory", "crimson", "plain", "speckled", "striped", "matte", "polished")


@dataclass(frozen=True, slots=True)
class ShopSize:
    """The number of orders and customers of the shop; it has a product of each make and thing."""

    customers: int = 300
    orders: int = 2000


def create_shop(connection: "Connection[Cursor]", size: ShopSize, progress: Callable[[int], None]) -> None:
    """Create the tables and rows of the shop; `progress` is called with the number of orders so far."""
    pick = random.Random(7)  # noqa: S311 - the same shop every time
    with connection.cursor() as cursor:
        for statement in _TABLES:
            cursor.execute(statement)
        customers = [
            (f"{pick.choice(_FIRST_NAMES)} {pick.choice(_LAST_NAMES)}", pick.choice(_CITIES))
            for _ in range(size.customers)
        ]
        cursor.executemany("INSERT INTO shop.customer (name, city) VALUES (%s, %s)", customers)
        products = [
            (f"{pick.choice(_LOOKS)} {make} {thing}", Decimal(pick.randrange(200, 20_000)) / 100)
            for thing in _THINGS
            for make in _MAKES
        ]
        cursor.executemany("INSERT INTO shop.product (name, price) VALUES (%s, %s)", products)
        cursor.executemany("INSERT INTO shop.tag (name) VALUES (%s)", [(name,) for name in _TAGS])
        for first in range(1, size.orders + 1, _ORDERS_PER_INSERT):
            keys = range(first, min(first + _ORDERS_PER_INSERT, size.orders + 1))
            _insert_orders(cursor, pick, keys, size.customers, len(products))
            progress(keys[-1])


def order_number(key: int) -> str:
    """Return the number that people know an order by."""
    return f"A-{1000 + key}"


def _insert_orders(cursor: Cursor, pick: random.Random, keys: range, customers: int, products: int) -> None:
    """Insert orders with their lines and tags."""
    orders: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    tags: list[tuple[Any, ...]] = []
    for key in keys:
        state = pick.choices(STATES, (30, 30, 38, 2))[0]
        day = _FIRST_DAY + timedelta(days=pick.randrange(300))
        orders.append((key, order_number(key), state, day, pick.randrange(1, customers + 1)))
        lines += (
            (key, position, pick.randrange(1, products + 1), pick.choice((1, 1, 1, 2, 3)))
            for position in range(1, pick.choice((2, 2, 3, 4, 5)))
        )
        tags += ((key, tag) for tag in pick.sample(range(1, len(_TAGS) + 1), pick.choice((0, 1, 1, 2, 3))))
    cursor.executemany(
        "INSERT INTO shop.orders (id, number, state, placed_on, customer_id) VALUES (%s, %s, %s, %s, %s)", orders
    )
    cursor.executemany(
        "INSERT INTO shop.order_line (order_id, position, product_id, quantity) VALUES (%s, %s, %s, %s)", lines
    )
    cursor.executemany("INSERT INTO shop.order_tag (order_id, tag_id) VALUES (%s, %s)", tags)
