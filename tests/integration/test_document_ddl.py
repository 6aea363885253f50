"""Statements that change rows without logging them are followed: the index equals the tables afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DocumentSpec
from penstock.errors import SchemaError
from tests.support.document_stream import DocumentStream, open_stream

SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
TABLES = (
    "DROP DATABASE IF EXISTS ddl",
    "CREATE DATABASE ddl DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE ddl.store (id INT PRIMARY KEY, city VARCHAR(20))",
    """CREATE TABLE ddl.product (id INT PRIMARY KEY, name VARCHAR(20), size INT, store_id INT, KEY (store_id))
       PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20),
       PARTITION p2 VALUES LESS THAN MAXVALUE)""",
    "INSERT INTO ddl.store VALUES (1, 'Lisbon'), (2, 'Porto')",
    "INSERT INTO ddl.product VALUES (1, 'kettle', 3, 1), (11, 'lamp', 4, 2), (21, 'pen', 5, NULL)",
)
SPEC = DocumentSpec.model_validate(
    {
        "index": "product",
        "root": {
            "table": "ddl.product",
            "fields": ["name", "size"],
            "joins": {"store": {"table": "ddl.store", "on": {"store_id": "id"}, "fields": ["city"]}},
        },
    }
)


def execute(server: Any, *statements: str) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def expected(server: Any) -> dict[str, Any]:
    """Return the documents by a query of the test's own."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.id, p.name, p.size, s.id, s.city FROM ddl.product p LEFT JOIN ddl.store s ON s.id = p.store_id"
        )
        return {
            str(key): {"name": name, "size": size, "store": None if store is None else {"city": city}}
            for key, name, size, store, city in cursor.fetchall()
        }


@pytest.fixture(params=SERVERS)
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, DocumentStream]]:
    server = request.getfixturevalue(request.param)
    execute(server, *TABLES)
    with open_stream(server, SPEC, tmp_path / "index") as opened:
        yield server, opened
    execute(server, "DROP DATABASE IF EXISTS ddl")


STATEMENTS = {
    "truncate of the root": ["TRUNCATE TABLE ddl.product"],
    "truncate of a joined table": ["TRUNCATE ddl.store"],
    "truncate, then rows again": ["TRUNCATE ddl.product", "INSERT INTO ddl.product VALUES (11, 'new', 1, 1)"],
    "drop and create": [
        "DROP TABLE ddl.store",
        "CREATE TABLE ddl.store (id INT PRIMARY KEY, city VARCHAR(20))",
        "INSERT INTO ddl.store VALUES (2, 'Faro')",
    ],
    "a table made elsewhere takes the place": [
        "CREATE TABLE ddl.new_store (id INT PRIMARY KEY, city VARCHAR(40))",
        "INSERT INTO ddl.new_store VALUES (1, 'Lagos'), (2, 'Porto')",
        "RENAME TABLE ddl.store TO ddl.old_store, ddl.new_store TO ddl.store",
    ],
    "a type is changed": ["ALTER TABLE ddl.product MODIFY name VARCHAR(3)"],
    "truncate of a partition": ["ALTER TABLE ddl.product TRUNCATE PARTITION p0"],
    "drop of a partition": ["ALTER TABLE ddl.product DROP PARTITION p1"],
    "exchange of a partition": [
        "CREATE TABLE ddl.other (id INT PRIMARY KEY, name VARCHAR(20), size INT, store_id INT, KEY (store_id))",
        "INSERT INTO ddl.other VALUES (12, 'desk', 6, 1)",
        "ALTER TABLE ddl.product EXCHANGE PARTITION p1 WITH TABLE ddl.other",
    ],
    "create, if it were not there": ["CREATE TABLE IF NOT EXISTS ddl.store (id INT PRIMARY KEY)"],
    "columns that no document has": [
        "ALTER TABLE ddl.product ADD COLUMN note VARCHAR(20)",
        "UPDATE ddl.product SET note = 'x'",
        "ALTER TABLE ddl.product MODIFY note TEXT, ADD KEY (name)",
        "ALTER TABLE ddl.product DROP COLUMN note",
    ],
}
UNTOUCHED = {"create, if it were not there", "columns that no document has"}


