"""Tells whether the capture of a server still makes progress, for a query that waits for it.

A connection that breaks inside of a large transaction, or a server that is restarted there, lets capture read the
transaction from its begin again. That is work, but no progress: over a connection that breaks each time it never ends.
"""

import time
from collections.abc import Callable

from penstock.model import Position


class CaptureProgress:
    """Watches up to where a server has read the binlog, and detects that it has made no progress for `wait_s`.

        progress = CaptureProgress(wait_s=120)
        while not progress.has_stalled(read_to): ...

    | capture                                                  | counts as      |
    |----------------------------------------------------------|----------------|
    | has read further than ever                               | progress       |
    | reads again what it had read, the first time since then  | progress       |
    | reads it again once more, or reads nothing               | standing still |
    """

    def __init__(self, wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._wait_s, self._clock = wait_s, clock
        self._furthest: Position | None = None
        self._last: Position | None = None
        self._rereads = 0  # since it was furthest
        self._moved_s = clock()

    def has_stalled(self, read_to: Position) -> bool:
        """Return whether there was no progress for too long, with the position up to which capture has read now."""
        if self._is_progress(read_to):
            self._moved_s = self._clock()
        self._last = read_to
        return self._clock() - self._moved_s > self._wait_s

    def _is_progress(self, read_to: Position) -> bool:
        if self._furthest is None or self._last is None or read_to > self._furthest:
            self._furthest, self._rereads = read_to, 0
            return True
        if read_to < self._last:
            self._rereads += 1
        return read_to != self._last and self._rereads <= 1
