"""Ends reads of streams on which nothing comes: a frozen server, and a network that drops everything, break nothing."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

_LOOK_S = 0.5
_IDLE_LOOKS = 20  # the thread ends when it has found no read that often


@dataclass(eq=False, slots=True)
class WatchedRead:
    """One read that waits for a server, and what ends it."""

    cancel: Callable[[], None]
    deadline_s: float
    is_given_up: bool = False


class ReadWatch:
    """Cancels reads that have waited for longer than they may.

        with watch.limit(reader.cancel, 30) as read:
            reader.read_chunk()  # fails when it is cancelled, and then `read.is_given_up`

    Its thread runs only while there are reads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of these:
        self._reads = set[WatchedRead]()
        self._is_running = False

    @contextmanager
    def limit(self, cancel: Callable[[], None], limit_s: float) -> Generator[WatchedRead]:
        """Call `cancel` if the block takes longer than `limit_s`."""
        read = WatchedRead(cancel, time.monotonic() + limit_s)
        with self._lock:
            self._reads.add(read)
            must_start, self._is_running = not self._is_running, True
        if must_start:
            threading.Thread(target=self._run, name="penstock-read-watch", daemon=True).start()
        try:
            yield read
        finally:
            with self._lock:
                self._reads.discard(read)

    def _run(self) -> None:
        """Check the waiting reads periodically, until there are none for a while."""
        idle_looks = 0
        while True:
            with self._lock:
                idle_looks = 0 if self._reads else idle_looks + 1
                if idle_looks > _IDLE_LOOKS:
                    self._is_running = False
                    return
                now = time.monotonic()
                late = [read for read in self._reads if read.deadline_s < now]
                self._reads.difference_update(late)
                for read in late:
                    read.is_given_up = True
            for read in late:
                read.cancel()
            time.sleep(_LOOK_S)