@pytest.mark.parametrize("case", STATEMENTS)
def test_the_index_equals_the_tables_after_a_statement(stream: tuple[Any, DocumentStream], case: str) -> None:
    server, follower = stream
    before = follower.documents()
    assert before == expected(server)
    with server.connect(autocommit=True, init_command="SET SESSION sql_mode = ''") as connection:
        for statement in STATEMENTS[case]:
            with connection.cursor() as cursor:
                cursor.execute(statement)
    counts = follower.follow()
    after = expected(server)
    assert follower.documents() == after
    assert (after == before) == (case in UNTOUCHED)
    assert (counts.documents.total == 0) == (case in UNTOUCHED)
    execute(server, "UPDATE ddl.product SET size = size + 1", "UPDATE ddl.store SET city = CONCAT(city, '!')")
    follower.follow()
    assert follower.documents() == expected(server)


def test_a_table_that_is_gone_for_a_while_is_empty(stream: tuple[Any, DocumentStream]) -> None:
    server, follower = stream
    execute(server, "RENAME TABLE ddl.store TO ddl.away")
    follower.follow()
    assert {str(document["store"]) for document in follower.documents().values()} == {"None"}
    execute(server, "UPDATE ddl.product SET size = 9 WHERE id = 1")
    follower.follow()
    assert follower.documents()["1"]["size"] == 9
    execute(server, "RENAME TABLE ddl.away TO ddl.store")
    follower.follow()
    assert follower.documents() == expected(server)


def test_a_column_in_use_that_is_dropped_stops_with_its_name(stream: tuple[Any, DocumentStream]) -> None:
    server, follower = stream
    execute(server, "ALTER TABLE ddl.product DROP COLUMN size")
    with pytest.raises(SchemaError, match=r"document 'product': table ddl.product has no column size; it has id, name"):
        follower.follow()


@pytest.mark.mariadb
def test_names_in_other_letters_are_followed_where_letters_do_not_count(
    private_server: Callable[..., Any], tmp_path: Path
) -> None:
    """The log has the statements as they were written, and the rows with names in lower case."""
    server = private_server("mariadb", options={"lower_case_table_names": 1})
    execute(
        server,
        "CREATE DATABASE d",
        "CREATE TABLE d.item (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE d.size (id INT PRIMARY KEY, width INT)",
        "INSERT INTO d.item VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO d.size VALUES (1, 10), (2, 20)",
    )
    join = {"table": "D.size", "on": {"id": "id"}, "fields": ["width"]}
    root = {"table": "d.Item", "fields": ["name"], "joins": {"size": join}}
    spec = DocumentSpec.model_validate({"index": "item", "root": root})
    first, second = {"name": "one", "size": {"width": 10}}, {"name": "two", "size": {"width": 20}}
    with open_stream(server, spec, tmp_path) as stream:
        assert stream.documents() == {"1": first, "2": second}
        for statement, width_1, width_2 in (
            ("UPDATE D.ITEM SET name = 'uno' WHERE id = 1", 10, 20),
            ("TRUNCATE TABLE D.Size", None, None),
            ("INSERT INTO d.SIZE VALUES (2, 5)", None, 5),
            ("RENAME TABLE d.SIZE TO d.Old", None, None),
            ("RENAME TABLE d.oLD TO D.Size", None, 5),
            ("DROP TABLE D.Size", None, None),
        ):
            execute(server, statement)
            stream.follow()
            widths = {
                key: document["size"] and document["size"]["width"] for key, document in stream.documents().items()
            }
            assert widths == {"1": width_1, "2": width_2}, statement
        execute(server, "DROP DATABASE D")
        stream.follow()
        assert stream.documents() == {}
