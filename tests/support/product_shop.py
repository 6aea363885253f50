"""A shop with products in stores and categories: its tables, rows that are the same each time, and the document of a
product."""

import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.document import DocumentSpec

STATES = ("on_sale", "sold_out", "hidden")

SPEC = DocumentSpec.model_validate(
    {
        "index": "product",
        "root": {
            "table": "shop.product",
            "fields": ["name", "description", "price", "state", "updated_at"],
            "where": {"state": ["on_sale", "sold_out"]},
            "joins": {
                "store": {"table": "shop.store", "on": {"store_id": "id"}, "fields": ["name", "city"]},
                "category": {"table": "shop.category", "on": {"category_id": "id"}, "fields": ["name"]},
            },
        },
    }
)

_TABLES = (
    "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
    """CREATE TABLE shop.store (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) NOT NULL, city VARCHAR(80) NOT NULL)""",
    """CREATE TABLE shop.category (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) NOT NULL)""",
    """CREATE TABLE shop.product (
        id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
        name VARCHAR(120) NOT NULL,
        description TEXT,
        price DECIMAL(10, 2) NOT NULL,
        state ENUM('on_sale', 'sold_out', 'hidden') NOT NULL DEFAULT 'on_sale',
        store_id INT UNSIGNED NOT NULL,
        category_id INT UNSIGNED NOT NULL,
        updated_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
        KEY (store_id), KEY (category_id))""",
)

_CITIES = ("Lisbon", "Porto", "Lyon", "Gent", "Turin", "Graz", "Malmö", "Kraków", "Brno", "Tartu")
_OWNERS = ("Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Harbor")
_THINGS = {
    "Kitchen": ("kettle", "teapot", "bread knife", "cutting board", "saucepan", "pepper mill"),
    "Garden": ("watering can", "trowel", "hammock", "bird feeder", "garden hose", "lantern"),
    "Office": ("desk lamp", "notebook", "fountain pen", "stapler", "monitor stand", "desk chair"),
    "Travel": ("backpack", "suitcase", "travel mug", "rain jacket", "sleeping bag", "map case"),
    "Music": ("ukulele", "metronome", "drum sticks", "guitar strap", "music stand", "harmonica"),
    "Games": ("chess set", "playing cards", "dice tower", "puzzle", "marbles", "go board"),
}
_MAKES = ("oak", "steel", "ceramic", "copper", "linen", "bamboo", "walnut", "glass", "wool", "brass", "cork", "slate")
_LOOKS = ("blue", "green", "black", "ivory", "crimson", "plain", "speckled", "striped", "matte", "polished")


@dataclass(frozen=True, slots=True)
class ShopSize:
    """The number of products and stores in the shop."""

    stores: int
    products: int


def create_shop(connection: "Connection[Cursor]", size: ShopSize) -> None:
    """Create the tables and rows of the shop."""
    pick = random.Random(7)
    with connection.cursor() as cursor:
        for statement in _TABLES:
            cursor.execute(statement)
        stores = [(f"{pick.choice(_OWNERS)} {number}", pick.choice(_CITIES)) for number in range(1, size.stores + 1)]
        cursor.executemany("INSERT INTO shop.store (name, city) VALUES (%s, %s)", stores)
        cursor.executemany("INSERT INTO shop.category (name) VALUES (%s)", [(name,) for name in _THINGS])
        cursor.executemany(
            "INSERT INTO shop.product (name, description, price, state, store_id, category_id)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [_random_product(pick, size) for _ in range(size.products)],
        )


def _random_product(pick: random.Random, size: ShopSize) -> tuple[Any, ...]:
    """Return the values of a random product."""
    category = pick.randrange(len(_THINGS))
    thing = pick.choice(list(_THINGS.values())[category])
    make, look = pick.choice(_MAKES), pick.choice(_LOOKS)
    return (
        f"{look} {make} {thing}",
        f"A {look} {thing} made of {make}, for everyday use.",
        Decimal(pick.randrange(200, 20_000)) / 100,
        pick.choices(STATES, (90, 8, 2))[0],
        pick.randrange(1, size.stores + 1),
        category + 1,
    )
