"""XA transactions of real servers: rows come with their XA COMMIT, at its position, and never when rolled back."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.canal import messages
from penstock.canal.types import CanalEventType, EntryType
from penstock.capture.prepared import MEMORY_BYTES
from penstock.client.canal import CanalConnector
from penstock.config import DirectorySettings, InstanceSettings
from penstock.errors import PositionLostError
from penstock.instance import Instance, InstanceState
from penstock.instance.report import report_instance
from penstock.model import Position, TableName
from penstock.testing import DatabaseServer, free_port
from tests.services.mysql import MySQL
from tests.support.canal_port import connected, listening
from tests.support.capture import execute, is_purged, poll
from tests.support.cluster import ServerProcess
from tests.support.following import following
from tests.support.replication import has, pair

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
NewDatabase = Callable[[DatabaseServer], str]


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


class Reader:
    """Applies the changes of a table, as a consumer does, and remembers each of them."""

    def __init__(self, instance: Instance, table: str) -> None:
        self.table = TableName.parse(table)
        self.at = instance.store.latest
        self.changes: list[dict[str, Any]] = []
        self.state: dict[int, Any] = {}

    def drain(self, instance: Instance) -> None:
        """All up to where the log ends now."""
        end, deadline = instance.source_log.end(), time.monotonic() + 60
        while self.at < end:
            assert time.monotonic() < deadline, f"{self.at} of {end}; {instance.status()}"
            after = instance.find_batch_end(self.at, 1 << 26, 0.5)
            if after > self.at:
                self.changes += changes_between(instance, self.table, self.at, after)
            self.at = after
        self.state = applied(self.changes)


def changes_between(instance: Instance, table: TableName, start: Position, end: Position) -> list[dict[str, Any]]:
    (schema,) = instance.describe_tables([table])
    fields = arrow_fields_of_table(schema)
    changes = list[dict[str, Any]]()
    for block in instance.read(start, end):
        for batch in decode_changes(block, table, fields):
            batch.validate(full=True)
            changes += batch.to_pylist()
    return changes


def applied(changes: list[dict[str, Any]]) -> dict[int, Any]:
    state = dict[int, Any]()
    for change in changes:
        match change["_change_type"]:
            case "insert" | "update_postimage":
                state[change["id"]] = change["v"]
            case "delete":
                del state[change["id"]]
            case _:
                assert state[change["id"]] == change["v"], "an update of a row that is not as it was"
    return state


def rows_of(server: DatabaseServer, table: str) -> dict[int, Any]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM {table}")
        return dict(cursor.fetchall())


def new_table(server: DatabaseServer, name: str) -> str:
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(200)) DEFAULT CHARSET utf8mb4")
    return f"{name}.t"


def xa(cursor: Any, xid: str, *statements: str) -> None:
    """Up to where it can be prepared."""
    for statement in (f"XA START {xid}", *statements, f"XA END {xid}"):
        cursor.execute(statement)


@contextmanager
def sessions(server: DatabaseServer, count: int) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect(autocommit=True)) for _ in range(count)]
        cursors = [stack.enter_context(connection.cursor()) for connection in connections]
        for cursor in cursors:
            # Without locks on gaps, which would make sessions wait for each other.
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        yield cursors


def test_rows_come_with_the_commit_and_never_before_it(server: DatabaseServer, database: NewDatabase) -> None:
    table = new_table(server, database(server))
    with following(server) as instance, sessions(server, 2) as (first, other):
        reader = Reader(instance, table)
        begin = reader.at
        xa(
            first,
            "'a'",
            f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')",
            f"UPDATE {table} SET v = 'x' WHERE id = 2",
        )
        first.execute("XA PREPARE 'a'")
        xa(other, "'b'", f"INSERT INTO {table} VALUES (3, 'three')")
        other.execute("XA COMMIT 'b' ONE PHASE")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [3], "what is prepared is not delivered"
        assert poll(lambda: report_instance(instance)["prepared"]["transactions"][0]["rows"] == 3)
        told = report_instance(instance)["prepared"]
        assert (told["count"], told["transactions"][0]["xid"]) == (1, "X'61',X'',1")
        assert abs(told["since"] - time.time()) < 600
        xa(other, "'c'", f"INSERT INTO {table} VALUES (4, 'four')")
        other.execute("XA PREPARE 'c'")
        other.execute("XA ROLLBACK 'c'")
        before = instance.source_log.end()
        first.execute("XA COMMIT 'a'")
        after = instance.source_log.end()
        execute(server, f"INSERT INTO {table} VALUES (5, 'five')")
        reader.drain(instance)
        kinds = [(row["_change_type"], row["id"]) for row in reader.changes[1:]]
        assert kinds == [("insert", 1), ("insert", 2), ("update_preimage", 2), ("update_postimage", 2), ("insert", 5)]
        assert reader.state == rows_of(server, table) == {1: "one", 2: "x", 3: "three", 5: "five"}
        for row in reader.changes[1:5]:
            assert before.offset <= row["_offset"] < after.offset
            assert row["_commit_version"] & ((1 << 34) - 1) == before.offset
            assert row["_gtid"] == reader.changes[1]["_gtid"] != reader.changes[0]["_gtid"]
        assert report_instance(instance)["prepared"]["count"] == 0
        orders = [(row["_seq"], row["_row"]) for row in reader.changes]
        assert orders == sorted({*orders})
        # The same from the source's log, from before the prepare and from between the prepare and the commit.
        log = instance.source_log
        again = [row for block in log.read_log(begin, reader.at) for row in in_table(block, instance, table)]
        assert again == reader.changes
        late = [row for block in log.read_log(before, reader.at) for row in in_table(block, instance, table)]
        assert late == reader.changes[1:]


LARGE_FORMATS = ("'a','b',2147483648", "'a','b',4294967295", "'a','b',4294967303")


def test_ids_of_every_form_are_found_again(server: DatabaseServer, database: NewDatabase) -> None:
    """MySQL takes numbers of formats that its own events have no room for; MariaDB refuses them."""
    table = new_table(server, database(server))
    ids = ["'q''\"\\\\'", "X'00ff','B',0", "'Ab'", f"'x','{'y' * 64}',2147483647"]
    ids += LARGE_FORMATS if isinstance(server, MySQL) else ()
    with following(server) as instance, sessions(server, 2) as (first, other):
        reader = Reader(instance, table)
        for number, xid in enumerate(ids):
            xa(first, xid, f"INSERT INTO {table} VALUES ({number}, 'prepared')")
            first.execute(f"XA PREPARE {xid}")
            other.execute(f"INSERT INTO {table} VALUES ({number + 100}, 'between')")
            first.execute(f"XA COMMIT {xid}")
        reader.drain(instance)
        assert reader.state == rows_of(server, table)
        assert len(reader.state) == 2 * len(ids)
        assert report_instance(instance)["prepared"]["count"] == 0


MARIADB_COMPRESSED = {"log_bin_compress": 1, "log_bin_compress_min_len": 10}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("mariadb", MARIADB_COMPRESSED),
        ("mariadb11", MARIADB_COMPRESSED),
        ("mysql9", {"binlog_transaction_compression": "ON"}),
    ],
)
def test_compressed_rows_come_with_the_commit(
    private_server: Callable[..., Any], kind: str, options: dict[str, Any]
) -> None:
    """MariaDB compresses rows and the statements XA END and XA COMMIT, MySQL all up to XA PREPARE as one payload."""
    source = private_server(kind, options=options)
    execute(source, "CREATE DATABASE packed")
    table = new_table(source, "packed")
    with following(source) as instance, sessions(source, 2) as (first, other):
        reader = Reader(instance, table)
        begin, xid = reader.at, f"'{'a' * 40}'"
        xa(first, xid, f"INSERT INTO {table} VALUES (1, REPEAT('x', 200))", f"UPDATE {table} SET v = 'u' WHERE id = 1")
        first.execute(f"XA PREPARE {xid}")
        execute(source, f"INSERT INTO {table} VALUES (2, REPEAT('y', 200))")
        xa(other, "'b'", f"INSERT INTO {table} VALUES (3, REPEAT('z', 200))")
        other.execute("XA PREPARE 'b'")
        other.execute("XA ROLLBACK 'b'")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [2]
        first.execute(f"XA COMMIT {xid}")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [2, 1, 1, 1]
        assert reader.state == rows_of(source, table)
        assert [row["_seq"] for row in reader.changes] == sorted(row["_seq"] for row in reader.changes)
        assert changes_between(instance, reader.table, begin, reader.at) == reader.changes


def in_table(block: Any, instance: Instance, table: str) -> list[dict[str, Any]]:
    (schema,) = instance.describe_tables([TableName.parse(table)])
    return [
        row for batch in decode_changes(block, schema.name, arrow_fields_of_table(schema)) for row in batch.to_pylist()
    ]


def test_random_transactions_leave_what_the_table_has(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Several sessions, rotations and restarts; the reader has at each look what others can see in the table."""
    choice = random.Random(server.port)
    table = new_table(server, database(server))
    has_folder = request.node.callspec.params["server"] in {"mariadb", "mysql57", "mysql9"}
    settings: dict[str, Any] = {"data_dir": tmp_path} if has_folder else {}
    with ExitStack() as stack, sessions(server, 4) as cursors:
        instance = stack.enter_context(following(server, **settings))
        reader = Reader(instance, table)
        begin, prepared, count = reader.at, dict[int, str](), 0
        for step in range(100):
            which = choice.randrange(len(cursors))
            cursor = cursors[which]
            if which in prepared:
                outcome = choice.choice(["COMMIT", "COMMIT", "ROLLBACK"])
                cursor.execute(f"XA {outcome} {prepared.pop(which)}")
            else:
                # Each session has rows of its own, so that none waits for another's locks.
                ids = [which * 1000 + choice.randrange(20) for _ in range(3)]
                writers = [
                    f"REPLACE INTO {table} VALUES ({ids[0]}, 'v{count}')",
                    f"UPDATE {table} SET v = CONCAT('u{count} ', v) WHERE id = {ids[1]}",
                    f"DELETE FROM {table} WHERE id = {ids[2]}",
                ]
                count += 1
                # An id is used again once it is free.
                xid = f"'{table}-{which}'"
                way = choice.randrange(4)
                if way == 0:
                    cursor.execute(writers[0])
                else:
                    xa(cursor, xid, *writers)
                    cursor.execute(f"XA COMMIT {xid} ONE PHASE" if way == 1 else f"XA PREPARE {xid}")
                    if way > 1:
                        prepared[which] = xid
            if step % 17 == 5:
                execute(server, "FLUSH BINARY LOGS")
            if step % 23 == 7:
                reader.drain(instance)
                stack.close()
                instance = stack.enter_context(following(server, start=str(reader.at), **settings))
            if step % 5 == 0:
                reader.drain(instance)
                assert reader.state == rows_of(server, table)
        for which, xid in prepared.items():
            cursors[which].execute(f"XA COMMIT {xid}")
        reader.drain(instance)
        assert reader.state == rows_of(server, table)
        assert changes_between(instance, reader.table, begin, reader.at) == reader.changes, "read again from the log"
        assert [row["_seq"] for row in reader.changes] == sorted(row["_seq"] for row in reader.changes)


