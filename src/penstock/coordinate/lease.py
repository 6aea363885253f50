"""For how long what ZooKeeper gave us is ours, by our own clock.

Invariant: what has once answered no never answers yes again, however late an answer of ZooKeeper comes in.
"""

import math
import time
from collections.abc import Callable

Clock = Callable[[], float]


def boot_clock() -> float:
    """Seconds; they also pass while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()


_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Lease:
    """Renewed by one thread, asked by any: no lock, one look at the clock. Until it begins it has no end."""

    __slots__ = ("_clock", "_is_over", "_until")

    def __init__(self, clock: Clock = boot_clock) -> None:
        self._until, self._clock, self._is_over = math.inf, clock, False

    @property
    def until(self) -> float:
        return self._until

    @property
    def left_s(self) -> float:
        return 0.0 if self._is_over else max(0.0, self._until - self._clock())

    def is_held(self) -> bool:
        if self._is_over:
            return False
        if self._clock() < self._until:
            return True
        self._is_over = True
        return False

    def renew(self, until: float) -> None:
        """Later than before, or it stays as it is; the first time it begins."""
        if self.is_held():
            self._until = until if self._until == math.inf else max(self._until, until)

    def end(self) -> None:
        self._is_over = True


class Hold:
    """What rests on a lease, and may end before it."""

    __slots__ = ("_is_over", "_lease")

    def __init__(self, lease: Lease) -> None:
        self._lease, self._is_over = lease, False

    def is_held(self) -> bool:
        return not self._is_over and self._lease.is_held()

    def end(self) -> None:
        self._is_over = True
