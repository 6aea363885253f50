"""Reconciles one destination: brings what runs to what is configured, and retries until it does.

Each destination has a thread: a start may wait for a source that does not answer, for as long as its time-outs allow.
In a pool, as many of those as it has workers would hold up all others; a running instance has its own thread anyway.
"""

import logging
import threading
import time
from enum import Enum
from typing import Protocol

from penstock.backoff import Backoff
from penstock.config import InstanceSettings

log = logging.getLogger(__name__)


class ReconciledDestinations(Protocol):
    """Starts, reloads and stops destinations. A call that raises is repeated later, so each must be repeatable.

    A start that fails leaves nothing behind; a reload that fails leaves the old settings running; a stop of what does
    not run succeeds. Calls for one destination are made one after the other, those for several at the same time.
    """

    def start(self, settings: InstanceSettings) -> None:
        """Start a destination."""

    def reload(self, settings: InstanceSettings) -> None:
        """Run a destination with other settings."""

    def stop(self, name: str) -> None:
        """Stop a destination."""


class ReconcileStep(Enum):
    """The action that brings a destination to its configuration: start, reload or stop."""

    START = "start"
    RELOAD = "reload"
    STOP = "stop"


def next_step(
    running: InstanceSettings | None, target: InstanceSettings | None, is_unknown: bool
) -> ReconcileStep | None:
    """Return the next step for a destination; None when what runs is what is configured.

    `is_unknown` is set after a stop that failed: what still runs is unknown, so it is stopped before anything else.
    """
    if is_unknown:
        return ReconcileStep.STOP
    if running == target:
        return None
    if running is None:
        return ReconcileStep.START
    return ReconcileStep.STOP if target is None else ReconcileStep.RELOAD


class DestinationReconciler:
    """Reconciles one destination in a thread of its own. `close` ends the attempts and leaves what runs as it is.

    reconciler = DestinationReconciler("shop", destinations, Backoff(1.0, 60.0, spread=0.5))
    reconciler.set_target(settings)
    """

    def __init__(
        self, name: str, destinations: ReconciledDestinations, backoff: Backoff, *, retries: bool = True
    ) -> None:
        """Without `retries` the first failure is the last attempt, and whoever asks for `error` deals with it."""
        self.name = name
        self._destinations, self._backoff, self._retries = destinations, backoff, retries
        self._changed = threading.Condition()  # protects all below
        self._target: InstanceSettings | None = None
        self._running: InstanceSettings | None = None
        self._is_unknown = False
        self._is_over = False
        self._problem: str | None = None
        self._error: Exception | None = None  # of the last attempt, if that has failed
        self._has_tried = False
        self._thread = threading.Thread(target=self._run, name=f"penstock-reconcile-{name}", daemon=True)

    @property
    def target(self) -> InstanceSettings | None:
        """Return the settings that should run, or None for nothing."""
        with self._changed:
            return self._target

    @property
    def problem(self) -> str | None:
        """Return why the last attempt failed, while the destination does not run as it should."""
        with self._changed:
            return None if self._step() is None else self._problem

    @property
    def error(self) -> Exception | None:
        """Return the error of the last attempt to start, reload or stop the destination; None when it succeeded, or
        before the first attempt."""
        with self._changed:
            return None if self._step() is None else self._error

    def wait_for_attempt(self) -> None:
        """Wait for the end of the first attempt, whatever comes of it, or until no more are made."""
        with self._changed:
            while not self._has_tried and not self._is_over:
                self._changed.wait()

    @property
    def is_reconciled(self) -> bool:
        """Return whether the destination runs as it should, or nothing more will be tried."""
        with self._changed:
            return self._is_over or (self._step() is None and self._target is not None)

    @property
    def is_starting(self) -> bool:
        """Return whether the destination should run and does not run yet as its settings say."""
        with self._changed:
            return not self._is_over and self._target is not None and self._step() is not None

    def set_target(self, settings: InstanceSettings | None) -> bool:
        """Set what should run, or None for nothing. False when this reconciler has ended, because the destination was
        stopped: it needs another one."""
        with self._changed:
            if self._is_over:
                return False
            if settings != self._target:
                self._target = settings
                self._changed.notify_all()
        if self._thread.ident is None:
            self._thread.start()
        return True

    def close(self) -> None:
        """End the attempts, and leave what runs as it is."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread of this destination to end, for at most `timeout_s`."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _step(self) -> ReconcileStep | None:
        """Return what to do next, or None; called with the lock held."""
        return next_step(self._running, self._target, self._is_unknown)

    def _run(self) -> None:
        """Do one step after another until there is nothing more to do."""
        failures, failed_for = 0, None
        while (next_work := self._wait_for_step()) is not None:
            step, target = next_work
            failures = failures if failed_for == (step, target) else 0
            try:
                self._apply(step, target)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is shown and tried again
                failures, failed_for = failures + 1, (step, target)
                self._note_failure(step, target, error, failures)
            else:
                failures, failed_for = 0, None
                self._note_success(step, target)

    def _wait_for_step(self) -> tuple[ReconcileStep, InstanceSettings | None] | None:
        """Wait until there is something to do; return the step and its target, or None at the end."""
        with self._changed:
            while not self._is_over and self._step() is None:
                self._problem = None
                if self._target is None:
                    self._is_over = True
                else:
                    self._changed.wait()
            step = self._step()
            return None if self._is_over or step is None else (step, self._target)

    def _apply(self, step: ReconcileStep, target: InstanceSettings | None) -> None:
        """Start, reload or stop the destination."""
        if step is ReconcileStep.STOP or target is None:
            self._destinations.stop(self.name)
        elif step is ReconcileStep.START:
            self._destinations.start(target)
        else:
            self._destinations.reload(target)

    def _note_success(self, step: ReconcileStep, target: InstanceSettings | None) -> None:
        """Record that a step was done."""
        log.info("destination configuration applied destination=%s action=%s", self.name, step.value)
        with self._changed:
            self._running = None if step is ReconcileStep.STOP else target
            self._is_unknown, self._problem, self._error = False, None, None
            self._has_tried = True
            self._changed.notify_all()

    def _note_failure(
        self, step: ReconcileStep, target: InstanceSettings | None, error: Exception, failures: int
    ) -> None:
        """Record that a step failed, and wait for the next attempt, unless another target is set meanwhile."""
        if not self._retries:
            with self._changed:
                self._error, self._is_over = error, True
                self._changed.notify_all()
            return
        delay_s = self._backoff.delay_s(failures)
        problem = f"{step.value} failed {failures} times, is tried again: {error or type(error).__name__}"
        log.warning(
            "applying the configuration failed, retry scheduled destination=%s action=%s failures=%d delay_s=%.1f"
            " reason=%s",
            *(self.name, step.value, failures, delay_s, error),
        )
        until = time.monotonic() + delay_s
        with self._changed:
            self._is_unknown = self._is_unknown or step is ReconcileStep.STOP
            self._problem, self._error, self._has_tried = problem, error, True
            self._changed.notify_all()
            while not self._is_over and self._target == target and (left_s := until - time.monotonic()) > 0:
                self._changed.wait(left_s)
