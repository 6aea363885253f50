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

    def start(self, settings: InstanceSettings) -> None: ...

    def reload(self, settings: InstanceSettings) -> None: ...

    def stop(self, name: str) -> None: ...


class ReconcileStep(Enum):
    """What is to be done with a destination next."""

    START = "start"
    RELOAD = "reload"
    STOP = "stop"


def next_step(
    running: InstanceSettings | None, wanted: InstanceSettings | None, is_unclear: bool
) -> ReconcileStep | None:
    """Return what to do next; None when what runs is what is wanted.

    `is_unclear` is set after a stop that failed: what still runs is unknown, so it is stopped before anything else.
    """
    if is_unclear:
        return ReconcileStep.STOP
    if running == wanted:
        return None
    if running is None:
        return ReconcileStep.START
    return ReconcileStep.STOP if wanted is None else ReconcileStep.RELOAD


class DestinationReconciler:
    """Reconciles one destination in a thread of its own. `close` ends the attempts and leaves what runs as it is.

    reconciler = DestinationReconciler("shop", destinations, Backoff(1.0, 60.0, spread=0.5))
    reconciler.want(settings)
    """

    def __init__(
        self, name: str, destinations: ReconciledDestinations, backoff: Backoff, *, retries: bool = True
    ) -> None:
        """Without `retries` the first failure is the last attempt, and whoever asks for `error` deals with it."""
        self.name = name
        self._destinations, self._backoff, self._retries = destinations, backoff, retries
        self._changed = threading.Condition()  # protects all below
        self._wanted: InstanceSettings | None = None
        self._running: InstanceSettings | None = None
        self._is_unclear = False
        self._is_over = False
        self._problem: str | None = None
        self._error: Exception | None = None  # of the last attempt, if that has failed
        self._has_tried = False
        self._thread = threading.Thread(target=self._run, name=f"penstock-reconcile-{name}", daemon=True)

    @property
    def wanted(self) -> InstanceSettings | None:
        with self._changed:
            return self._wanted

    @property
    def problem(self) -> str | None:
        with self._changed:
            return None if self._step() is None else self._problem

    @property
    def error(self) -> Exception | None:
        """Return the error of the last attempt; None when it succeeded, or when there was none yet."""
        with self._changed:
            return None if self._step() is None else self._error

    def wait_for_attempt(self) -> None:
        """Wait for the end of the first attempt, whatever comes of it, or until no more are made."""
        with self._changed:
            while not self._has_tried and not self._is_over:
                self._changed.wait()

    @property
    def is_settled(self) -> bool:
        with self._changed:
            return self._is_over or (self._step() is None and self._wanted is not None)

    @property
    def is_starting(self) -> bool:
        """Return whether the destination is wanted and does not run yet as its settings say."""
        with self._changed:
            return not self._is_over and self._wanted is not None and self._step() is not None

    def want(self, settings: InstanceSettings | None) -> bool:
        """Set what should run, or None for nothing. False when this reconciler has ended: the destination was stopped,
        and needs another one."""
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

    def _step(self) -> ReconcileStep | None:
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

    def _wait_for_step(self) -> tuple[ReconcileStep, InstanceSettings | None] | None:
        with self._changed:
            while not self._is_over and self._step() is None:
                self._problem = None
                if self._wanted is None:
                    self._is_over = True
                else:
                    self._changed.wait()
            step = self._step()
            return None if self._is_over or step is None else (step, self._wanted)

    def _take(self, step: ReconcileStep, wanted: InstanceSettings | None) -> None:
        if step is ReconcileStep.STOP or wanted is None:
            self._destinations.stop(self.name)
        elif step is ReconcileStep.START:
            self._destinations.start(wanted)
        else:
            self._destinations.reload(wanted)

    def _done(self, step: ReconcileStep, wanted: InstanceSettings | None) -> None:
        log.info("destination reconciled destination=%s step=%s", self.name, step.value)
        with self._changed:
            self._running = None if step is ReconcileStep.STOP else wanted
            self._is_unclear, self._problem, self._error = False, None, None
            self._has_tried = True
            self._changed.notify_all()

    def _failed(self, step: ReconcileStep, wanted: InstanceSettings | None, error: Exception, failures: int) -> None:
        """Wait for the next attempt, unless other settings arrive in the meantime."""
        if not self._retries:
            with self._changed:
                self._error, self._is_over = error, True
                self._changed.notify_all()
            return
        delay_s = self._backoff.delay_s(failures)
        problem = f"{step.value} failed {failures} times, is tried again: {error or type(error).__name__}"
        log.warning(
            "destination reconcile failed destination=%s step=%s tries=%d delay_s=%.1f reason=%s",
            *(self.name, step.value, failures, delay_s, error),
        )
        until = time.monotonic() + delay_s
        with self._changed:
            self._is_unclear = self._is_unclear or step is ReconcileStep.STOP
            self._problem, self._error, self._has_tried = problem, error, True
            self._changed.notify_all()
            while not self._is_over and self._wanted == wanted and (left_s := until - time.monotonic()) > 0:
                self._changed.wait(left_s)
