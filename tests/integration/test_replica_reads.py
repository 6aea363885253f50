"""Documents that are read from a replica are not older than the change that named them, however far it lags."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DOCUMENT_DECODING, DocumentSpec
from penstock.errors import ConfigurationError, SourceBehindError
from penstock.model import Column, WireType
from penstock.snapshot.source_rows import SelectQuery, SourceRows
from penstock.source import connect
from penstock.source.replica_read import ReplicaRead
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.document_stream import open_stream
from tests.support.late_commits import late_commits
from tests.support.replication import has, pair, start_applying, stop_applying

KINDS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
Servers = Callable[..., Any]
VALUE = SelectQuery("SELECT a FROM replicated.t WHERE id = 1", (Column("a", WireType.LONG),))
SPEC = DocumentSpec.model_validate(
    {
        "index": "t",
        "root": {
            "table": "replicated.t",
            "fields": ["a"],
            "joins": {"u": {"table": "replicated.u", "on": {"a": "id"}, "fields": ["name"]}},
        },
    }
)


# Of a statement that waits for GTIDs, and is not this one.
WAITING = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT %GTID%' AND id <> CONNECTION_ID()"


def rows_of(primary: DatabaseServer, replica: DatabaseServer) -> SourceRows:
    return SourceRows(source_of(primary), DOCUMENT_DECODING, replica=source_of(replica))


def make_tables(primary: DatabaseServer, replica: DatabaseServer) -> None:
    execute(
        primary,
        "CREATE TABLE replicated.t (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE replicated.u (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO replicated.u VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO replicated.t VALUES (1, 1)",
    )
    assert poll(lambda: has(replica, "SELECT 1 FROM information_schema.tables WHERE table_name = 'u'"))
    assert poll(lambda: has(replica, "SELECT 1 FROM replicated.t"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_waits_until_the_replica_has_what_is_in_the_log(private_server: Servers, kind: str) -> None:
    primary, replica = pair(private_server, kind)
    make_tables(primary, replica)
    values: list[int] = []

    def read() -> None:
        with closing(rows_of(primary, replica)) as rows, rows.open_view():
            values.extend(rows.read(VALUE).column("a").to_pylist())

    stop_applying(replica, kind)
    execute(primary, "UPDATE replicated.t SET a = 2")
    reader = threading.Thread(target=read)
    reader.start()
    assert poll(lambda: has(replica, WAITING))
    assert not values
    start_applying(replica, kind)
    reader.join(30)
    assert values == [2]


@pytest.mark.parametrize("kind", ["mariadb", "mysql9"])
def test_documents_are_built_from_a_replica_while_it_lags(private_server: Servers, kind: str, tmp_path: Path) -> None:
    primary, replica = pair(private_server, kind)
    make_tables(primary, replica)
    with open_stream(primary, SPEC, tmp_path, replica=source_of(replica)) as stream:
        # What is read comes from the replica: a row that only the replica has is in the document.
        execute(replica, "SET SESSION sql_log_bin = 0", "UPDATE replicated.u SET name = 'replica' WHERE id = 2")
        for number in range(5):
            stop_applying(replica, kind)
            execute(primary, f"UPDATE replicated.t SET a = {2 - number % 2}")
            restart = threading.Timer(0.3, start_applying, (replica, kind))
            restart.start()
            stream.follow()
            restart.join()
            name = "one" if number % 2 else "replica"
            assert stream.documents() == {"1": {"a": 2 - number % 2, "u": {"name": name}}}


@pytest.mark.parametrize("kind", ["mariadb", "mysql57", "mysql80", "mysql9"])
def test_a_read_waits_for_a_change_that_the_primary_has_logged_and_not_committed(
    private_server: Servers, kind: str
) -> None:
    """The log has it, and so does capture; MySQL does not count it among what is executed yet."""
    primary, replica = pair(private_server, kind)
    make_tables(primary, replica)
    stop_applying(replica, kind)
    logged = end_of(primary)
    with late_commits(primary):
        update = threading.Thread(target=execute, args=(primary, "UPDATE replicated.t SET a = 2"))
        update.start()
        assert poll(lambda: end_of(primary) > logged, 20)
        restart = threading.Timer(1.5, start_applying, (replica, kind))
        restart.start()
        with closing(rows_of(primary, replica)) as rows, rows.open_view():
            assert rows.read(VALUE).column("a").to_pylist() == [2]
        restart.join()
    update.join(70)


@pytest.mark.mariadb
def test_a_server_that_is_no_replica_is_an_error_that_may_pass(private_server: Servers) -> None:
    primary, other = private_server("mariadb"), private_server("mariadb")
    execute(primary, "CREATE DATABASE d")
    with closing(connect(source_of(other))) as connection, closing(connect(source_of(primary))) as asked:
        reading = ReplicaRead(connection, source_of(other), asked, source_of(primary), timeout_s=0.2)
        with pytest.raises(SourceBehindError, match="is it a replica of") as failure:
            reading.open()
    assert failure.value.transient


@pytest.mark.mysql57
def test_a_primary_without_gtids_is_refused(private_server: Servers) -> None:
    primary = private_server("mysql57", options={"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"})
    with (
        closing(rows_of(primary, primary)) as rows,
        pytest.raises(ConfigurationError, match="switch on gtid_mode"),
        rows.open_view(),
    ):
        pass
