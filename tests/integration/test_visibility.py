"""A change can be in the log before a SELECT sees it. A document built from it must not show the old state.

The gap is made at will: on MariaDB, semi-sync replication in AFTER_SYNC mode lets a commit wait, after the log was
written, for a replica that never acknowledges; on MySQL, commits wait for others to sync the log with, and the log can
be read before it is synced.
"""

import bisect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.document import DOCUMENT_DECODING, DocumentSpec, DocumentSync, LoadedGraph, LocalWriter, load_graph
from penstock.errors import AuthenticationError, ConfigurationError
from penstock.instance import Instance
from penstock.model import Column, Sequence, TableName, WireType
from penstock.search.embedded import EmbeddedIndex
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkReader
from penstock.snapshot.source_rows import SelectQuery, SourceRows
from penstock.snapshot.table_snapshot import TableSnapshot
from penstock.source import connect
from penstock.source.visibility import LogVisibility
from tests.support.capture import changes_until, end_of, execute, instance_of, source_of
from tests.support.document_shop import batch, change
from tests.support.late_commits import late_commits

RELEASED_S = 1.0
DEADLINE_S = 60.0
TRIES = 20
TABLE = TableName("d", "t")
# An expression, so that documents are read back and not built from the log.
SPEC = DocumentSpec.model_validate({"index": "t", "root": {"table": "d.t", "id": "id", "fields": {"a": {"sql": "a"}}}})
TO_OFF = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")


@contextmanager
def released_soon(server: Any) -> Iterator[None]:
    """End what `late_commits` began a moment later; MySQL lets a commit wait for a second at most, by itself."""
    if server.name.startswith("mysql"):
        yield
        return
    timer = threading.Timer(RELEASED_S, execute, (server, "SET GLOBAL rpl_semi_sync_master_enabled = OFF"))
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.fixture(
    scope="module",
    params=["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9", "mysql57-anonymous", "mysql80-anonymous"],
)
def server(request: pytest.FixtureRequest, module_server: Callable[..., Any]) -> Any:
    """A server of this module alone; `anonymous`: without GTIDs."""
    name, _, is_anonymous = str(request.param).partition("-")
    server = module_server(name)
    if is_anonymous:
        execute(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in TO_OFF))
    return server


@pytest.fixture
def source(server: Any) -> Any:
    """The server with one row, d.t (1, 1), and nothing about it in its current log file."""
    execute(
        server,
        "DROP DATABASE IF EXISTS d",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, a INT) ENGINE = InnoDB",
        "INSERT INTO d.t VALUES (1, 1)",
        "CREATE TABLE d.large (id INT PRIMARY KEY, a TEXT) ENGINE = InnoDB",
        "SET GLOBAL max_binlog_size = 1073741824",
        "FLUSH BINARY LOGS",
    )
    return server


def log_end(cursor: Any) -> tuple[Any, ...]:
    for statement in ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"):
        with suppress(Exception):
            cursor.execute(statement)
            return tuple(cursor.fetchone()[:2])
    raise AssertionError("the server does not say where its log ends")


def value(cursor: Any, key: int = 1) -> Any:
    cursor.execute(f"SELECT a FROM d.t WHERE id = {key}")
    return (cursor.fetchone() or (None,))[0]


@contextmanager
def logged_and_not_visible(server: Any, *statements: str) -> Iterator[int]:
    """Run statements of which the last one commits a = a + 1, and yield the new value while it cannot be seen yet."""
    with server.connect() as reader, reader.cursor() as cursor, server.connect() as writer, writer.cursor() as own:
        for _ in range(TRIES):
            before, end = value(cursor), log_end(cursor)
            for statement in statements[:-1]:
                own.execute(statement)
            with late_commits(server):
                prepared = log_end(cursor)
                thread = threading.Thread(target=own.execute, args=(statements[-1],))
                thread.start()
                try:
                    while thread.is_alive() and log_end(cursor) == prepared:
                        time.sleep(0.001)
                    if log_end(cursor) > end and value(cursor) == before and thread.is_alive():
                        with released_soon(server):
                            yield before + 1
                        return
                finally:
                    thread.join()
    raise AssertionError("no change was in the log before it could be seen: the trap cannot be set")