@pytest.mark.parametrize(
    ("kind", "is_saved"),
    [("mariadb11", True), ("mysql80", True), ("mariadb", False), ("mysql57", False), ("mysql9", False)],
)
def test_a_standby_continues_with_what_is_prepared(
    private_server: Callable[..., Any], kind: str, tmp_path: Path, is_saved: bool
) -> None:
    """By GTIDs: with what was kept of it, or without, as after a start at the standby."""
    first, second = pair(private_server, kind)
    table = new_table(first, "replicated")
    with following(first, second, data_dir=tmp_path) as instance:
        reader = Reader(instance, table)
        with sessions(first, 1) as (cursor,):
            xa(cursor, "'a'", f"INSERT INTO {table} VALUES (1, 'one')")
            cursor.execute("XA PREPARE 'a'")
        execute(first, f"INSERT INTO {table} VALUES (2, 'two')")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [2]
        assert poll(lambda: has(second, "XA RECOVER") and has(second, f"SELECT 1 FROM {table} WHERE id = 2"))
        if not is_saved:
            instance.components.prepared.switch_to(None, None)  # as if nothing was known of it
        first.kill()
        assert poll(lambda: instance.store.latest.epoch == 1), instance.status()
        stop = "STOP REPLICA" if kind == "mysql9" else "STOP SLAVE"
        execute(second, stop)
        assert poll(lambda: is_done(second, "XA COMMIT 'a'"))
        execute(second, f"INSERT INTO {table} VALUES (3, 'three')")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [2, 1, 3]
        assert rows_of(second, table) == reader.state


