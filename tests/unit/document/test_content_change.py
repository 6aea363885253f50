"""Which statements change rows that the log does not have: the table of the module, statement by statement."""

import pytest

from penstock.document.changes import TableStatement
from penstock.document.content_change import find_changed_tables
from penstock.model import TableName
from tests.support.document_shop import CUSTOMER, CUSTOMER_JOIN, ORDERS, graph_of

USED = graph_of({"customer": CUSTOMER_JOIN}).used_columns
ALL = set(USED)

STATEMENTS = [
    ("TRUNCATE TABLE orders", {ORDERS}),
    ("ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id, number)", {ORDERS}),
    ("ALTER TABLE orders DROP PRIMARY KEY", {ORDERS}),
    ("ALTER TABLE orders ADD CONSTRAINT pk PRIMARY KEY (id)", {ORDERS}),
    ("ALTER TABLE orders ADD UNIQUE KEY (number)", set()),
    ("ALTER IGNORE TABLE orders ADD UNIQUE KEY (number)", {ORDERS}),
    ("alter online ignore table orders ADD UNIQUE KEY (number)", {ORDERS}),
    ("ALTER TABLE orders DROP FOREIGN KEY f", {ORDERS}),
    ("ALTER TABLE orders DROP CONSTRAINT f", {ORDERS}),
    ("ALTER TABLE orders DROP SYSTEM VERSIONING", {ORDERS}),
    ("ALTER TABLE orders ADD SYSTEM VERSIONING", {ORDERS}),
    ("TRUNCATE orders", {ORDERS}),
    ("truncate table `shop`.`orders`", {ORDERS}),
    ("TRUNCATE TABLE other", set()),
    ("TRUNCATE TABLE elsewhere.orders", set()),
    ("/* a comment */ TRUNCATE TABLE orders", {ORDERS}),
    ("DROP TABLE orders", {ORDERS}),
    ("DROP TABLE IF EXISTS other, customer", {CUSTOMER}),
    ("DROP TABLE orders, customer", {ORDERS, CUSTOMER}),
    ("DROP TEMPORARY TABLE orders", set()),
    ("DROP VIEW orders", set()),
    ("DROP DATABASE shop", ALL),
    ("DROP DATABASE other", set()),
    ("RENAME TABLE orders TO old", {ORDERS}),
    ("RENAME TABLE orders TO old, _orders_new TO orders", {ORDERS}),
    ("RENAME TABLE a TO b", set()),
    ("RENAME TABLE elsewhere.t TO shop.customer", {CUSTOMER}),
    ("CREATE TABLE orders (id INT PRIMARY KEY)", {ORDERS}),
    ("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)", set()),
    ("CREATE TABLE other (id INT PRIMARY KEY)", set()),
    ("CREATE OR REPLACE TABLE orders (id INT PRIMARY KEY)", {ORDERS}),
    ("CREATE TABLE orders LIKE other", {ORDERS}),
    ("CREATE TEMPORARY TABLE orders (id INT)", set()),
    ("CREATE INDEX i ON orders (number)", set()),
    ("DROP INDEX i ON orders", set()),
    ("CREATE VIEW v AS SELECT * FROM orders", set()),
    ("ALTER TABLE orders ADD COLUMN extra INT", set()),
    ("ALTER TABLE orders ADD COLUMN extra INT DEFAULT 1 FIRST, ADD INDEX (extra)", set()),
    ("ALTER TABLE orders ADD INDEX (number)", set()),
    ("ALTER TABLE orders COMMENT = 'number'", set()),
    ("ALTER TABLE orders ENGINE = InnoDB", set()),
    ("ALTER TABLE orders MODIFY number VARCHAR(5)", {ORDERS}),
    ("ALTER TABLE orders MODIFY NUMBER INT", {ORDERS}),
    ("ALTER TABLE orders MODIFY note TEXT", set()),
    ("ALTER TABLE orders CHANGE number reference VARCHAR(20)", {ORDERS}),
    ("ALTER TABLE orders CHANGE note remark TEXT", set()),
    ("ALTER TABLE orders RENAME COLUMN number TO n", {ORDERS}),
    ("ALTER TABLE orders DROP COLUMN number", {ORDERS}),
    ("ALTER TABLE orders DROP COLUMN note", set()),
    ("ALTER TABLE orders DROP note, DROP customer_id", {ORDERS}),
    ("ALTER TABLE other DROP COLUMN number", set()),
    ("ALTER TABLE orders CONVERT TO CHARACTER SET latin1", {ORDERS}),
    ("ALTER TABLE orders RENAME TO old", {ORDERS}),
    ("ALTER TABLE _orders_new RENAME TO orders", {ORDERS}),
    ("ALTER TABLE orders DROP PARTITION p0", {ORDERS}),
    ("ALTER TABLE orders TRUNCATE PARTITION p0, p1", {ORDERS}),
    ("ALTER TABLE orders EXCHANGE PARTITION p0 WITH TABLE other", {ORDERS}),
    ("ALTER TABLE orders CHANGE nr number VARCHAR(20)", {ORDERS}),
    ("ALTER TABLE orders RENAME COLUMN nr TO Number", {ORDERS}),
    ("ALTER TABLE orders RENAME COLUMN nr TO note", set()),
    ("ALTER TABLE orders ADD COLUMN number VARCHAR(20) AFTER id", {ORDERS}),
    ("ALTER TABLE other EXCHANGE PARTITION p0 WITH TABLE customer", {CUSTOMER}),
    ("ALTER TABLE orders DISCARD TABLESPACE", {ORDERS}),
    ("ALTER TABLE orders IMPORT TABLESPACE", {ORDERS}),
    ("ALTER TABLE orders CONVERT PARTITION p0 TO TABLE customer", {ORDERS, CUSTOMER}),
    ("ALTER TABLE orders ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", set()),
    ("ALTER TABLE orders nonsense (((", {ORDERS}),
    ("CREATE USER x", set()),
    ("GRANT SELECT ON shop.orders TO x", set()),
    ("ANALYZE TABLE orders", set()),
]


