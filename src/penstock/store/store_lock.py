"""The lock of a store, and waiting in it for a change."""

import threading
import time
from collections.abc import Callable
from typing import Self

from penstock.errors import PenstockError


class StoreLock:
    """The lock of a store, held by `with lock:`, in which threads wait for a change. The first failure ends all
    waiting, now and later."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._failure: PenstockError | None = None

    def __enter__(self) -> Self:
        self._changed.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._changed.release()

    def deadline(self, timeout_s: float | None) -> float | None:
        """Return the time at which a timeout that starts now ends, by the lock's clock; None without a timeout."""
        return None if timeout_s is None else self.clock() + timeout_s

    def remaining_s(self, deadline: float | None) -> float | None:
        """Return the seconds that are left until a deadline, or 0 after it; None without a deadline."""
        return None if deadline is None else max(0.0, deadline - self.clock())

    # -- inside

    def wait(self, ready: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until `ready` is true and return whether it became so in time; without a timeout wait as long as it
        takes."""
        deadline = self.deadline(timeout_s)
        while True:
            self.check()
            if ready():
                return True
            remaining_s = self.remaining_s(deadline)
            if remaining_s == 0:
                return False
            self._changed.wait(remaining_s)

    def pause(self, timeout_s: float) -> None:
        """Wait until the store has changed, or until the timeout."""
        self.check()
        self._changed.wait(timeout_s)

    @property
    def failure(self) -> PenstockError | None:
        """The first error that `fail` was called with; None while there is none."""
        return self._failure

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self._failure is not None:
            raise self._failure

    def notify(self) -> None:
        """Wake all waiting threads; called with the lock held."""
        self._changed.notify_all()

    # -- outside

    def wake(self) -> None:
        """Wake all waiting threads; called without the lock."""
        with self:
            self.notify()

    def fail(self, error: PenstockError) -> None:
        """End all waiting, now and later, with this error; only the first error counts. Called without the lock."""
        with self:
            self._failure = self._failure or error
            self.notify()
