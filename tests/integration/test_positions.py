"""The same log has the same positions, whoever reads it: from its file, from its server, and from inside of both."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.layout import EventType
from penstock.inspect.verify import verify_file
from penstock.model import Position
from penstock.source import BinlogStream
from penstock.testing import DatabaseServer, MariaDB
from tests.support.capture import end_of, execute, source_of

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_MAGIC_BYTES = 4

Event = tuple[int, int, int, int]  # position, type, transaction, bytes in the file
StartServer = Callable[..., DatabaseServer]


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def write(server: DatabaseServer, name: str) -> str:
    """A file of its own with transactions of every shape, and the name of the file."""
    execute(server, "FLUSH BINARY LOGS")
    file = end_of(server).file
    execute(
        server,
        f"USE {name}",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a LONGTEXT)",
        "CREATE TABLE m (id INT) ENGINE = MyISAM",
        "INSERT INTO t (a) VALUES ('a'), ('b')",
        "BEGIN",
        *["INSERT INTO t (a) VALUES (REPEAT('large', 30000))"] * 3,
        "SAVEPOINT s",
        "UPDATE t SET a = 'c' WHERE id < 3",
        *(["INSERT INTO m VALUES (1)"] if isinstance(server, MariaDB) else []),  # MySQL with GTIDs refuses it
        "ROLLBACK TO s",
        "DELETE FROM t WHERE id = 3",
        "COMMIT",
        "INSERT INTO m VALUES (2), (3)",
        "XA START 'x'",
        "INSERT INTO t (a) VALUES ('xa')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        "ALTER TABLE t ADD COLUMN b INT",
        "UPDATE t SET b = 1",
    )
    execute(server, "FLUSH BINARY LOGS")
    return file


def events_of(blocks: Iterable[Block | None], file: str) -> list[Event]:
    events = list[Event]()
    for block in blocks:
        if block is not None and block.file == file:
            columns = (block.column(name).tolist() for name in ("position", "kind", "transaction", "span"))
            events += zip(*columns, strict=True)
    return events


def streamed(
    server: DatabaseServer, start: Position, *, by_gtids: bool = False, annotations: bool = True
) -> list[Event]:
    """Up to the end of the file."""
    blocks = list[Block | None]()
    with BinlogStream(source_of(server), start, by_gtids=by_gtids, annotations=annotations) as stream:
        for block in stream:
            blocks.append(block)
            if stream.position.file != start.file:
                break
    return events_of(blocks, start.file)


def hold(server: DatabaseServer, file: str) -> list[Event]:
    """Every way to read the file gives the same."""
    path = server.data / file
    blocks = list(LogFile(path))
    expected = events_of(blocks, file)
    assert expected[0][0] > _MAGIC_BYTES
    # Events lie side by side; a rotation, or the end, is the last.
    assert all(event[0] + event[3] == after[0] for event, after in pairwise(expected))
    assert verify_file(path, lambda _: None).problem == ""
    assert streamed(server, Position(file, _MAGIC_BYTES)) == expected
    others = [event for event in expected if event[1] != EventType.MARIADB_ANNOTATE_ROWS]
    assert streamed(server, Position(file, _MAGIC_BYTES), annotations=False) == others
    starts = [block.boundary_after(int(i)) for block in blocks for i in block.boundaries]
    assert len(starts) > 7
    for start in starts[2:-1:3]:
        rest = [event for event in expected if event[0] >= start.offset]
        assert streamed(server, start) == rest
        assert start.gtids is not None
        events = streamed(server, start, by_gtids=True)
        transactions = {event[2] for event in rest}
        assert [event for event in events if event[2] in transactions and event[0] >= start.offset] == rest
    return expected


def test_positions_are_the_same_from_the_file_and_from_the_server(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    hold(server, write(server, database(server)))


@pytest.mark.mariadb11
@pytest.mark.parametrize(
    "options",
    [
        {"log_bin_compress": "ON", "log_bin_compress_min_len": 10, "binlog_checksum": "NONE"},
        {"binlog_legacy_event_pos": "ON"},
        {"binlog_annotate_row_events": "OFF"},
        # The cache of a large transaction becomes the next file of the log as it is.
        {"binlog_large_commit_threshold": 10 << 20},
    ],
    ids="-".join,
)
def test_positions_in_every_mode_of_mariadb_11(private_server: StartServer, options: dict[str, str | int]) -> None:
    server = private_server("mariadb11", options=options)
    execute(server, "CREATE DATABASE shop")
    hold(server, write(server, "shop"))
    if "binlog_large_commit_threshold" in options:
        statements = ["BEGIN", *["INSERT INTO shop.t (a) VALUES (REPEAT('x', 900000))"] * 15, "COMMIT"]
        execute(server, *statements, "UPDATE shop.t SET b = 2 WHERE id = 1", "FLUSH BINARY LOGS")
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            (file, _size), *_ = [row for row in cursor.fetchall() if int(row[1]) > 10 << 20]
        large = events_of(LogFile(server.data / file), file)
        assert streamed(server, Position(file, _MAGIC_BYTES)) == large