def is_done(server: DatabaseServer, statement: str) -> bool:
    """A session that has gone may still hold the transaction for a moment."""
    try:
        execute(server, statement)
    except pymysql.MySQLError:
        return False
    return True


@pytest.mark.parametrize("kind", ["mariadb11", "mysql57", "mysql9"])
def test_what_is_prepared_outlives_a_purged_log_and_a_crash_of_the_source(
    private_server: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    """With a folder its rows are kept; without one that is an error which names them."""
    source = private_server(kind)
    execute(source, "CREATE DATABASE replicated")
    table = new_table(source, "replicated")
    with following(source, data_dir=tmp_path) as instance:
        reader = Reader(instance, table)
        with sessions(source, 1) as (cursor,):
            xa(cursor, "'a'", f"INSERT INTO {table} VALUES (1, 'one')")
            cursor.execute("XA PREPARE 'a'")
        reader.drain(instance)
    if kind == "mysql57":
        source.stop()  # a crash may lose what it has prepared
    else:
        source.kill()
    source.start()
    execute(source, "FLUSH BINARY LOGS", f"INSERT INTO {table} VALUES (2, 'two')")
    with following(source, data_dir=tmp_path, start=str(reader.at)) as instance:
        reader.drain(instance)
    assert poll(lambda: is_purged(source))
    assert poll(lambda: is_done(source, "XA COMMIT 'a'"))
    with following(source, data_dir=tmp_path, start=str(reader.at)) as instance:
        assert report_instance(instance)["prepared"]["count"] <= 1
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == [2, 1]
    with following(source, start="earliest", on_purged="stop") as instance:
        assert poll(lambda: instance.state is InstanceState.FAILED)
        assert isinstance(instance.failure, PositionLostError)
        assert "XA COMMIT X'61',X'',1" in str(instance.failure)
    with following(source, start="earliest", on_purged="latest") as instance:
        other = Reader(instance, table)
        execute(source, f"INSERT INTO {table} VALUES (9, 'nine')")
        other.drain(instance)
        assert instance.state is InstanceState.FOLLOWING


@pytest.mark.parametrize(("kind", "has_folder"), [("mariadb11", True), ("mariadb", False), ("mysql80", False)])
def test_a_large_one_takes_no_memory_while_it_is_prepared(
    kind: str, request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path, has_folder: bool
) -> None:
    server = request.getfixturevalue(kind)
    name = database(server)
    table, rows = f"{name}.t", 200
    execute(server, f"CREATE TABLE {table} (id INT PRIMARY KEY, v LONGTEXT)")
    settings: dict[str, Any] = {"data_dir": tmp_path} if has_folder else {}
    with following(server, **settings) as instance:
        reader = Reader(instance, table)
        with sessions(server, 1) as (cursor,):
            text = "REPEAT('x', 100000)"
            inserts = [
                f"INSERT INTO {table} VALUES " + ",".join(f"({number}, {text})" for number in range(at, at + 20))
                for at in range(0, rows, 20)
            ]
            xa(cursor, "'large'", *inserts)
            cursor.execute("XA PREPARE 'large'")
            reader.drain(instance)
            prepared = instance.components.prepared
            assert prepared.report()["transactions"][0]["rows"] == rows
            assert prepared.held_bytes < MEMORY_BYTES // 4
            assert not reader.changes
            cursor.execute("XA COMMIT 'large'")
        reader.drain(instance)
        assert [row["id"] for row in reader.changes] == list(range(rows))


def test_canal_clients_get_the_rows_and_then_the_commit(server: DatabaseServer, database: NewDatabase) -> None:
    """As canal frames them; of one that was rolled back the statement alone, and so of one with other tables only."""
    name = database(server)
    table = new_table(server, name)
    execute(server, f"CREATE TABLE {name}.other (id INT PRIMARY KEY)")
    with listening(server) as port, connected(port, rf"{name}\.t") as client, sessions(server, 1) as (cursor,):
        xa(cursor, "'a'", f"INSERT INTO {table} VALUES (1, 'one')")
        cursor.execute("XA PREPARE 'a'")
        execute(server, f"INSERT INTO {table} VALUES (2, 'two')")
        cursor.execute("XA COMMIT 'a'")
        xa(cursor, "'a'", f"INSERT INTO {table} VALUES (3, 'three')")
        cursor.execute("XA PREPARE 'a'")
        cursor.execute("XA ROLLBACK 'a'")
        xa(cursor, "'b'", f"INSERT INTO {name}.other VALUES (1)")
        cursor.execute("XA PREPARE 'b'")
        cursor.execute("XA COMMIT 'b'")
        execute(server, f"INSERT INTO {table} VALUES (9, 'nine')")
        words, deadline = list[str](), time.monotonic() + 60
        while "9" not in words:
            assert time.monotonic() < deadline, words
            words += [word for entry in client.get(100, 1).entries for word in words_of(entry)]
        begin, end = "TRANSACTIONBEGIN", "TRANSACTIONEND"
        expected = [begin, "2", end, begin, "1", end, "XACOMMIT", "XAROLLBACK", "XACOMMIT", begin, "9"]
        assert words[: len(expected)] == expected


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_a_server_that_is_killed_delivers_each_commit_and_nothing_else(
    kind: str, request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path
) -> None:
    """Killed while transactions are prepared, and while they are committed: its client gets what the table has."""
    source: DatabaseServer = request.getfixturevalue(kind)
    name = database(source)
    table = new_table(source, name)
    source_settings = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
    port = free_port()
    instance = {"destination": "default", "source": source_settings, "data_dir": str(tmp_path / "data")}
    settings = {"flight": {"port": 0}, "canal": {"port": port}, "admin": {"port": None}, "instances": [instance]}
    server, seen = ServerProcess(tmp_path, port, settings), set[str]()
    server.start()
    try:
        with CanalConnector("127.0.0.1", port, "default") as client:
            client.subscribe(rf"{name}\.t")
        with sessions(source, 4) as cursors:
            for number in range(12):
                xid, cursor = f"'k{number % 4}'", cursors[number % 4]
                if number >= 4:
                    outcome = "ROLLBACK" if number % 3 == 1 else "COMMIT"
                    cursor.execute(f"XA {outcome} {xid}")
                xa(cursor, xid, f"INSERT INTO {table} VALUES ({number}, REPEAT('x', 100))")
                cursor.execute(f"XA PREPARE {xid}")
                if number % 4 == 2:
                    server.kill()
                    (tmp_path / "log").unlink()
                    server.start()
                if number % 4 == 3:
                    seen |= canal_ids(port, {str(row) for row in rows_of(source, table)} - seen)
                    assert seen == {str(row) for row in rows_of(source, table)}
            for number in range(8, 12):
                cursors[number % 4].execute(f"XA ROLLBACK 'k{number % 4}'")
    finally:
        server.kill()


def canal_ids(port: int, wanted: set[str]) -> set[str]:
    """Ids of rows that a client gets and acks, until it has these."""
    ids, deadline = set[str](), time.monotonic() + 60
    with CanalConnector("127.0.0.1", port, "default") as client:
        while not wanted <= ids:
            assert time.monotonic() < deadline, wanted - ids
            for _, change in client.get(100, 1).row_changes():
                ids |= {row.afterColumns[0].value for row in change.rowDatas}
    return ids


def words_of(entry: Any) -> list[str]:
    """Its type, what a statement is, or the ids of its rows."""
    kind = EntryType(entry.entryType)
    if kind is not EntryType.ROWDATA:
        return [kind.name]
    change = messages.RowChange.FromString(entry.storeValue)
    return [row.afterColumns[0].value for row in change.rowDatas] or [CanalEventType(change.eventType).name]


def test_a_folder_of_files_gives_the_same(
    server: DatabaseServer, database: NewDatabase, request: pytest.FixtureRequest
) -> None:
    source = request.node.callspec.params["server"]
    with following(server) as instance, sessions(server, 1) as (cursor,):
        execute(server, "FLUSH BINARY LOGS")
        begin = instance.source_log.end()
        table = new_table(server, database(server))
        reader = Reader(instance, table)
        xa(cursor, "'f'", f"INSERT INTO {table} VALUES (1, 'one')")
        cursor.execute("XA PREPARE 'f'")
        between = instance.source_log.end()
        execute(server, f"INSERT INTO {table} VALUES (2, 'two')", "FLUSH BINARY LOGS")
        cursor.execute("XA COMMIT 'f'")
        reader.drain(instance)
        end = reader.at
    files = DirectorySettings(path=str(server.data))
    for start in (begin,) if source == "mysql57" else (begin, between):  # that one has names only with the DDL
        folder = Instance(InstanceSettings(source=files, start=f"{start.file}:{start.offset}"))
        folder.start()
        try:
            assert poll(lambda folder=folder: folder.store.latest >= end)
            rows = [row for block in folder.read(start, end) for row in in_files(block, table)]
            assert [row["_seq"] for row in rows] == [row["_seq"] for row in reader.changes]
            assert [row["id"] for row in rows] == [2, 1]
        finally:
            folder.stop()


def in_files(block: Any, table: str) -> list[dict[str, Any]]:
    name = TableName.parse(table)
    schemas = [block.schema_of(number) for number in block.tables]
    return [
        row
        for schema in schemas
        if schema.name == name
        for batch in decode_changes(block, name, arrow_fields_of_table(schema))
        for row in batch.to_pylist()
    ]
