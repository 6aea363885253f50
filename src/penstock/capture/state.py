"""The state of an instance, such as following or blocked, with the reason, and the time spent in each state."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

log = logging.getLogger(__name__)

_REMEMBERED = 50


class InstanceState(Enum):
    """The state of an instance."""

    STARTING = "starting"
    FOLLOWING = "following"  # the log, as it is written
    BLOCKED = "blocked"  # the store is full: the log is not read until clients ack
    RECONNECTING = "reconnecting"
    SWITCHING = "switching"  # to another server, or to a log that was reset
    PAUSED = "paused"  # manually
    STOPPED = "stopped"
    FAILED = "failed"  # and does not continue automatically


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change of an instance's state: the new state, why, and since when."""

    state: InstanceState
    reason: str
    since: float  # seconds since 1970


class StateTracker:
    """Tracks the state of an instance, and logs each change of it.

    A stopped or failed instance stays so until it is started. Any thread may call it.
    """

    def __init__(
        self, name: str, *, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._name, self._clock, self._now = name, clock, now
        self._lock = threading.Lock()
        # Protected by _lock: everything below.
        self._steps = deque([StateChange(InstanceState.STOPPED, "", now())], _REMEMBERED)
        self._entered = clock()
        self._seconds = dict.fromkeys(InstanceState, 0.0)

    def enter(self, state: InstanceState, reason: str = "", *, unless: frozenset[InstanceState] = frozenset()) -> bool:
        """Enter a state; return False and change nothing while in one of the states `unless`."""
        with self._lock:
            before = self._steps[-1]
            if before.state in unless:
                return False
            if (before.state, before.reason) == (state, reason):
                return True
            at = self._clock()
            self._seconds[before.state] += at - self._entered
            self._entered = at
            self._steps.append(StateChange(state, reason, self._now()))
        level = logging.INFO if before.state is not state else logging.DEBUG
        if state is InstanceState.FAILED:
            level = logging.ERROR if before.state is not InstanceState.STARTING else logging.DEBUG  # `start` raises it
        states = state.value, before.state.value
        log.log(
            level, "instance state changed destination=%s state=%s before=%s reason=%s", self._name, *states, reason
        )
        return True

    @property
    def current(self) -> StateChange:
        """Return the last state change, which says the current state."""
        with self._lock:
            return self._steps[-1]

    @property
    def history(self) -> list[StateChange]:
        """Return the last state changes, the present state last."""
        with self._lock:
            return list(self._steps)

    @property
    def seconds(self) -> dict[InstanceState, float]:
        """Return how long the instance has been in each state, up to now."""
        with self._lock:
            seconds = dict(self._seconds)
            seconds[self._steps[-1].state] += self._clock() - self._entered
            return seconds
