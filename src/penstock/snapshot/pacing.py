"""How fast a snapshot may read: a limit on rows per second over all its connections, and a pause."""

import math
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
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rows_per_s, self._clock, self._sleep = rows_per_s, clock, sleep
        self._lock = threading.Lock()
        self._free_at = clock()  # when the rows that were read so far are paid for
        self._running = threading.Event()
        self._running.set()

    def wait_for(self, rows: int, deadline: float = math.inf) -> bool:
        """Wait until so many more rows may be read, and return True; False at a deadline, which is of the clock. Any
        thread may call it."""
        left_s = deadline - self._clock()
        if not self._running.wait(None if left_s == math.inf else max(0.0, left_s)):
            return False
        if self._rows_per_s is None:
            return self._clock() < deadline
        with self._lock:
            now = self._clock()
            begin = max(now, self._free_at)
            self._free_at = begin + rows / self._rows_per_s
        if begin > now:
            self._sleep(min(begin, deadline) - now)
        return begin < deadline

    def wait_until_resumed(self) -> None:
        """Wait while the snapshot is paused."""
        self._running.wait()

    def pause(self) -> None:
        """Let readers wait from their next batch on."""
        self._running.clear()

    def resume(self) -> None:
        """Let readers continue."""
        self._running.set()
