"""Questions about tables of an instance's source, over a connection that is used again."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from penstock.config import SourceSettings
from penstock.model import TableName
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.table import SnapshotTable
from penstock.source.connection_pool import IDLE_S, ConnectionPool


class SnapshotQuestions:
    """Lends cursors to the source for short queries, and remembers for some seconds what tables look like. Any thread
    may call it.

    with questions.cursor() as cursor:
        cursor.execute("SELECT 1")
    """

    def __init__(self, source: Callable[[], SourceSettings], *, idle_s: float = IDLE_S) -> None:
        """A connection waits `idle_s` seconds for the next question, and as long a table is taken for unchanged."""
        self._source, self._idle_s = source, idle_s
        self._connections = ConnectionPool(connect_for_snapshot, idle_s=idle_s)
        self._lock = threading.Lock()  # of the next
        self._tables: dict[TableName, tuple[float, SourceSettings, SnapshotTable]] = {}

    @contextmanager
    def cursor(self) -> Generator[Any]:
        """Return a cursor for some questions. Its connection is closed when they end with an error."""
        with self._connections.connection(self._source()) as connection:
            yield connection.cursor()

    def describe(self, name: TableName, describe: Callable[[Any, TableName], SnapshotTable]) -> SnapshotTable:
        """Return the description of a table that `describe` returns; one that is less than `idle_s` seconds old is used
        again."""
        source = self._source()
        with self._lock:
            known = self._tables.get(name)
        if known is not None and known[1] == source and time.monotonic() - known[0] < self._idle_s:
            return known[2]
        with self.cursor() as cursor:
            table = describe(cursor, name)
        with self._lock:
            self._tables[name] = time.monotonic(), source, table
        return table
