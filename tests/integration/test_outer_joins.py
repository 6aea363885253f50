"""Statements that change tables of an outer join: their rows have the names of their columns, on every server."""

from collections.abc import Callable

import pytest

from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, execute, instance_of

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def test_rows_deleted_by_a_left_join_have_the_names_of_their_columns(
    server: DatabaseServer, database: Callable[[DatabaseServer], str], caplog: pytest.LogCaptureFixture
) -> None:
    name = database(server)
    execute(
        server,
        f"CREATE TABLE {name}.orders (id INT PRIMARY KEY)",
        f"CREATE TABLE {name}.line (order_id INT NOT NULL, position INT NOT NULL, PRIMARY KEY (order_id, position))",
        f"INSERT INTO {name}.orders VALUES (1)",
        f"INSERT INTO {name}.line VALUES (1, 2)",
    )
    instance = instance_of(server)
    instance.start()
    start = instance.store.latest
    try:
        execute(
            server,
            f"USE {name}",
            f"DELETE o, l FROM {name}.orders o LEFT JOIN {name}.line l ON l.order_id = o.id WHERE o.id = 1",
        )
        (change,) = changes_until(instance, f"{name}.line", 1, start)
    finally:
        instance.stop()
    assert (change["order_id"], change["position"]) == (1, 2)
    assert "differs from binlog" not in caplog.text
