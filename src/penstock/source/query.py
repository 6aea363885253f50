"""Reading rows back: a connection that is kept, renewed when it broke, and patient with locks."""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.config import SourceSettings
from penstock.errors import SourceConnectionError
from penstock.source.connection import connect, translated

log = logging.getLogger(__name__)

T = TypeVar("T")

_READ_PATIENCE_S = 60.0
_LOCK_PATIENCE_S = 600.0
_ROW_LOCK_TURN_S = 5
_TABLE_LOCK_TURN_S = 1


class RowQuery:
    """Plain reads, and waiting for locks without holding any. Not for two threads at once."""

    def __init__(
        self,
        settings: SourceSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._connection: Any = None

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Tries again after a lost connection; then the last error comes out."""
        return self._patiently(lambda: self._run(sql, parameters), _READ_PATIENCE_S)

    def wait_for_row(self, sql: str, key: Any) -> None:
        """A lock wait that times out is begun again: somebody may keep the row for long, and has the right to."""
        self._patiently(lambda: self._run(sql, (key,)), _LOCK_PATIENCE_S)

    def lock_briefly(self, sql: str) -> None:
        """Waits in short turns: writers that queue behind a waiting table lock are held up for one turn only."""

        def turn() -> None:
            self._run(f"SET SESSION lock_wait_timeout = {_TABLE_LOCK_TURN_S}", ())
            self._run(sql, ())
            self._run("UNLOCK TABLES", ())

        self._patiently(turn, _LOCK_PATIENCE_S)

    def _patiently(self, action: Callable[[], T], patience_s: float) -> T:
        deadline = self._clock() + patience_s
        pause_s = 0.05
        while True:
            try:
                return action()
            except SourceConnectionError as error:
                self.close()
                if self._clock() > deadline:
                    raise
                log.info("again in_s=%.2f reason=%s", pause_s, error)
                self._sleep(pause_s * (0.5 + self._jitter()))
                pause_s = min(2 * pause_s, 2.0)

    def _run(self, sql: str, parameters: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = connect(self._settings)
            with translated(self._settings), self._connection.cursor() as cursor:
                # Each statement sees what is committed when it begins, and a locking one locks its row alone.
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {_ROW_LOCK_TURN_S}")
        with translated(self._settings), self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(parameters))
            return cursor.fetchall()

    def close(self) -> None:
        if self._connection is not None:
            self._connection._force_close()  # noqa: SLF001 - a polite QUIT can hang on a broken connection
            self._connection = None
