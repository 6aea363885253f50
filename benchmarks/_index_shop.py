"""The shop whose documents `benchmarks/index.py` follows: products with three joins, and items without any.

A product has a store, a category and two reviews; a known number of products are sold in store 1. An item has the same
fields of its own and no joins. `mark` is a number by which a search finds what was changed.
"""

from pathlib import Path

from benchmarks._scale import scaled
from penstock.testing import DatabaseServer

PRODUCTS, ITEMS = scaled(50_000, 600), scaled(100_000, 600)
FANOUT = scaled(10_000, 200)  # products of store 1
_STORES, _CATEGORIES = 100, 20
_PER_TRANSACTION = 1000
_TABLES = (
    "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE shop.store (id INT PRIMARY KEY, name VARCHAR(40), city VARCHAR(40))",
    "CREATE TABLE shop.category (id INT PRIMARY KEY, name VARCHAR(40))",
    """CREATE TABLE shop.product (id INT PRIMARY KEY, name VARCHAR(60), description VARCHAR(200), price DECIMAL(10,2),
       quantity INT, mark BIGINT, store_id INT, category_id INT, KEY (store_id), KEY (category_id))""",
    "CREATE TABLE shop.review (id INT PRIMARY KEY, product_id INT, stars INT, author VARCHAR(40), KEY (product_id))",
    """CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(60), description VARCHAR(200), price DECIMAL(10,2),
       quantity INT, mark BIGINT)""",
)
_COLUMNS = """seq, CONCAT('product number ', seq), CONCAT(REPEAT('a kettle of copper, ', 1 + seq % 5), seq), seq / 7,
              seq % 100, 0"""
_ROWS = (
    f"INSERT INTO shop.store SELECT seq, CONCAT('store ', seq), CONCAT('city ', seq) FROM seq_1_to_{_STORES}",
    f"INSERT INTO shop.category SELECT seq, CONCAT('category ', seq) FROM seq_1_to_{_CATEGORIES}",
    f"""INSERT INTO shop.product SELECT {_COLUMNS}, IF(seq <= {FANOUT}, 1, 2 + seq % {_STORES - 1}),
        1 + seq % {_CATEGORIES} FROM seq_1_to_{PRODUCTS}""",
    f"""INSERT INTO shop.review SELECT seq, 1 + (seq - 1) DIV 2, 1 + seq % 5, CONCAT('reader ', seq % 1000)
        FROM seq_1_to_{2 * PRODUCTS}""",
    f"INSERT INTO shop.item SELECT {_COLUMNS} FROM seq_1_to_{ITEMS}",
)
_FIELDS = "[name, description, price, quantity, mark]"
_SPECS = {
    "product": f"""
index: product
settings: {{index.refresh_interval: 100ms}}
root:
  table: shop.product
  fields: {_FIELDS}
  joins:
    store:
      table: shop.store
      on: {{store_id: id}}
      fields: [name, {{city: {{column: city, type: keyword}}}}]
    category: {{table: shop.category, on: {{category_id: id}}, fields: [name]}}
    reviews: {{table: shop.review, many: true, on: {{id: product_id}}, order: id, fields: [stars, author]}}
""",
    "item": f"""
index: item
settings: {{index.refresh_interval: 100ms}}
root: {{table: shop.item, fields: {_FIELDS}}}
""",
}


def create_tables(source: DatabaseServer) -> None:
    """Create the tables with their rows."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in _TABLES:
            cursor.execute(statement)
        cursor.execute("USE shop")
        for statement in _ROWS:
            cursor.execute(statement)


def write_spec(name: str, folder: Path) -> Path:
    """Write the document spec of an index to a file."""
    path = folder / f"{name}.yml"
    path.write_text(_SPECS[name], encoding="utf-8")
    return path


def mark_all(source: DatabaseServer, table: str, rows: int, mark: int) -> None:
    """Change every row of a table once, as fast as possible: a thousand rows in each transaction."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for first in range(1, rows + 1, _PER_TRANSACTION):
            cursor.execute(
                f"UPDATE shop.{table} SET mark = {mark}, price = price + 1"
                f" WHERE id BETWEEN {first} AND {first + _PER_TRANSACTION - 1}"
            )


def move_store(source: DatabaseServer, city: str) -> None:
    """Change the store whose products are counted."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE shop.store SET city = %s WHERE id = 1", (city,))