@pytest.mark.parametrize(("text", "tables"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_tables_whose_rows_may_be_others(text: str, tables: set[TableName]) -> None:
    assert find_changed_tables(TableStatement("shop.first", text, 1), USED) == tables


def test_a_table_that_was_missing_is_there_after_its_create() -> None:
    text = TableStatement("shop.orders", "CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)", 1)
    assert find_changed_tables(text, USED, frozenset([ORDERS])) == {ORDERS}
    assert find_changed_tables(text, USED, frozenset([CUSTOMER])) == set()


def test_names_without_a_database_are_of_the_database_that_was_used() -> None:
    assert find_changed_tables(TableStatement("elsewhere.orders", "TRUNCATE orders", 1), USED) == set()
    assert find_changed_tables(TableStatement("shop", "TRUNCATE orders", 1), USED) == {ORDERS}


def test_what_cannot_be_read_changes_the_table_that_it_is_logged_for() -> None:
    text = "ALTER TABLE `or``ders` nonsense ((("
    assert find_changed_tables(TableStatement("shop.orders", text, 1), USED) == {ORDERS}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUNCATE TABLE ORDERS", {ORDERS}),
        ("RENAME TABLE Shop.A TO Shop.Customer", {CUSTOMER}),
        ("ALTER TABLE Orders MODIFY Number INT", {ORDERS}),
        ("ALTER TABLE Orders MODIFY Note TEXT", set()),
        ("ALTER TABLE Orders DROP FOREIGN KEY f", {ORDERS}),
        ("ALTER TABLE other RENAME TO CUSTOMER", {CUSTOMER}),
        ("CREATE TABLE IF NOT EXISTS Customer (id INT PRIMARY KEY)", {CUSTOMER}),
        ("DROP DATABASE SHOP", ALL),
    ],
)
def test_names_are_the_same_in_any_letters_where_the_server_takes_them_so(text: str, expected: set[TableName]) -> None:
    statement = TableStatement("Shop.x", text, 1)
    assert find_changed_tables(statement, USED, frozenset({CUSTOMER}), folds_names=True) == expected
    assert find_changed_tables(statement, USED, frozenset({CUSTOMER})) == set()
