"""Snapshots of tables on real servers: exact reads at known positions, faults, and input that makes no sense."""

import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
import pytest

from penstock.config import SourceSettings
from penstock.errors import AuthenticationError, ConfigurationError, PenstockError, SchemaError, SourceConnectionError
from penstock.model import Position, TableName
from penstock.snapshot import reader as snapshot_reader
from penstock.snapshot.chunks import Chunk, ChunkSize
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.reader import ChunkReader
from penstock.snapshot.result_set import ResultSet
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.source.consistent_read import ConsistentRead, Watermark
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, source_of

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
NewDatabase = Callable[[Any], str]


@pytest.fixture(params=_SERVERS)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def _fill(server: DatabaseServer, schema: str, rows: int = 1000) -> TableName:
    values = ", ".join(f"({i}, 'row {i}')" for i in range(rows))
    execute(
        server,
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, name VARCHAR(40))",
        f"INSERT INTO {schema}.t VALUES {values}",
        f"ANALYZE TABLE {schema}.t",
    )
    return TableName(schema, "t")


def _rows(chunks: Any) -> dict[int, str]:
    table = pa.Table.from_batches([batch for rows in chunks for batch in rows.batches])
    return dict(zip(table.column("id").to_pylist(), table.column("name").to_pylist(), strict=True))


def test_a_quiet_table_is_read_at_the_end_of_the_log(server: DatabaseServer, database: NewDatabase) -> None:
    name = _fill(server, database(server))
    (rows,) = TableSnapshot(source_of(server), name)
    assert rows.rows == 1000
    assert rows.watermark is not None
    assert rows.watermark.is_exact
    assert rows.watermark.low == end_of(server)


