"""Brings one destination to what its settings want, and tries until it is there.

A thread for each: a start may wait for a source that does not answer, for as long as its time-outs allow. With a pool,
as many such as it has workers would hold up all others; an instance that runs has a thread of its own anyway.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from penstock.config import InstanceSettings

log = logging.getLogger(__name__)


class Destinations(Protocol):
    """What runs. A call that raises is made again later, so each must stand being repeated.

    A start that fails leaves nothing behind; a reload that fails leaves the old one running; a stop of what does not
    run is no error. Calls for one destination come one after the other, those for several at the same time.
    """

    def start(self, settings: InstanceSettings) -> None: ...

    def reload(self, settings: InstanceSettings) -> None: ...

    def stop(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Of tries: from `first_s`, doubled each time up to `most_s`, and half to one and a half of that."""

    first_s: float = 1.0
    most_s: float = 60.0
    jitter: Callable[[], float] = random.random

    def pause_s(self, failures: int) -> float:
        return min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 30)) * (0.5 + self.jitter())


class Step(Enum):
    START = "start"
    RELOAD = "reload"
    STOP = "stop"


def next_step(running: InstanceSettings | None, wanted: InstanceSettings | None, is_unclear: bool) -> Step | None:
    """`is_unclear` after a stop that failed: nobody knows what still runs, so it is stopped before all else."""
    if is_unclear:
        return Step.STOP
    if running == wanted:
        return None
    if running is None:
        return Step.START
    return Step.STOP if wanted is None else Step.RELOAD


class DestinationKeeper:
    """`close` ends the tries and leaves what runs as it is."""

    def __init__(self, name: str, destinations: Destinations, pace: Pace) -> None:
        self.name = name
        self._destinations, self._pace = destinations, pace
        self._changed = threading.Condition()  # protects all below
        self._wanted: InstanceSettings | None = None
        self._running: InstanceSettings | None = None
        self._is_unclear = False
        self._is_over = False
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-keep-{name}", daemon=True)

    @property
    def wanted(self) -> InstanceSettings | None:
        with self._changed:
            return self._wanted

    @property
    def problem(self) -> str | None:
        with self._changed:
            return None if self._step() is None else self._problem

    @property
    def is_settled(self) -> bool:
        with self._changed:
            return self._is_over or (self._step() is None and self._wanted is not None)

    @property
    def is_starting(self) -> bool:
        """Whether it is wanted, and not yet there as it is wanted."""
        with self._changed:
            return not self._is_over and self._wanted is not None and self._step() is not None

    def want(self, settings: InstanceSettings | None) -> bool:
        """False when it is over: the destination was stopped, and another keeper begins."""
        with self._changed:
            if self._is_over:
                return False
            if settings != self._wanted:
                self._wanted = settings
                self._changed.notify_all()
        if self._thread.ident is None:
            self._thread.start()
        return True

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _step(self) -> Step | None:
        return next_step(self._running, self._wanted, self._is_unclear)

    def _run(self) -> None:
        failures, failed_for = 0, None
        while (found := self._wait_for_step()) is not None:
            step, wanted = found
            failures = failures if failed_for == (step, wanted) else 0
            try:
                self._take(step, wanted)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is shown and tried again
                failures, failed_for = failures + 1, (step, wanted)
                self._failed(step, wanted, error, failures)
            else:
                failures, failed_for = 0, None
                self._done(step, wanted)

    def _wait_for_step(self) -> tuple[Step, InstanceSettings | None] | None:
        with self._changed:
            while not self._is_over and self._step() is None:
                self._problem = None
                if self._wanted is None:
                    self._is_over = True
                else:
                    self._changed.wait()
            step = self._step()
            return None if self._is_over or step is None else (step, self._wanted)

    def _take(self, step: Step, wanted: InstanceSettings | None) -> None:
        if step is Step.STOP or wanted is None:
            self._destinations.stop(self.name)
        elif step is Step.START:
            self._destinations.start(wanted)
        else:
            self._destinations.reload(wanted)

    def _done(self, step: Step, wanted: InstanceSettings | None) -> None:
        log.info("%s done destination=%s", step.value, self.name)
        with self._changed:
            self._running = None if step is Step.STOP else wanted
            self._is_unclear, self._problem = False, None

    def _failed(self, step: Step, wanted: InstanceSettings | None, error: Exception, failures: int) -> None:
        """Waits, unless something else is wanted in the meantime."""
        pause_s = self._pace.pause_s(failures)
        problem = f"{step.value} failed {failures} times, is tried again: {error or type(error).__name__}"
        log.warning(
            "%s failed destination=%s tries=%d next_s=%.1f: %s", step.value, self.name, failures, pause_s, error
        )
        until = time.monotonic() + pause_s
        with self._changed:
            self._is_unclear = self._is_unclear or step is Step.STOP
            self._problem = problem
            while not self._is_over and self._wanted == wanted and (left_s := until - time.monotonic()) > 0:
                self._changed.wait(left_s)
