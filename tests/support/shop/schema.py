"""The tables of the shop, and rows to begin with.

What matters about them: keys that are BIGINT UNSIGNED above 2**63, a text key whose collation ignores case, accents and
trailing spaces (`category.code`, to which rows refer in any spelling), a composite key, and rows that refer to rows
that do not exist. There are no foreign keys, so that every change is in the log.
"""

import random
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.testing import DatabaseServer
from tests.support.shop import values

CODE = "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
BINARY_TEXT = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

TABLES = {
    "country": f"""
        id SMALLINT UNSIGNED PRIMARY KEY,
        code CHAR(2) {BINARY_TEXT} NOT NULL,
        name VARCHAR(60) NOT NULL,
        vat DECIMAL(5, 2) NULL,
        remark VARCHAR(60) NULL""",
    "customer": """
        id BIGINT UNSIGNED PRIMARY KEY,
        first_name VARCHAR(80) NULL,
        last_name VARCHAR(80) NOT NULL,
        points BIGINT UNSIGNED NOT NULL DEFAULT 0,
        born DATE NULL,
        country_id SMALLINT UNSIGNED NULL,
        remark VARCHAR(60) NULL,
        KEY (country_id)""",
    "store": """
        id INT PRIMARY KEY,
        name VARCHAR(80) NOT NULL,
        city VARCHAR(80) NULL,
        owner_id BIGINT UNSIGNED NULL,
        country_id SMALLINT UNSIGNED NULL,
        remark VARCHAR(60) NULL,
        UNIQUE KEY (owner_id), KEY (country_id)""",
    "category": f"""
        code {CODE} PRIMARY KEY,
        parent_code {CODE} NULL,
        name VARCHAR(80) NOT NULL,
        place INT NULL,
        remark VARCHAR(60) NULL,
        KEY (parent_code)""",
    "product": f"""
        id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        sku VARCHAR(40) {BINARY_TEXT} NULL,
        name VARCHAR(120) NOT NULL,
        description TEXT NULL,
        price DECIMAL(20, 4) NULL,
        weight DOUBLE NULL,
        stock INT NULL,
        state ENUM('draft', 'active', 'sold out', 'hidden') NULL,
        guid BINARY(16) NULL,
        attributes JSON NULL,
        deleted TINYINT NULL DEFAULT 0,
        updated_at TIMESTAMP(6) NULL DEFAULT NULL,
        category_code {CODE} NULL,
        store_id INT NULL,
        remark VARCHAR(60) NULL,
        KEY (category_code), KEY (store_id)""",
    "orders": """
        id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        order_no VARCHAR(20) NOT NULL,
        state ENUM('draft', 'open', 'paid', 'shipped') NULL,
        total DECIMAL(14, 2) NOT NULL DEFAULT 0,
        billing_id BIGINT UNSIGNED NOT NULL,
        shipping_id BIGINT UNSIGNED NULL,
        store_id INT NULL,
        placed_at DATETIME(3) NULL,
        paid_at TIMESTAMP NULL DEFAULT NULL,
        due DATE NULL,
        deleted_at DATETIME NULL,
        remark VARCHAR(60) NULL,
        KEY (billing_id), KEY (shipping_id), KEY (store_id)""",
    "order_line": """
        order_id INT UNSIGNED NOT NULL,
        position SMALLINT NOT NULL,
        bundle_position SMALLINT NULL,
        product_id INT UNSIGNED NULL,
        quantity INT NOT NULL,
        price DECIMAL(10, 2) NULL,
        remark VARCHAR(60) NULL,
        PRIMARY KEY (order_id, position), KEY (order_id, bundle_position), KEY (product_id)""",
    "tag": """
        id TINYINT UNSIGNED PRIMARY KEY,
        name VARCHAR(40) NULL,
        remark VARCHAR(60) NULL""",
    "product_tag": """
        product_id INT UNSIGNED NOT NULL,
        tag_id TINYINT UNSIGNED NOT NULL,
        remark VARCHAR(60) NULL,
        PRIMARY KEY (product_id, tag_id), KEY (tag_id)""",
}
DEFAULT_TEXT = "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
_ROWS_PER_INSERT = 500


@dataclass(frozen=True, slots=True)
class ShopSize:
    """How many rows the shop begins with."""

    customers: int = 60
    products: int = 80
    orders: int = 120


def create_tables(server: DatabaseServer, database: str) -> None:
    """Create the tables of the shop, empty, in a database that may exist."""
    with closing(server.connect(charset="utf8mb4")) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{database}`")
        for table, columns in TABLES.items():
            cursor.execute(create_statement(database, table, columns))


def create_statement(database: str, table: str, columns: str | None = None) -> str:
    """Return the CREATE TABLE of a table."""
    return f"CREATE TABLE `{database}`.`{table}` ({columns or TABLES[table]}) ENGINE = InnoDB {DEFAULT_TEXT}"


def column_names(table: str) -> list[str]:
    """Return the columns of a table in their order."""
    words = [line.split()[0] for line in TABLES[table].splitlines() if line.strip()]
    return [word for word in words if word not in {"PRIMARY", "UNIQUE", "KEY"}]


def create_shop(server: DatabaseServer, database: str, size: ShopSize | None = None, seed: int = 1) -> None:
    """Create the tables with rows in them, the same ones for the same seed."""
    create_tables(server, database)
    pick, size = random.Random(seed), size or ShopSize()
    with closing(server.connect(charset="utf8mb4", autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute(values.SESSION_MODE)
        for table, rows in _first_rows(pick, size).items():
            for start in range(0, len(rows), _ROWS_PER_INSERT):
                insert_rows(cursor, f"`{database}`.`{table}`", rows[start : start + _ROWS_PER_INSERT])
        connection.commit()


def drop_shop(server: DatabaseServer, database: str) -> None:
    """Drop the database of the shop, if it is there."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS `{database}`")


def insert_rows(cursor: Any, table: str, rows: Sequence[dict[str, Any]], verb: str = "INSERT") -> None:
    """Insert rows with the same columns by one statement."""
    columns = ", ".join(f"`{name}`" for name in rows[0])
    marks = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
    cursor.execute(f"{verb} INTO {table} ({columns}) VALUES {marks}", [value for row in rows for value in row.values()])


def _first_rows(pick: random.Random, size: ShopSize) -> dict[str, list[dict[str, Any]]]:
    """Return the first rows of each table, by table."""
    lines = (values.new_lines(pick, order, pick.randrange(5)) for order in range(1, size.orders + 1))
    return {
        "country": [values.new_country(pick, number) for number in values.COUNTRIES],
        "customer": [values.new_customer(pick, key) for key in _some_customers(pick, size.customers)],
        "store": [values.new_store(pick, number) for number in values.STORES],
        "category": [values.new_category(pick, code) for code in values.CATEGORIES],
        "product": [values.new_product(pick) for _ in range(size.products)],
        "orders": [values.new_order(pick) for _ in range(size.orders)],
        "order_line": [line for some in lines for line in some],
        "tag": [values.new_tag(pick, number) for number in values.TAGS],
        "product_tag": [
            {"product_id": product, "tag_id": tag}
            for product in range(1, size.products + 1)
            for tag in sorted(pick.sample(values.TAGS, pick.choice((0, 1, 2, 5))))
        ],
    }


def _some_customers(pick: random.Random, count: int) -> Iterable[int]:
    """Return as many keys of customers, half of them above 2**63."""
    numbers = range(1, count + 1)
    return [number if pick.random() < 0.5 else values.LARGE_KEY + number for number in numbers]
