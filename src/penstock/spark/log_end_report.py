"""The end of the source's log, for Spark's progress: it is only shown, so nothing waits for it."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import PenstockError
from penstock.model import Position

_ASK_S = 1.0  # how often the source is asked
_WAIT_S = 0.05  # for an answer, when there is an older one to show
_FIRST_WAIT_S = 0.25


class LogEndReport:
    """The last known end of the source's log, about a second old while the source answers.

        report = LogEndReport(client.source_end)
        report.latest()  # at once, also when the server is away

    The source is asked in a thread of its own, one question at a time. It is picklable before its first call.
    """

    def __init__(self, ask: Callable[[], Position]) -> None:
        self._ask = ask
        self._end: Position | None = None
        self._asked_s = float("-inf")
        self._thread: threading.Thread | None = None

    def latest(self) -> Position | None:
        """Return the last known end; None when there was none yet."""
        is_asking = self._thread is not None and self._thread.is_alive()
        if not is_asking and time.monotonic() - self._asked_s > _ASK_S:
            self._asked_s = time.monotonic()
            self._thread = threading.Thread(target=self._refresh, name="penstock-log-end", daemon=True)
            self._thread.start()
            self._thread.join(_FIRST_WAIT_S if self._end is None else _WAIT_S)
        return self._end

    def record(self, end: Position) -> None:
        """Record an end that was asked for elsewhere."""
        self._end, self._asked_s = end, time.monotonic()

    def _refresh(self) -> None:
        """Ask the source, and record its answer if there is one."""
        with suppress(PenstockError):
            self._end = self._ask()
