"""Connections to a source for short questions that are asked again and again."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.config import SourceSettings
from penstock.source.connection import connect, translate_errors

IDLE_S = 5.0
"""How long a connection waits for the next question before it is closed."""


class ConnectionPool:
    """Lends connections to sources, and keeps up to `max_idle` of them open for some seconds for the next question. One
    that does not answer any more is replaced. Any thread may call it.

        with pool.connection(source) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    Nothing has to be closed: a connection that nobody uses is closed after `idle_s`.
    """

    def __init__(
        self, open_connection: Callable[[SourceSettings], Any] = connect, *, idle_s: float = IDLE_S, max_idle: int = 1
    ) -> None:
        self._open_connection, self._idle_s, self._max_idle = open_connection, idle_s, max_idle
        self._lock = threading.Lock()  # of the next
        self._idle: list[tuple[SourceSettings, Any, threading.Timer]] = []  # the timers close them

    @contextmanager
    def connection(self, source: SourceSettings) -> Generator[Any]:
        """Lend a connection for some questions. It is closed when they end with an error."""
        connection = self._take(source) or self._open_connection(source)
        try:
            with translate_errors(source):
                yield connection
        except BaseException:
            _close(connection)
            raise
        self._put_back(source, connection)

    def _take(self, source: SourceSettings) -> Any:
        """Return an idle connection to this source that still answers, else None."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                of, connection, timer = self._idle.pop()
            timer.cancel()
            if of == source:
                with suppress(Exception):  # whatever is wrong with it, a new connection says it
                    connection.ping(reconnect=False)
                    return connection
            _close(connection)

    def _put_back(self, source: SourceSettings, connection: Any) -> None:
        """Keep a connection open for the next question, unless enough are kept already."""
        with self._lock:
            if len(self._idle) < self._max_idle:
                timer = threading.Timer(self._idle_s, self._close_idle, (connection,))
                timer.name, timer.daemon = "penstock-idle-connection", True
                self._idle.append((source, connection, timer))
                timer.start()
                return
        _close(connection)

    def _close_idle(self, connection: Any) -> None:
        """Close a connection if nobody uses it."""
        with self._lock:
            others = [kept for kept in self._idle if kept[1] is not connection]
            if len(others) == len(self._idle):
                return
            self._idle = others
        _close(connection)


def _close(connection: Any) -> None:
    with suppress(Exception):  # it may be broken
        connection.close()