def test_a_read_sees_what_is_before_its_low_watermark_and_nothing_behind_its_high_one(
    server: DatabaseServer, database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change at each seam: before the view is opened, between its opening and the read, and after the read."""
    name = _fill(server, database(server), 10)
    seams: list[tuple[str, Any]] = []

    def change(seam: str) -> None:
        execute(server, f"UPDATE {name} SET name = '{seam}' WHERE id = {len(seams)}")
        seams.append((seam, end_of(server)))

    class Opened(ConsistentRead):
        def open(self) -> Any:
            change("before the view")
            watermark = super().open()
            change("after the view was opened")
            return watermark

    monkeypatch.setattr(snapshot_reader, "ConsistentRead", Opened)
    with ChunkReader(source_of(server), on_rows=lambda rows: change(f"after {rows} rows")) as reader:
        rows = reader.read(TableSnapshot(source_of(server), name).table, Chunk(None, None))
    assert rows.watermark is not None
    rows_read = _rows([rows])
    for number, (seam, position) in enumerate(seams):
        if position <= rows.watermark.low:
            assert rows_read[number] == seam
        if position > rows.watermark.high:
            assert rows_read[number] == f"row {number}", seam
    assert [seam for seam, position in seams if position <= rows.watermark.low] == ["before the view"]
    assert [seam for seam, position in seams if position > rows.watermark.high] == [
        "after the view was opened",
        "after 10 rows",
    ]


def test_watermarks_hold_under_load(server: DatabaseServer, database: NewDatabase) -> None:
    """Rows have a counter that each commit raises: a read has one value of it, which the log's end at the watermark
    confirms."""
    name = _fill(server, database(server), 200)
    execute(server, f"ALTER TABLE {name} ADD counter BIGINT NOT NULL DEFAULT 0")
    stop, commits = threading.Event(), dict[Any, int]()

    def write() -> None:
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            count = 0
            while not stop.is_set():
                count += 1
                cursor.execute(f"UPDATE {name} SET counter = {count}")
                connection.commit()
                commits[count] = end_of(server)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert poll_until(lambda: len(commits) > 5, 30)
        snapshot = TableSnapshot(source_of(server), name, SnapshotOptions(chunk=ChunkSize(50)))
        chunks = [rows for _ in range(5) for rows in snapshot]
    finally:
        stop.set()
        thread.join()
    for rows in chunks:
        assert rows.watermark is not None
        values = {value for batch in rows.batches for value in batch.column("counter").to_pylist()}
        if rows.rows:
            (value,) = values
            # Each commit ends at its position: nothing is missing before `low`, nothing is there from behind `high`.
            assert value >= max((n for n, end in commits.items() if end <= rows.watermark.low), default=0)
            assert commits.get(value, rows.watermark.high) <= rows.watermark.high


@pytest.mark.parametrize("flavour", ["mariadb", "mariadb11"])
def test_mariadb_says_the_exact_position_under_load(
    flavour: str, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = _fill(server, database(server), 10)
    stop = threading.Event()

    def write() -> None:
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute(f"UPDATE {name} SET name = CONCAT(name, 'x') WHERE id = 1 AND LENGTH(name) < 30")
                cursor.execute(f"UPDATE {name} SET name = 'y' WHERE id = 1")
                connection.commit()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        marks = [rows.watermark for _ in range(20) for rows in TableSnapshot(source_of(server), name)]
    finally:
        stop.set()
        thread.join()
    assert all(mark is not None and mark.is_exact for mark in marks)


@pytest.mark.campaign
@pytest.mark.parametrize("flavour", ["mariadb", "mariadb11"])
def test_watermarks_hold_beside_xa_commits(flavour: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    """MariaDB counts an XA COMMIT in the position of a snapshot a moment before its rows can be seen."""
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = _fill(server, database(server), 1)
    execute(server, f"ALTER TABLE {name} ADD counter BIGINT NOT NULL DEFAULT 0")
    stop, commits = threading.Event(), list[tuple[Position, int]]()

    def write() -> None:
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                count, xid = len(commits) + 1, f"'{name.schema}-{len(commits)}'"
                cursor.execute(f"XA START {xid}")
                cursor.execute(f"UPDATE {name} SET counter = {count}")
                for statement in ("END", "PREPARE", "COMMIT"):
                    cursor.execute(f"XA {statement} {xid}")
                cursor.execute("SHOW MASTER STATUS")
                commits.append((Position(*cursor.fetchone()[:2]), count))  # type: ignore[index]

    views: list[tuple[Watermark, int]] = []
    thread = threading.Thread(target=write)
    thread.start()
    settings, deadline = source_of(server), time.monotonic() + 20
    try:
        with closing(connect_for_snapshot(settings)) as connection:
            reading = ConsistentRead(connection, settings)
            while time.monotonic() < deadline:
                watermark = reading.open()
                assert watermark is not None
                views.append((watermark, int(reading.query(f"SELECT counter FROM {name}")[0][0])))
                reading.close()
    finally:
        stop.set()
        thread.join()
    ends = [end for end, _ in commits]
    for watermark, counter in views:
        assert counter >= bisect_right(ends, watermark.low), "the view has not what is before its low watermark"
        assert counter <= bisect_left(ends, watermark.high) + 1
    assert len(views) > 100


def test_a_killed_connection_reads_its_chunk_again(server: DatabaseServer, database: NewDatabase) -> None:
    name = _fill(server, database(server))
    kills = 0

    def kill(_: int) -> None:
        nonlocal kills
        kills += 1
        if kills == 1:
            connection = reader._connection
            execute(server, f"KILL {connection.thread_id()}")

    with ChunkReader(source_of(server), on_rows=kill) as reader:
        table = TableSnapshot(source_of(server), name).table
        first = reader.read(table, Chunk(None, ("499",)))
        second = reader.read(table, Chunk(("499",), None))
    assert _rows([first, second]) == {i: f"row {i}" for i in range(1000)}
    assert kills > 2


def test_a_source_that_stays_away_is_an_error_in_the_end(mariadb: DatabaseServer, database: NewDatabase) -> None:
    name = _fill(mariadb, database(mariadb), 10)
    table = TableSnapshot(source_of(mariadb), name).table
    gone = source_of(mariadb).model_copy(update={"port": 1})
    with ChunkReader(gone, retry_timeout_s=0.5) as reader, pytest.raises(SourceConnectionError, match="is it running"):
        reader.read(table, Chunk(None, None))


def test_rows_of_many_packets_come_whole(server: DatabaseServer, database: NewDatabase) -> None:
    schema = database(server)
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.max_allowed_packet")
        ((most,),) = cursor.fetchall()
        cursor.execute("SET GLOBAL max_allowed_packet = 128 * 1024 * 1024")
    try:
        execute(
            server,
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT)",
            f"INSERT INTO {schema}.t VALUES (1, REPEAT('a', 17000000), REPEAT('b', 17000000)), (2, 'x', 'y'),"
            f" (3, REPEAT('c', 5000000), NULL), (4, REPEAT('d', 16777215 - 9), NULL), (5, NULL, '')",
        )
        (rows,) = TableSnapshot(
            source_of(server), TableName(schema, "t"), SnapshotOptions(chunk=ChunkSize(bytes=1 << 30))
        )
    finally:
        execute(server, f"SET GLOBAL max_allowed_packet = {most}")
    table = pa.Table.from_batches(rows.batches)
    assert [len(value or b"") for value in table.column("a").to_pylist()] == [17000000, 1, 5000000, 16777215 - 9, 0]
    assert [None if v is None else len(v) for v in table.column("b").to_pylist()] == [17000000, 1, None, None, 0]
    assert table.column("id").to_pylist() == [1, 2, 3, 4, 5]


@contextmanager
def _user(server: DatabaseServer, *grants: str) -> Any:
    execute(server, "DROP USER IF EXISTS 'reader'@'%'", "CREATE USER 'reader'@'%' IDENTIFIED BY 'a-Secret-1'", *grants)
    try:
        yield source_of(server).model_copy(
            update={"user": "reader", "password": SourceSettings(password="a-Secret-1").password}  # type: ignore[reportArgumentType]
        )
    finally:
        execute(server, "DROP USER 'reader'@'%'")


def test_bad_input_is_refused_with_words(server: DatabaseServer, database: NewDatabase) -> None:
    schema = database(server)
    name = _fill(server, schema, 3)
    settings = source_of(server)
    execute(
        server,
        f"CREATE VIEW {schema}.v AS SELECT * FROM {schema}.t",
        f"CREATE TABLE {schema}.m (id INT PRIMARY KEY) ENGINE=MyISAM",
    )
    for table, error, words in (
        ("v", SchemaError, "is a view"),
        ("m", SchemaError, "ENGINE=InnoDB"),
        ("nothing", SchemaError, "there is no table"),
    ):
        with pytest.raises(error, match=words):
            TableSnapshot(settings, TableName(schema, table))
    with pytest.raises(ConfigurationError, match="has no column nam; it has id, name"):
        TableSnapshot(settings, name, SnapshotOptions(columns=("id", "nam")))
    with _user(server, f"GRANT SELECT ON {schema}.* TO 'reader'@'%'") as poor, pytest.raises(AuthenticationError):
        list(TableSnapshot(poor, name))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE {t}", "doesn't exist|definition has changed"),
        ("ALTER TABLE {t} DROP COLUMN name", "altered meanwhile|Unknown column"),
        ("ALTER TABLE {t} MODIFY name INT", "altered meanwhile"),
    ],
)
def test_a_table_that_is_changed_meanwhile_is_an_error(
    server: DatabaseServer, database: NewDatabase, statement: str, words: str
) -> None:
    name = _fill(server, database(server), 10)
    execute(server, f"UPDATE {name} SET name = '7'")
    snapshot = TableSnapshot(source_of(server), name)
    execute(server, statement.format(t=name))
    with pytest.raises(PenstockError, match=words):
        list(snapshot)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("MODIFY note VARCHAR(20) CHARACTER SET utf8mb4", "column note of .* altered meanwhile"),
        ("MODIFY kind ENUM('b', 'a')", "column kind of .* altered meanwhile"),
        ("MODIFY amount INT UNSIGNED", "column amount of .* altered meanwhile"),
        ("MODIFY day DATETIME", "column day of .* altered meanwhile"),
        ("MODIFY code VARCHAR(9) COLLATE latin1_bin NOT NULL", "the key of .* altered meanwhile"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (amount)", "the key of .* altered meanwhile"),
    ],
)
def test_a_table_that_is_altered_between_two_chunks_is_an_error(
    server: DatabaseServer, database: NewDatabase, statement: str, words: str
) -> None:
    """The values would have the same width and form before and after, or the limits of chunks another order."""
    name = TableName(database(server), "t")
    execute(
        server,
        f"CREATE TABLE {name} (code VARCHAR(9) NOT NULL, note VARCHAR(20), kind ENUM('a', 'b'), amount INT NOT NULL,"
        " day DATE, PRIMARY KEY (code)) CHARSET latin1 COLLATE latin1_swedish_ci",
        f"INSERT INTO {name} VALUES ('a', 'ä', 'a', 1, '2024-02-29'), ('B', 'ö', 'b', 2, '2024-02-29'),"
        " ('c', 'ü', 'b', 3, '2024-02-29')",
    )
    table = TableSnapshot(source_of(server), name).table
    first, second = Chunk(None, ("61",)), Chunk(("61",), None)  # the bytes of a
    with ChunkReader(source_of(server)) as reader:
        (batch,) = reader.read(table, first).batches
        assert batch.column("note").to_pylist() == ["ä"]
        execute(server, f"ALTER TABLE {name} ADD added INT, MODIFY note VARCHAR(30) NOT NULL DEFAULT 'x'")
        assert reader.read(table, second).rows == 2, "nothing that the rows depend on was altered"
        execute(server, f"ALTER TABLE {name} {statement}")
        with pytest.raises(SchemaError, match=words):
            reader.read(table, second)


def test_columns_can_be_chosen(mariadb: DatabaseServer, database: NewDatabase) -> None:
    name = _fill(mariadb, database(mariadb), 3)
    (rows,) = TableSnapshot(source_of(mariadb), name, SnapshotOptions(columns=("name",)))
    assert pa.Table.from_batches(rows.batches).to_pydict() == {"name": ["row 0", "row 1", "row 2"]}


def test_a_snapshot_that_is_left_early_leaves_no_connection(mariadb: DatabaseServer, database: NewDatabase) -> None:
    name = _fill(mariadb, database(mariadb))

    def readers() -> int:
        with closing(mariadb.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT `id`%%'")
            ((count,),) = cursor.fetchall()
            return count

    iterator = iter(TableSnapshot(source_of(mariadb), name, SnapshotOptions(chunk=ChunkSize(10))))
    next(iterator)
    iterator.close()  # type: ignore[reportAttributeAccessIssue] - it is a generator
    assert poll_until(lambda: readers() == 0, 10)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("snapshot")]


def test_an_error_inside_the_rows_is_raised(mariadb: DatabaseServer, database: NewDatabase) -> None:
    """The server may fail after the first rows: a subquery that has two rows for one of them."""
    name = _fill(mariadb, database(mariadb), 3)
    table = TableSnapshot(source_of(mariadb), name).table
    settings = source_of(mariadb)
    sql = f"SELECT id, (SELECT name FROM {name} AS o WHERE o.id <= t.id) FROM {name} AS t"
    with closing(connect_for_snapshot(settings)) as connection:
        from penstock.binlog.values.column import DEFAULT
        from penstock.snapshot.columns import RowDecoder

        with pytest.raises(PenstockError, match="more than 1 row"):
            list(ResultSet(connection, settings, RowDecoder(table.columns, DEFAULT), sql))


def test_a_chunk_that_takes_too_long_is_read_in_pieces(server: DatabaseServer, database: NewDatabase) -> None:
    """No read view is open for longer than allowed, also when the snapshot is paused in the middle of a chunk."""
    name = _fill(server, database(server))
    pacer = Pacer()
    reads = 0

    def pause_once(_: int) -> None:
        nonlocal reads
        reads += 1
        if reads == 1:
            pacer.pause()
            threading.Timer(1.0, pacer.resume).start()

    with ChunkReader(source_of(server), pacer=pacer, max_view_age_s=0.3, on_rows=pause_once) as reader:
        rows = reader.read(TableSnapshot(source_of(server), name).table, Chunk(None, None))
    assert _rows([rows]) == {i: f"row {i}" for i in range(1000)}
    assert reads > 2
    assert rows.watermark is not None
    assert rows.watermark.low <= rows.watermark.high


def test_a_connection_that_breaks_while_a_chunk_is_split_is_opened_again(
    mariadb: DatabaseServer, database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = _fill(mariadb, database(mariadb))
    splits: list[int] = []
    split = snapshot_reader.split_chunk

    def split_killed(cursor: Any, *arguments: Any) -> Any:
        splits.append(cursor.connection.thread_id())
        if len(splits) == 1:
            execute(mariadb, f"KILL {splits[0]}")
        return split(cursor, *arguments)

    monkeypatch.setattr(snapshot_reader, "split_chunk", split_killed)
    views = 0

    class ExpiringPacer(Pacer):
        """Lets the first read view become too old."""

        def wait_for(self, rows: int, deadline: float = math.inf) -> bool:
            nonlocal views
            views += 1
            return views > 1 and super().wait_for(rows, deadline)

    with ChunkReader(source_of(mariadb), pacer=ExpiringPacer()) as reader:
        rows = reader.read(TableSnapshot(source_of(mariadb), name).table, Chunk(None, None))
    assert _rows([rows]) == {i: f"row {i}" for i in range(1000)}
    assert len(splits) == 2