UPDATE = ("UPDATE d.t SET a = a + 1 WHERE id = 1",)
TRANSACTION = ("BEGIN", *UPDATE, "COMMIT")
# Larger than a log file may be: the log is rotated between the transaction and its commit.
ROTATING = (
    "SET GLOBAL max_binlog_size = 4096",
    "BEGIN",
    *UPDATE,
    "REPLACE INTO d.large VALUES (1, REPEAT(UUID(), 300))",
    "COMMIT",
)
XA = ("XA START 'x'", *UPDATE, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")


def rows_of(server: Any) -> SourceRows:
    return SourceRows(source_of(server), DOCUMENT_DECODING)


def read_first(rows: SourceRows) -> int:
    """Return the value that the first row has in the open view."""
    query = SelectQuery("SELECT a FROM d.t WHERE id = 1", (Column("a", WireType.LONG),))
    (row,) = rows.read(query).to_pylist()
    return row["a"]


def test_reads_wait_for_what_is_in_the_log(source: Any) -> None:
    with closing(rows_of(source)) as rows:
        for statements in (UPDATE, TRANSACTION, XA, ROTATING):
            with logged_and_not_visible(source, *statements) as expected, rows.open_view():
                assert read_first(rows) == expected


def test_a_chunk_of_a_snapshot_has_what_is_before_its_low_watermark(source: Any) -> None:
    """The end of the log is taken while the last change in it cannot be seen: a read at that position must have it."""
    table = TableSnapshot(source_of(source), TABLE).table
    with ChunkReader(source_of(source)) as reader:
        for statements in (TRANSACTION, XA):
            with logged_and_not_visible(source, *statements) as expected:
                end = end_of(source)
                rows = reader.read(table, Chunk(None, None))
                assert rows.watermark is not None
                assert rows.watermark.low >= end
                assert [batch.column("a").to_pylist() for batch in rows.batches] == [[expected]]


def test_a_log_that_was_rotated_is_not_waited_for(source: Any) -> None:
    """Nothing is committed after the rotation: no commit moves a snapshot's position."""
    with closing(rows_of(source)) as rows:
        for _ in range(3):
            execute(source, UPDATE[0], "FLUSH BINARY LOGS")
            began = time.monotonic()
            with rows.open_view():
                pass
            execute(source, "FLUSH BINARY LOGS", UPDATE[0])
            with rows.open_view():
                pass
            assert time.monotonic() - began < DEADLINE_S


def test_open_and_prepared_transactions_hold_nobody_up(source: Any, tmp_path: Path) -> None:
    """A first load and a batch of changes pass while every row, and the table, is locked by somebody."""
    execute(source, "INSERT INTO d.t VALUES (2, 1), (3, 1)")
    with (
        source.connect(autocommit=False) as holder,
        source.connect() as preparer,
        source.connect() as waiter,
        instance_running(source) as instance,
        closing(rows_of(source)) as rows,
        EmbeddedIndex.open(tmp_path) as index,
    ):
        sync = sync_of(source, rows, index)
        start = instance.store.latest
        execute(source, "UPDATE d.t SET a = 2")
        *_, event = changes_until(instance, "d.t", 6, start)
        with holder.cursor() as cursor:
            cursor.execute("UPDATE d.t SET a = 3 WHERE id = 1")
        with preparer.cursor() as cursor:
            for statement in (
                "XA START 'held'",
                "UPDATE d.t SET a = 3 WHERE id IN (2, 3)",
                "XA END 'held'",
                "XA PREPARE 'held'",
            ):
                cursor.execute(statement)
        waiting = threading.Thread(target=fail_late, args=(waiter, "UPDATE d.t SET a = 4 WHERE id = 3"))
        waiting.start()
        try:
            assert sync.load_all(int(Sequence.from_position(start))).written == 3
            updates = [change(TABLE, event["_seq"], {"id": key, "a": 1}, {"id": key, "a": 2}) for key in (1, 2, 3)]
            assert sync.apply_changes(batch(*updates)).documents.written == 3
            assert [index.get(str(key)) for key in (1, 2, 3)] == [{"a": 2}] * 3
            assert waiting.is_alive(), "the locks were held all the time"
        finally:
            holder.rollback()
            execute_with(preparer, "XA ROLLBACK 'held'")
            waiting.join()


def sync_of(server: Any, rows: SourceRows, index: EmbeddedIndex, spec: DocumentSpec = SPEC) -> DocumentSync:
    def load() -> LoadedGraph:
        with closing(connect(source_of(server))) as connection, connection.cursor() as cursor:
            return load_graph(cursor, spec)

    sync = DocumentSync(load, rows, index, lambda builder: LocalWriter(builder, rows, index))
    sync.prepare_index()
    return sync


@contextmanager
def instance_running(server: Any) -> Iterator[Instance]:
    instance = instance_of(server)
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def execute_with(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def fail_late(connection: Any, statement: str) -> None:
    execute_with(connection, "SET SESSION innodb_lock_wait_timeout = 600")
    execute_with(connection, statement)


def test_reads_are_never_older_than_the_log(source: Any) -> None:
    """Beside a writer that never pauses: what is read is compared with the log afterwards."""
    if source.name.startswith("mysql"):
        execute(source, "SET GLOBAL sync_binlog = 0", "SET GLOBAL binlog_group_commit_sync_delay = 3000")
    is_over = threading.Event()

    def write() -> None:
        with source.connect() as connection:
            while not is_over.is_set():
                execute_with(connection, UPDATE[0])

    writer = threading.Thread(target=write)
    writer.start()
    observed: list[tuple[tuple[Any, ...], int]] = []
    try:
        with (
            source.connect() as connection,
            connection.cursor() as cursor,
            closing(rows_of(source)) as rows,
        ):
            until = time.monotonic() + 2
            while time.monotonic() < until or len(observed) < 100:
                end = log_end(cursor)
                with rows.open_view():
                    observed.append((end, read_first(rows)))
    finally:
        is_over.set()
        writer.join()
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{log_end(cursor)[0]}'")
        commits = [row[4] for row in cursor.fetchall() if row[2] == "Xid"]
        first = 1  # of the row, before the first commit in this file
    late = [
        (end, seen, logged) for end, seen in observed if seen < (logged := first + bisect.bisect_right(commits, end[1]))
    ]
    assert not late


@pytest.fixture(params=["mariadb", "mariadb11"])
def held(request: pytest.FixtureRequest, private_server: Callable[..., Any]) -> Iterator[Any]:
    """A server with one row whose commits, from here on, are held back after they are in the log."""
    server = private_server(request.param)
    execute(
        server,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, KEY (a))",
        "INSERT INTO d.t VALUES (1, 1)",
        "CREATE TABLE d.u (id INT PRIMARY KEY, b INT)",
        "INSERT INTO d.u VALUES (2, 7)",
    )
    with late_commits(server):
        yield server


@contextmanager
def update_in_the_gap(server: Any) -> Iterator[tuple[Instance, dict[str, Any]]]:
    """An update that is in the log and that a plain SELECT does not see yet."""
    with instance_running(server) as instance:
        start = instance.store.latest
        writer = threading.Thread(target=execute, args=(server, "UPDATE d.t SET a = 2 WHERE id = 1"))
        writer.start()
        try:
            *_, event = changes_until(instance, "d.t", 2, start)
            assert (event["_change_type"], event["a"]) == ("update_postimage", 2)
            with server.connect() as connection, connection.cursor() as cursor:
                assert value(cursor) == 1, "the trap is set: a plain SELECT still sees the old row"
            with released_soon(server):
                yield instance, event
        finally:
            writer.join()


class NaiveRows(SourceRows):
    """Reads as soon as it is asked to, as one would who knows nothing of the gap."""

    @contextmanager
    def open_view(self) -> Iterator[None]:
        self._connect()
        execute_with(self._connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        yield
        execute_with(self._connection, "ROLLBACK")


def test_a_document_is_never_older_than_the_event_that_named_it(held: Any, tmp_path: Path) -> None:
    with (
        update_in_the_gap(held) as (_, event),
        closing(NaiveRows(source_of(held), DOCUMENT_DECODING)) as naive,
        closing(rows_of(held)) as rows,
        EmbeddedIndex.open(tmp_path) as index,
    ):
        changes = batch(change(TABLE, event["_seq"], {"id": 1, "a": 1}, {"id": 1, "a": 2}))
        sync_of(held, naive, index).apply_changes(changes)
        assert index.get("1") == {"a": 1}, "a naive read makes a document that is stale for good"
        sync_of(held, rows, index).apply_changes(changes)
        assert index.get("1") == {"a": 2}


def test_a_lookup_of_documents_is_never_older_than_the_event_that_named_it(held: Any, tmp_path: Path) -> None:
    """The row that refers to the changed one was itself written in the gap: the lookup must find it."""
    spec = {"table": "d.t", "fields": ["a"], "joins": {"u": {"table": "d.u", "on": {"a": "id"}, "fields": ["b"]}}}
    joined = DocumentSpec.model_validate({"index": "t", "root": spec})
    with (
        update_in_the_gap(held) as (_, event),
        closing(NaiveRows(source_of(held), DOCUMENT_DECODING)) as naive,
        closing(rows_of(held)) as rows,
        EmbeddedIndex.open(tmp_path) as index,
    ):
        changes = batch(change(TableName("d", "u"), event["_seq"], after={"id": 2, "b": 7}))
        sync_of(held, naive, index, joined).apply_changes(changes)
        assert index.get("1") is None, "a naive lookup finds no document that refers to the row"
        sync_of(held, rows, index, joined).apply_changes(changes)
        assert index.get("1") == {"a": 2, "u": {"b": 7}}


def test_a_first_load_sees_all_that_was_in_the_log_when_it_began(held: Any, tmp_path: Path) -> None:
    with (
        update_in_the_gap(held) as (instance, _),
        closing(rows_of(held)) as rows,
        EmbeddedIndex.open(tmp_path) as index,
    ):
        sync_of(held, rows, index).load_all(int(Sequence.from_position(instance.store.latest)))
        assert index.get("1") == {"a": 2}


def test_without_gtids_and_statements_it_is_said_what_is_missing(private_server: Callable[..., Any]) -> None:
    server = private_server("mysql80")
    execute(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in TO_OFF))
    execute(
        server,
        "CREATE USER few@'%' IDENTIFIED WITH mysql_native_password BY 'few'",
        "GRANT REPLICATION CLIENT ON *.* TO few@'%'",
    )
    few = source_of(server).model_copy(update={"user": "few", "password": SecretStr("few")})
    with (
        closing(SourceRows(few, DOCUMENT_DECODING)) as rows,
        pytest.raises(AuthenticationError, match="switch on gtid_mode, or give the account SELECT on performance_sch"),
        rows.open_view(),
    ):
        pass
    execute(
        server, "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'events_statements_current'"
    )
    with (
        closing(rows_of(server)) as rows,
        pytest.raises(ConfigurationError, match="performance_schema must show running statements"),
        rows.open_view(),
    ):
        pass
    execute(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in (*reversed(TO_OFF[:-1]), "ON")))
    with server.connect() as connection, connection.cursor() as cursor:

        def run(sql: str) -> Any:
            cursor.execute(sql)
            return cursor.fetchall()

        LogVisibility(run).wait(DEADLINE_S)
