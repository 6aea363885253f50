"""Reading rows back over one connection, which is renewed when it breaks."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.backoff import Backoff, RetryTimer
from penstock.config import SourceSettings
from penstock.errors import SourceConnectionError
from penstock.source.connection import connect, translate_errors
from penstock.source.visibility import LogVisibility

log = logging.getLogger(__name__)

T = TypeVar("T")

_BACKOFF = Backoff(0.05, 2.0, spread=0.5)
_READ_TIMEOUT_S = 60.0
_VISIBILITY_TIMEOUT_S = 600.0


class RowQuery:
    """Runs plain reads without locks on a source, for one thread at a time.

    with closing(RowQuery(settings)) as query:
        query.wait_until_visible()  # all that is in the log now
        rows = query.rows("SELECT name FROM shop.product WHERE id = %s", [1])
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._connection: Any = None
        self._visibility = self._create_visibility()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a SELECT; a lost connection is opened again and the statement repeated for a minute."""
        return self._retry(lambda: self._execute(sql, parameters), _READ_TIMEOUT_S)

    def wait_until_visible(self) -> None:
        """Return when reads see everything that was in the source's log at the call, without taking a lock."""
        deadline = time.monotonic() + _VISIBILITY_TIMEOUT_S
        self._retry(lambda: self._visibility.wait(deadline - time.monotonic()), _VISIBILITY_TIMEOUT_S)

    def _retry(self, action: Callable[[], T], timeout_s: float) -> T:
        """Run an action; on a lost connection, run it again with back-off until the timeout."""
        timer = RetryTimer(_BACKOFF)
        while True:
            try:
                return action()
            except SourceConnectionError as error:
                self.close()
                delay_s = timer.next_delay_s(timeout_s)
                if delay_s is None:
                    raise
                log.warning(
                    "query at the source failed, retry scheduled source=%s delay_s=%.2f reason=%s",
                    *(self._settings.address, delay_s, error),
                )
                time.sleep(delay_s)

    def _create_visibility(self) -> LogVisibility:
        """Return a LogVisibility that queries over this connection."""
        return LogVisibility(lambda sql: self._execute(sql, ()), address=self._settings.address)

    def _execute(self, sql: str, parameters: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        """Run a statement on the connection, which is opened if need be, and return its rows."""
        if self._connection is None:
            self._connection = connect(self._settings)
            with translate_errors(self._settings), self._connection.cursor() as cursor:
                # Each statement sees what is committed when it begins.
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        with translate_errors(self._settings), self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(parameters))
            return cursor.fetchall()

    def close(self) -> None:
        """Close the connection; the next read opens another one."""
        if self._connection is not None:
            self._connection._force_close()  # noqa: SLF001 - a polite QUIT can hang on a broken connection
            self._connection = None
            self._visibility = self._create_visibility()  # the next connection may lead to another server
