"""Commits that are in the log before others can see them: the gap is made at will, for as long as a test likes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from penstock.source import BinlogStream, connect, current_position
from tests.support.capture import execute, source_of

HELD_MS = 60_000


@contextmanager
def silent_replica(server: Any) -> Iterator[None]:
    """Follow the log as a semi-sync replica that never acknowledges."""
    source = source_of(server)

    class Replica(BinlogStream):
        def _prepare_session(self) -> None:
            super()._prepare_session()
            with self._connection.cursor() as cursor:
                cursor.execute("SET @rpl_semi_sync_slave = 1")

    with closing(connect(source)) as connection:
        start = current_position(connection, source)
    with Replica(source, start):
        yield


@contextmanager
def late_commits(server: Any) -> Iterator[None]:
    """From here on, commits are held back after they are in the log."""
    if server.name.startswith("mysql"):
        execute(server, "SET GLOBAL sync_binlog = 0", "SET GLOBAL binlog_group_commit_sync_delay = 1000000")
        try:
            yield
        finally:
            execute(server, "SET GLOBAL binlog_group_commit_sync_delay = 0")
        return
    execute(
        server,
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
        f"SET GLOBAL rpl_semi_sync_master_timeout = {HELD_MS}",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    )
    try:
        with silent_replica(server):
            yield
    finally:
        execute(server, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
