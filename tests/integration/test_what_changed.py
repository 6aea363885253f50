"""Rows whose images carry little: what the log says of them, on real servers."""

from collections.abc import Callable

import pytest

import penstock
from penstock.testing import DatabaseServer
from tests.support.json_support import new_file

NewDatabase = Callable[[DatabaseServer], str]


@pytest.mark.parametrize("release", ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"])
def test_a_row_of_nothing_but_defaults(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    """Its minimal image carries no column: it has no bytes at all."""
    server: DatabaseServer = request.getfixturevalue(release)
    file = new_file(server)
    name = database(server)
    with server.connect(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE e (id INT PRIMARY KEY DEFAULT 7, b VARCHAR(9) DEFAULT 'x')")
        cursor.execute("SET binlog_row_image = 'MINIMAL'")
        cursor.execute("INSERT INTO e () VALUES ()")
        cursor.execute("INSERT INTO e (id) VALUES (8)")
        cursor.execute("SELECT COUNT(*) FROM e")
        assert cursor.fetchone() == (2,)
    rows = penstock.read_binlog(file, f"{name}.e").to_pylist()
    assert [row["_change_type"] for row in rows] == ["insert", "insert"]
    assert [len(row["_absent"]) for row in rows] == [2, 1]


@pytest.mark.parametrize("release", ["mysql80", "mysql9"])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_documents_that_did_not_change(
    release: str, image: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    """They are logged as differences of which there are none."""
    server: DatabaseServer = request.getfixturevalue(release)
    file = new_file(server)
    name = database(server)
    with server.connect(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE p (id INT PRIMARY KEY, n INT, doc JSON, other JSON)")
        cursor.execute('INSERT INTO p VALUES (1, 0, \'{"k": "long enough for a diff", "m": 1}\', \'[1, 2]\')')
        cursor.execute(f"SET binlog_row_image = '{image}', binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("UPDATE p SET n = 1, doc = JSON_REPLACE(doc, '$.missing', 1)")
        cursor.execute("UPDATE p SET n = 2, doc = JSON_REPLACE(doc, '$.m', 2)")
    rows = penstock.read_binlog(file, f"{name}.p", partial_json="operations").to_pylist()
    assert [row["_changed"] for row in rows if row["_changed"] is not None] == [["n"], ["n", "doc"]]
