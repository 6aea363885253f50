"""Statements that change the keys of tables: ids, types of keys, unique keys, and foreign keys that cascade."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DocumentSpec
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.document_stream import DocumentStream, open_stream

Database = Callable[[DatabaseServer], str]


@pytest.fixture(params=["mariadb", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(server: DatabaseServer, database: Database) -> str:
    return database(server)


def spec_of(table: str, **root: Any) -> DocumentSpec:
    return DocumentSpec.model_validate({"index": "t", "root": {"table": table, "fields": ["v"], **root}})


def ids(stream: DocumentStream) -> set[str]:
    return set(stream.documents())


def test_a_changed_primary_key_gives_all_documents_new_ids(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    execute(
        server,
        f"CREATE TABLE {name}.t (id INT, region CHAR(2) NOT NULL DEFAULT 'eu', v INT, PRIMARY KEY (id))",
        f"INSERT INTO {name}.t (id, v) VALUES (7, 1), (8, 2)",
    )
    with open_stream(server, spec_of(f"{name}.t"), tmp_path) as stream:
        execute(
            server,
            f"UPDATE {name}.t SET v = 3 WHERE id = 7",
            f"ALTER TABLE {name}.t DROP PRIMARY KEY, ADD PRIMARY KEY (id, region)",
            f"INSERT INTO {name}.t VALUES (7, 'us', 4)",
        )
        stream.follow()
        assert {key: document["v"] for key, document in stream.documents().items()} == {"7:eu": 3, "8:eu": 2, "7:us": 4}
        execute(server, f"DELETE FROM {name}.t WHERE id = 7")
        stream.follow()
        assert ids(stream) == {"8:eu"}


def test_a_table_whose_unique_key_is_the_id_is_dropped_and_created(
    server: DatabaseServer, name: str, tmp_path: Path
) -> None:
    table = f"CREATE TABLE {name}.t (id INT PRIMARY KEY, code VARCHAR(9) NOT NULL, v INT, UNIQUE KEY (code))"
    execute(server, table, f"INSERT INTO {name}.t VALUES (1, 'a', 1)")
    with open_stream(server, spec_of(f"{name}.t", id="code"), tmp_path) as stream:
        execute(server, f"DROP TABLE {name}.t")
        stream.follow()
        assert ids(stream) == set()
        execute(server, table, f"INSERT INTO {name}.t VALUES (2, 'b', 2)")
        stream.follow()
        assert ids(stream) == {"b"}


def test_a_key_column_of_another_type(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {name}.t VALUES (1, 1), (2, 2)")
    with open_stream(server, spec_of(f"{name}.t"), tmp_path) as stream:
        execute(
            server,
            f"ALTER TABLE {name}.t MODIFY id VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL",
            f"INSERT INTO {name}.t VALUES ('a b', 3)",
            f"DELETE FROM {name}.t WHERE id = '1'",
        )
        stream.follow()
        assert ids(stream) == {"2", "a b"}
        execute(
            server,
            f"DELETE FROM {name}.t WHERE id = 'a b'",
            f"ALTER TABLE {name}.t MODIFY id INT NOT NULL",
            f"INSERT INTO {name}.t VALUES (5, 5)",
        )
        stream.sync.reload()  # as when sync starts again: the tables are those of now, the log has both
        stream.follow()
        assert ids(stream) == {"2", "5"}


def test_a_cascade_over_several_rows_whose_id_is_another_key(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    execute(
        server,
        f"""CREATE TABLE {name}.t (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, parent_id INT, v INT,
            FOREIGN KEY (parent_id) REFERENCES {name}.t (id) ON DELETE CASCADE)""",
        f"INSERT INTO {name}.t VALUES (1, 'a', NULL, 1), (2, 'b', 1, 2), (3, 'c', 2, 3), (4, 'd', NULL, 4)",
    )
    with open_stream(server, spec_of(f"{name}.t", id="code"), tmp_path) as stream:
        execute(server, f"DELETE FROM {name}.t WHERE id = 1")
        stream.follow()
        assert ids(stream) == {"d"}


def test_a_foreign_key_that_was_dropped_after_it_cascaded(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    execute(
        server,
        f"CREATE TABLE {name}.parent (id INT PRIMARY KEY)",
        f"""CREATE TABLE {name}.t (id INT PRIMARY KEY, parent_id INT, v INT,
            CONSTRAINT f FOREIGN KEY (parent_id) REFERENCES {name}.parent (id) ON DELETE CASCADE)""",
        f"INSERT INTO {name}.parent VALUES (1), (2)",
        f"INSERT INTO {name}.t VALUES (1, 1, 1), (2, 2, 2)",
    )
    with open_stream(server, spec_of(f"{name}.t"), tmp_path) as stream:
        execute(server, f"DELETE FROM {name}.parent WHERE id = 1", f"ALTER TABLE {name}.t DROP FOREIGN KEY f")
        stream.sync.reload()  # as when sync was stopped meanwhile
        stream.follow()
        assert ids(stream) == {"2"}


def test_rows_that_a_new_unique_key_does_not_allow(mariadb: DatabaseServer, database: Database, tmp_path: Path) -> None:
    name = database(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {name}.t VALUES (1, 1), (2, 1), (3, 3)",
    )
    with open_stream(mariadb, spec_of(f"{name}.t"), tmp_path) as stream:
        execute(mariadb, f"ALTER IGNORE TABLE {name}.t ADD UNIQUE KEY (v)")
        stream.follow()
        assert ids(stream) == {"1", "3"}
