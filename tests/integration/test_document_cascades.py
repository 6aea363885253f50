"""Rows that a server changes by foreign keys, without a word in its log, are followed into the index."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DeadLetterOutcome, DocumentSpec
from penstock.document.spec import TransformSpec
from penstock.search.dead_letters import DeadLetters
from tests.support.document_stream import DocumentStream, open_stream

SERVERS = ("mariadb", "mysql80")
TABLES = (
    "DROP DATABASE IF EXISTS cascades",
    "CREATE DATABASE cascades DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE cascades.owner (name VARCHAR(20) PRIMARY KEY)",
    """CREATE TABLE cascades.store (id INT PRIMARY KEY, city VARCHAR(20), owner VARCHAR(20),
       FOREIGN KEY (owner) REFERENCES owner (name) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE cascades.brand (id INT PRIMARY KEY, name VARCHAR(20))",
    """CREATE TABLE cascades.product (id INT PRIMARY KEY, name VARCHAR(20), store_id INT, brand_id INT,
       FOREIGN KEY (store_id) REFERENCES store (id) ON DELETE CASCADE,
       FOREIGN KEY (brand_id) REFERENCES brand (id) ON DELETE SET NULL ON UPDATE CASCADE)""",
    """CREATE TABLE cascades.part (id INT PRIMARY KEY, product_id INT, label VARCHAR(20),
       FOREIGN KEY (product_id) REFERENCES product (id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE cascades.tag (id INT PRIMARY KEY, name VARCHAR(20))",
    """CREATE TABLE cascades.product_tag (product_id INT, tag_id INT, PRIMARY KEY (product_id, tag_id), KEY (tag_id),
       FOREIGN KEY (product_id) REFERENCES product (id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (tag_id) REFERENCES tag (id) ON DELETE CASCADE)""",
    "INSERT INTO cascades.owner VALUES ('Ana'), ('Bob')",
    "INSERT INTO cascades.store VALUES (1, 'Lisbon', 'ana'), (2, 'Porto', 'Bob')",
    "INSERT INTO cascades.brand VALUES (1, 'oak'), (2, 'elm')",
    """INSERT INTO cascades.product VALUES (1, 'kettle', 1, 1), (2, 'lamp', 2, 1), (3, 'desk', 2, 2),
       (4, 'pen', NULL, NULL)""",
    "INSERT INTO cascades.part VALUES (1, 1, 'lid'), (2, 2, 'bulb'), (3, 2, 'shade')",
    "INSERT INTO cascades.tag VALUES (1, 'red'), (2, 'blue')",
    "INSERT INTO cascades.product_tag VALUES (1, 1), (2, 1), (2, 2)",
)
SPEC = DocumentSpec.model_validate(
    {
        "index": "product",
        "root": {
            "table": "cascades.product",
            "fields": ["name", "brand_id"],
            "joins": {
                "store": {"table": "cascades.store", "on": {"store_id": "id"}, "fields": ["city", "owner"]},
                "parts": {
                    "table": "cascades.part", "many": True, "on": {"id": "product_id"}, "order": "id",
                    "fields": ["label"],
                },
                "tags": {
                    "table": "cascades.tag", "many": True, "order": "id", "fields": ["name"],
                    "through": {
                        "table": "cascades.product_tag", "on": {"id": "product_id"}, "to": {"tag_id": "id"}
                    },
                },
            },
        },
    }
)  # fmt: skip


def execute(server: Any, *statements: str) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(params=SERVERS)
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, DocumentStream]]:
    server = request.getfixturevalue(request.param)
    execute(server, *TABLES)
    with open_stream(server, SPEC, tmp_path / "index") as opened:
        yield server, opened
    execute(server, "DROP DATABASE cascades")


def product(name: str, brand: int | None, store: Any, parts: list[str], tags: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "brand_id": brand,
        "store": store,
        "parts": [{"label": label} for label in parts],
        "tags": [{"name": label} for label in tags],
    }


LISBON, PORTO = {"city": "Lisbon", "owner": "ana"}, {"city": "Porto", "owner": "Bob"}
KETTLE = product("kettle", 1, LISBON, ["lid"], ["red"])
LAMP = product("lamp", 1, PORTO, ["bulb", "shade"], ["red", "blue"])
DESK = product("desk", 2, PORTO, [], [])
PEN = product("pen", None, None, [], [])


def test_rows_that_a_foreign_key_deletes_or_changes_leave_the_index(stream: tuple[Any, DocumentStream]) -> None:
    server, follower = stream
    assert follower.documents() == {"1": KETTLE, "2": LAMP, "3": DESK, "4": PEN}

    execute(server, "DELETE FROM cascades.tag WHERE id = 1")  # rows of the link table go with it
    follower.follow()
    assert follower.documents() == {
        "1": {**KETTLE, "tags": []}, "2": {**LAMP, "tags": [{"name": "blue"}]}, "3": DESK, "4": PEN,
    }  # fmt: skip

    execute(server, "UPDATE cascades.brand SET id = 7 WHERE id = 1", "DELETE FROM cascades.brand WHERE id = 2")
    follower.follow()
    documents = follower.documents()
    assert [documents[key]["brand_id"] for key in ("1", "2", "3", "4")] == [7, 7, None, None]

    execute(server, "DELETE FROM cascades.store WHERE id = 1")  # and its products
    follower.follow()
    assert set(follower.documents()) == {"2", "3", "4"}

    execute(server, "UPDATE cascades.owner SET name = 'Eve' WHERE name = 'Bob'")  # two tables away
    follower.follow()
    assert follower.documents()["2"]["store"] == {"city": "Porto", "owner": "Eve"}

    execute(server, "DELETE FROM cascades.owner WHERE name = 'Eve'")  # and its stores, and their products
    follower.follow()
    assert set(follower.documents()) == {"4"}


def test_a_foreign_key_that_is_added_later_is_followed(stream: tuple[Any, DocumentStream]) -> None:
    server, follower = stream
    execute(
        server,
        "CREATE TABLE cascades.maker (id INT PRIMARY KEY)",
        "INSERT INTO cascades.maker VALUES (1), (2)",
        "ALTER TABLE cascades.product ADD FOREIGN KEY (brand_id) REFERENCES cascades.maker (id) ON DELETE CASCADE",
    )
    follower.follow()
    execute(server, "DELETE FROM cascades.maker WHERE id = 1")
    follower.follow()
    assert set(follower.documents()) == {"3", "4"}


def test_dead_letters_go_with_the_rows_of_their_documents(mariadb: Any, tmp_path: Path) -> None:
    """The index has not got such documents, so it cannot say which of them a parent row takes with it."""
    execute(mariadb, *TABLES)
    (tmp_path / "hook.py").write_text(
        "def check(document):\n    assert document['name'] != 'bad'\n    return document\n"
    )
    spec = SPEC.model_copy(update={"transform": TransformSpec(python=str(tmp_path / "hook.py:check"))})
    letters = DeadLetters.open(tmp_path / "letters.sqlite")

    def refused() -> list[str]:
        return [letter.id for letter in letters.read_page()]

    with letters, open_stream(mariadb, spec, tmp_path / "index", DeadLetterOutcome("product", letters)) as follower:
        execute(
            mariadb, "INSERT INTO cascades.product VALUES (9, 'bad', 1, 1), (10, 'bad', 2, 1), (11, 'bad', NULL, 1)"
        )
        execute(mariadb, "UPDATE cascades.product SET name = 'bad' WHERE id = 3")  # the index has its old state
        follower.follow()
        assert refused() == ["9", "10", "11", "3"]
        execute(mariadb, "DELETE FROM cascades.store WHERE id = 1")
        follower.follow()
        assert refused() == ["10", "11", "3"]
        execute(mariadb, "DELETE FROM cascades.owner WHERE name = 'Bob'")  # and its stores, and their products
        follower.follow()
        assert refused() == ["11"]
        assert set(follower.documents()) == {"4"}
        execute(mariadb, "SET foreign_key_checks = 0", "TRUNCATE TABLE cascades.part")
        follower.follow()
        assert refused() == ["11"], "all documents are compared, and this one is refused again"
        execute(mariadb, "SET foreign_key_checks = 0", "TRUNCATE TABLE cascades.product")
        follower.follow()
        assert refused() == []
        assert follower.documents() == {}
    execute(mariadb, "DROP DATABASE cascades")


DEPTH = 8
CHAIN = (
    "DROP DATABASE IF EXISTS chain",
    "CREATE DATABASE chain DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE chain.t8 (id VARCHAR(20) PRIMARY KEY)",
    *(
        f"CREATE TABLE chain.t{number} (id VARCHAR(20) PRIMARY KEY, parent VARCHAR(20),"
        f" FOREIGN KEY (parent) REFERENCES t{number + 1} (id) ON DELETE CASCADE)"
        for number in range(DEPTH - 1, 0, -1)
    ),
    """CREATE TABLE chain.staff (id INT PRIMARY KEY, manager INT,
       FOREIGN KEY (manager) REFERENCES staff (id) ON DELETE CASCADE)""",
    """CREATE TABLE chain.task (id INT PRIMARY KEY, parent VARCHAR(20), staff INT,
       FOREIGN KEY (parent) REFERENCES t1 (id) ON DELETE CASCADE,
       FOREIGN KEY (staff) REFERENCES staff (id) ON DELETE CASCADE)""",
    "INSERT INTO chain.t8 VALUES ('A'), ('B')",
    # In other letters than the row that is referred to: equal to the server.
    *(f"INSERT INTO chain.t{number} VALUES ('A', 'a'), ('B', 'b')" for number in range(DEPTH - 1, 0, -1)),
    f"INSERT INTO chain.staff VALUES (0, NULL), {', '.join(f'({key}, {key - 1})' for key in range(1, 12))}",
    "INSERT INTO chain.staff VALUES (20, NULL), (21, 20)",
    "UPDATE chain.staff SET manager = 21 WHERE id = 20",  # a circle
    "INSERT INTO chain.task VALUES (1, 'A', 21), (2, 'B', 11), (3, 'B', 20), (4, NULL, 0), (5, NULL, NULL)",
)
CHAIN_SPEC = DocumentSpec.model_validate(
    {"index": "task", "root": {"table": "chain.task", "fields": ["parent", "staff"]}}
)


def test_chains_of_foreign_keys_are_followed_to_the_last_row(mariadb: Any, tmp_path: Path) -> None:
    """Eight tables, then rows of one table that follow each other: the log has nothing but the delete of the first."""
    execute(mariadb, *CHAIN)
    with open_stream(mariadb, CHAIN_SPEC, tmp_path / "index") as follower:
        assert set(follower.documents()) == {"1", "2", "3", "4", "5"}
        execute(mariadb, "DELETE FROM chain.t8 WHERE id = 'A'")
        follower.follow()
        assert set(follower.documents()) == {"2", "3", "4", "5"}

        execute(mariadb, "DELETE FROM chain.staff WHERE id = 21")  # and 20, which follows it and is followed by it
        follower.follow()
        assert set(follower.documents()) == {"2", "4", "5"}

        # Task 2 leads to C by a row in the middle from now on.
        execute(
            mariadb,
            "INSERT INTO chain.t8 VALUES ('C')",
            "INSERT INTO chain.t7 VALUES ('C', 'C')",
            "UPDATE chain.t6 SET parent = 'C' WHERE id = 'B'",
        )
        follower.follow()
        execute(mariadb, "DELETE FROM chain.t8 WHERE id = 'B'")
        follower.follow()
        assert set(follower.documents()) == {"2", "4", "5"}
        execute(mariadb, "DELETE FROM chain.staff WHERE id = 0")  # ten rows of the same table between them
        follower.follow()
        assert set(follower.documents()) == {"5"}
    execute(mariadb, "DROP DATABASE chain")


def test_the_end_of_a_chain_that_was_moved_is_followed(mariadb: Any, tmp_path: Path) -> None:
    execute(mariadb, *CHAIN)
    with open_stream(mariadb, CHAIN_SPEC, tmp_path / "index") as follower:
        execute(
            mariadb,
            "INSERT INTO chain.t8 VALUES ('C')",
            "INSERT INTO chain.t7 VALUES ('C', 'C')",
            "UPDATE chain.t6 SET parent = 'C' WHERE id = 'B'",
        )
        follower.follow()
        execute(mariadb, "DELETE FROM chain.t8 WHERE id = 'C'")
        follower.follow()
        assert set(follower.documents()) == {"1", "4", "5"}
    execute(mariadb, "DROP DATABASE chain")
