"""Runs statements at the seams of each chunk that a server in this process reads: between its steps, every time."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pymysql
import pytest

from penstock.model import TableName
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkReader
from penstock.snapshot.result_set import ResultSet
from penstock.source.consistent_read import ConsistentRead
from penstock.testing import DatabaseServer, poll_until
from tests.support.random_writers import IDS

BEFORE_LOW, AFTER_LOW, BEFORE_ROWS, AFTER_ROWS = SEAMS = (
    "before the low watermark is taken",
    "after that, before the read view is opened",
    "in the read view, before the rows are read",
    "after the rows are read, before they are brought to a position",
)
_STATEMENTS = 3  # at each seam
_CONFLICTS = {1020, 1205, 1213}
_UNKNOWN_XID = 1397
_XA_KEYS = 10  # rows whose key is a multiple of it are changed by XA transactions, and by nothing else

Inject = Callable[[str, Chunk], None]


def watch_seams(monkeypatch: pytest.MonkeyPatch, inject: Inject) -> None:
    """Let `inject` be called at each seam of each chunk that is read. There must be one connection for snapshots, so
    that one chunk is read at a time."""
    read, open_view, start, rows = ChunkReader.read, ConsistentRead._open, ConsistentRead._start, ResultSet.__iter__
    chunks: list[Chunk] = []

    def watched_read(self: Any, table: Any, chunk: Chunk) -> Any:
        chunks[:] = [chunk]
        result = read(self, table, chunk)
        inject(AFTER_ROWS, chunk)
        return result

    def watched_open(self: Any) -> Any:
        inject(BEFORE_LOW, chunks[0])
        return open_view(self)

    def watched_start(self: Any) -> None:
        inject(AFTER_LOW, chunks[0])
        start(self)

    def watched_rows(self: Any) -> Any:
        inject(BEFORE_ROWS, chunks[0])
        return rows(self)

    monkeypatch.setattr(ChunkReader, "read", watched_read)
    monkeypatch.setattr(ConsistentRead, "_open", watched_open)
    monkeypatch.setattr(ConsistentRead, "_start", watched_start)
    monkeypatch.setattr(ResultSet, "__iter__", watched_rows)


class SeamWriter:
    """Changes rows of a chunk, and of others, at each seam: inserts, deletes, updates, keys that move, also over the
    limits of chunks; an XA transaction that is prepared at one seam and committed at another one; and, with
    `adds_column`, a column that is added at one of the first seams."""

    def __init__(self, server: DatabaseServer, name: TableName, seed: int, *, adds_column: bool = False) -> None:
        self._server, self._table, self._random = server, name, random.Random(seed)
        self.used: Counter[str] = Counter()
        self._prepared = ""
        self._connection: Any = None  # one chunk is read at a time
        self._alters_after = self._random.randrange(4, 16) if adds_column else -1

    def __call__(self, seam: str, chunk: Chunk) -> None:
        if self._connection is None:
            self._connection = self._server.connect(autocommit=True, init_command="SET innodb_lock_wait_timeout = 1")
        with self._connection.cursor() as cursor:
            if 0 <= self._alters_after <= sum(self.used.values()) and not self._prepared:
                cursor.execute(f"ALTER TABLE {self._table} ADD COLUMN extra INT DEFAULT 5 AFTER id")
                self._alters_after = -1
            for _ in range(_STATEMENTS):
                self._execute(cursor, self._statement(chunk))
            if self._prepared:
                self._commit_prepared(cursor)
            elif self._random.random() < 0.5:
                self._prepare(chunk)
        self.used[seam] += 1

    def finish(self) -> None:
        """Commit what is prepared, and change nothing more."""
        if self._connection is not None:
            with closing(self._connection), self._connection.cursor() as cursor:
                if self._prepared:
                    self._commit_prepared(cursor)

    def _prepare(self, chunk: Chunk) -> None:
        """Prepare an XA transaction on a connection of its own, which is then closed."""
        key = self._key(chunk) // _XA_KEYS * _XA_KEYS
        xid = f"'{self._table.schema}-{sum(self.used.values())}'"
        with closing(self._server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")  # without locks on gaps
            cursor.execute(f"XA START {xid}")
            cursor.execute(f"UPDATE {self._table} SET name = {xid} WHERE id = {key}")
            cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA PREPARE {xid}")
        self._prepared = xid

    def _commit_prepared(self, cursor: Any) -> None:
        """Commit the XA transaction. The server may still be closing the connection that has prepared it, and does not
        know it elsewhere before that."""

        def is_committed() -> bool:
            try:
                cursor.execute(f"XA COMMIT {self._prepared}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != _UNKNOWN_XID:
                    raise
                return False
            return True

        assert poll_until(is_committed, 30), self._prepared
        self._prepared = ""

    def _execute(self, cursor: Any, statement: str) -> None:
        with suppress(pymysql.err.OperationalError):
            try:
                cursor.execute(statement)
            except pymysql.err.OperationalError as error:
                if error.args[0] not in _CONFLICTS:
                    raise AssertionError(statement) from error
                raise

    def _key(self, chunk: Chunk) -> int:
        """Return the number of a row, two times out of three one of the chunk."""
        low = int(chunk.after[0]) + 1 if chunk.after else 0
        high = min(int(chunk.until[0]), IDS - 1) if chunk.until else IDS - 1
        if self._random.randrange(3) and low <= high:
            return self._random.randint(low, high)
        return self._random.randrange(IDS)

    def _statement(self, chunk: Chunk) -> str:
        key, other = (number + (number % _XA_KEYS == 0) for number in (self._key(chunk), self._key(chunk)))
        text = f"'{sum(self.used.values())} {self._random.randrange(1000)}'"
        match self._random.randrange(4):
            case 0:
                return f"INSERT IGNORE INTO {self._table} (id, name) VALUES ({key}, {text})"
            case 1:
                return f"DELETE FROM {self._table} WHERE id = {key}"
            case 2:
                return f"UPDATE IGNORE {self._table} SET id = {other} WHERE id = {key}"
            case _:
                return f"UPDATE {self._table} SET name = {text} WHERE id = {key}"
