"""When a server may try to get a destination that nobody runs. No I/O; `now` is passed in."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunningSettings:
    delay_s: float = 1.0  # for the others, after a crash
    grace_s: float = 10.0  # for which one that has released it leaves it to the others
    pause_s: float = 1.0  # after a start that failed; twice as long after the next
    longest_pause_s: float = 30.0
    stop_limit_s: float = 10.0  # for `on_stopped`, before the node is given up all the same
    look_s: float = 5.0  # without being woken


class Patience:
    """Of one server, for one destination."""

    def __init__(self, address: str, settings: RunningSettings) -> None:
        self.owner: str | None = None  # the address of who has it, as seen last
        self._address, self._settings = address, settings
        self._gone_since: float | None = None
        self._failures = 0
        self._not_before = self._leaves_until = 0.0

    def see(self, owner: str) -> None:
        """Somebody has it."""
        self.owner, self._gone_since = owner, None
        if owner != self._address:
            self._leaves_until = 0.0

    def leave(self, now: float) -> None:
        """We have given it up."""
        self.owner = None
        self._leaves_until = now + self._settings.grace_s

    def back_off(self, now: float) -> None:
        """It failed with us."""
        settings = self._settings
        if now > self._not_before + settings.longest_pause_s:
            self._failures = 0  # the last one is long ago
        self._not_before = now + min(settings.pause_s * 2**self._failures, settings.longest_pause_s)
        self._failures += 1

    def rest(self, now: float) -> None:
        self._not_before = max(self._not_before, now + self._settings.pause_s)

    def resting_s(self, now: float) -> float:
        return max(0.0, self._not_before - now)

    def due(self, now: float, delay_s: float, is_for_others: Callable[[], bool]) -> float:
        """Nobody has it."""
        self.owner = None
        if self._gone_since is None:
            self._gone_since = now
        due = max(self._gone_since + delay_s, self._not_before)
        return self._leaves_until if self._leaves_until > due and is_for_others() else due
