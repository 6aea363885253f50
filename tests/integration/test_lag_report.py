"""The lag that Spark shows of a query: the source is asked every second, and over one connection."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from penstock.source.connection_pool import ConnectionPool
from penstock.spark import log_end_report
from penstock.spark.change_log import ChangeLog
from penstock.spark.options import ReadOptions
from penstock.testing import DatabaseServer
from tests.support.capture import poll, source_of
from tests.support.micro_batches import serving

QUESTIONS = 30


def test_the_connections_to_the_source_do_not_grow_with_the_questions(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_end_report, "_ASK_S", 0.0)
    table = f"{database(mariadb)}.t"
    with serving(mariadb) as server, closing(mariadb.connect(autocommit=True)) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        log = ChangeLog(ReadOptions.of({"server": server.address, "table": table}))

        def connections() -> int:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Connections'")
            return int(cursor.fetchone()[1])

        assert poll(lambda: log.report() is not None)
        before = connections()
        for number in range(QUESTIONS):
            shown = log.report()
            cursor.execute(f"INSERT INTO {table} VALUES ({number})")
            assert poll(lambda shown=shown: log.report() != shown), "the end of the log that is shown stands still"
        assert connections() - before < QUESTIONS / 2  # the server checks its source every ten seconds, too


def test_a_pool_keeps_as_many_connections_as_it_may_and_replaces_broken_ones(mariadb: DatabaseServer) -> None:
    source, opened = source_of(mariadb), list[Any]()

    def open_connection(_: Any) -> Any:
        opened.append(mariadb.connect())
        return opened[-1]

    pool = ConnectionPool(open_connection, max_idle=2)
    with pool.connection(source), pool.connection(source), pool.connection(source):
        pass
    assert sum(connection.open for connection in opened) == 2
    for connection in opened:
        if connection.open:
            connection.close()
    with pool.connection(source) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert len(opened) == 4
    with pool.connection(source_of(mariadb, connect_timeout_s=3)):
        assert len(opened) == 5, "a connection to another source was lent"
