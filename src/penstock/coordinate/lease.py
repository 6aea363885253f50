"""How long a session may act on what ZooKeeper granted it, by our own clock.

Invariant: a lease that has once said that it is not held never says again that it is, however late an answer of
ZooKeeper arrives.
"""

import math
import time
from collections.abc import Callable

Clock = Callable[[], float]


def boot_clock() -> float:
    """Return seconds of a clock that also runs while the machine sleeps, where the system has one."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()


_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Lease:
    """The time for which a session is ours. One thread renews it, any thread asks: no lock, one look at the clock.

        lease = Lease()
        lease.renew(boot_clock() + 4.0)

    It has no end until it was renewed for the first time.
    """

    __slots__ = ("_clock", "_is_over", "_until")

    def __init__(self, clock: Clock = boot_clock) -> None:
        self._until, self._clock, self._is_over = math.inf, clock, False

    @property
    def until(self) -> float:
        """The time at which the lease ends, by the lease's own clock; infinite before the first renewal."""
        return self._until

    @property
    def left_s(self) -> float:
        """The seconds until the lease ends; 0 when it has ended."""
        return 0.0 if self._is_over else max(0.0, self._until - self._clock())

    def is_held(self) -> bool:
        """Return whether the lease lasts; once this has returned False, it never returns True again."""
        if self._is_over:
            return False
        if self._clock() < self._until:
            return True
        self._is_over = True
        return False

    def renew(self, until: float) -> None:
        """Move the end of the lease to a later time; it never moves back, and an ended lease stays ended."""
        if self.is_held():
            self._until = until if self._until == math.inf else max(self._until, until)

    def end(self) -> None:
        """End the lease now, for good."""
        self._is_over = True


class LeaseGuard:
    """One use of a lease, such as an election that was won: it ends with the lease, or before it by `end`."""

    __slots__ = ("_is_over", "_lease")

    def __init__(self, lease: Lease) -> None:
        self._lease, self._is_over = lease, False

    def is_held(self) -> bool:
        """Return whether neither this use of the lease nor the lease itself has ended."""
        return not self._is_over and self._lease.is_held()

    @property
    def held_until(self) -> float:
        """The time at which this use of the lease ends, unless it is renewed; 0 when it has ended."""
        return self._lease.until if self.is_held() else 0.0

    def end(self) -> None:
        """End this use of the lease; the lease itself is not touched."""
        self._is_over = True
