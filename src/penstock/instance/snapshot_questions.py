"""Questions about tables of an instance's source, over a connection that is used again."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.config import SourceSettings
from penstock.model import TableName
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.table import SnapshotTable
from penstock.source.connection import translate_errors

IDLE_S = 5.0
"""How long a connection waits for the next question before it is closed, and a table is taken for unchanged."""


class SnapshotQuestions:
    """Lends connections to the source for short queries, and keeps one of them open for some seconds for the next
    query. Any thread may call it.

    with questions.cursor() as cursor:
        cursor.execute("SELECT 1")
    """

    def __init__(self, source: Callable[[], SourceSettings], *, idle_s: float = IDLE_S) -> None:
        self._source, self._idle_s = source, idle_s
        self._lock = threading.Lock()  # of all below
        self._idle: tuple[SourceSettings, Any] | None = None
        self._timer: threading.Timer | None = None  # closes the idle connection
        self._tables: dict[TableName, tuple[float, SourceSettings, SnapshotTable]] = {}

    @contextmanager
    def cursor(self) -> Generator[Any]:
        """Return a cursor for some questions. Its connection is closed when they end with an error."""
        source = self._source()
        connection = self._take(source) or connect_for_snapshot(source)
        try:
            with translate_errors(source):
                yield connection.cursor()
        except BaseException:
            _close(connection)
            raise
        self._put_back(source, connection)

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

    def _take(self, source: SourceSettings) -> Any:
        """Return the idle connection if it is one to this source and still answers, else None."""
        with self._lock:
            idle, self._idle = self._idle, None
            if self._timer is not None:
                self._timer.cancel()
        if idle is None:
            return None
        if idle[0] == source:
            with suppress(Exception):  # whatever is wrong with it, a new connection says it
                idle[1].ping(reconnect=False)
                return idle[1]
        _close(idle[1])
        return None

    def _put_back(self, source: SourceSettings, connection: Any) -> None:
        """Keep a connection open for the next query, unless one is kept already."""
        with self._lock:
            if self._idle is None:
                self._idle = source, connection
                self._timer = threading.Timer(self._idle_s, self._close_idle, (connection,))
                self._timer.name, self._timer.daemon = "penstock-snapshot-questions", True
                self._timer.start()
                return
        _close(connection)

    def _close_idle(self, connection: Any) -> None:
        """Close a connection if nobody uses it."""
        with self._lock:
            if self._idle is None or self._idle[1] is not connection:
                return
            self._idle = None
        _close(connection)


def _close(connection: Any) -> None:
    with suppress(Exception):  # it may be broken
        connection.close()
