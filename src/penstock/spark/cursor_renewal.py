"""Keeps the cursor of a query on its server while the query works on one batch for longer than the server remembers it.

Spark asks its source for nothing in the middle of a batch. The process that plans lives exactly as long as its query,
so what it says in a thread tells the server that the query is alive.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakMethod

from penstock.errors import PenstockError

_RETRY_S = 10.0  # when the server does not answer
_SHARE = 1 / 3  # of the time for which the server keeps a cursor


class CursorRenewal:
    """Renews a cursor again and again in a thread, from its start on.

        renewal = CursorRenewal()
        renewal.start(self._renew_cursor)  # which returns for how many seconds the server keeps the cursor

    It ends when the object of that method is gone. It is picklable before it is started.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def start(self, renew: Callable[[], float]) -> None:
        """Start to renew, unless it was started before."""
        if self._thread is None:
            arguments = (WeakMethod(renew),)
            self._thread = threading.Thread(target=_run, args=arguments, name="penstock-cursor-renewal", daemon=True)
            self._thread.start()


def _run(reference: "WeakMethod[Callable[[], float]]") -> None:
    """Renew until the method is gone."""
    while (renew := reference()) is not None:
        delay_s = _RETRY_S
        with suppress(PenstockError):
            delay_s = renew() * _SHARE
        del renew
        time.sleep(delay_s)
