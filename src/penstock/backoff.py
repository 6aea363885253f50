"""How long to wait before something that failed is tried again: one rule for all rooms.

Delays grow exponentially up to a limit. A spread around them keeps many that failed together from returning together.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_MAX_DOUBLINGS = 60  # far beyond any limit, and still a float


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays between attempts of something that failed: `first_s`, multiplied by `factor` each time, up to
    `longest_s`.

        backoff = Backoff(1.0, 60.0, spread=0.5)
        time.sleep(backoff.delay_s(failures))

    `spread` is how far a delay may lie from that, as a share of it: with 0.5, half to one and a half times as long.
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    spread: float = 0.0
    random: Callable[[], float] = field(default=random.random, compare=False)

    def delay_s(self, failures: int) -> float:
        """Return how long to wait after this number of failures in a row; 0 before the first."""
        if failures <= 0:
            return 0.0
        delay_s = min(self.longest_s, self.first_s * self.factor ** min(failures - 1, _MAX_DOUBLINGS))
        return delay_s * (1 - self.spread + 2 * self.spread * self.random())


class RetryTimer:
    """Times the attempts of one call: it counts failures, and gives no further delay when the timeout is over.

    timer = RetryTimer(Backoff(0.1, 2.0))
    while (delay_s := timer.next_delay_s(timeout_s=60)) is not None: ...
    """

    __slots__ = ("_backoff", "_began", "_clock", "_failures")

    def __init__(
        self, backoff: Backoff, *, is_first_at_once: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the time for retries now. With `is_first_at_once` there is no delay after the first failure."""
        self._backoff, self._clock, self._began = backoff, clock, clock()
        self._failures = -1 if is_first_at_once else 0

    @property
    def elapsed_s(self) -> float:
        """Return how long ago the first attempt began."""
        return self._clock() - self._began

    def next_delay_s(self, timeout_s: float) -> float | None:
        """Count a failure; return how long to wait for the next attempt, or None when that is beyond the timeout."""
        self._failures += 1
        delay_s = self._backoff.delay_s(self._failures)
        return None if self._clock() + delay_s > self._began + timeout_s else delay_s
