"""How fast a snapshot may read: a limit on rows per second over all its connections, and a pause."""

import threading
import time
from collections.abc import Callable


class Pacer:
    """Makes readers wait so that together they read no more rows per second than allowed, and none while paused.

    pacer = Pacer(50_000)
    pacer.wait_for(batch.num_rows)
    """

    def __init__(
        self,
        rows_per_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rows_per_s, self._clock, self._sleep = rows_per_s, clock, sleep
        self._lock = threading.Lock()
        self._free_at = clock()  # when the rows that were read so far are paid for
        self._running = threading.Event()
        self._running.set()

    def wait_for(self, rows: int) -> None:
        """Wait until so many more rows may be read; any thread may call it."""
        self._running.wait()
        if self._rows_per_s is None:
            return
        with self._lock:
            now = self._clock()
            begin = max(now, self._free_at)
            self._free_at = begin + rows / self._rows_per_s
        if begin > now:
            self._sleep(begin - now)

    def pause(self) -> None:
        """Let readers wait from their next batch on."""
        self._running.clear()

    def resume(self) -> None:
        """Let readers continue."""
        self._running.set()
