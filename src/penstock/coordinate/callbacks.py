"""Calls `on_running` when an election is won and `on_stopped` when the term ends, one after another, in its own thread.

Invariant: `on_stopped` is called once for each `on_running` that returned, and before the next one.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from penstock.coordinate.election_nodes import ElectionNodes
from penstock.coordinate.fence import Fence

log = logging.getLogger(__name__)

OnRunning = Callable[[Fence], None]
OnStopped = Callable[[str], None]
OnFailed = Callable[[Fence, Exception], None]
_JOIN_S = 10.0


class Callbacks:
    """Queues and makes the calls `on_running` and `on_stopped`, at the begin and the end of each term that this server
    wins in the election of one destination. A term begins only when no call is left (`is_idle`), so the queue is
    bounded."""

    def __init__(self, nodes: ElectionNodes, on_running: OnRunning, on_stopped: OnStopped, on_failed: OnFailed) -> None:
        self._label = nodes.label
        self._on_running, self._on_stopped, self._on_failed = on_running, on_stopped, on_failed
        self._queue: deque[Fence | str] = deque()
        self._changed = threading.Condition()  # protects the queue and these two:
        self._is_busy = self._is_closing = False
        self._has_begun = False  # of the thread alone
        self._thread = threading.Thread(target=self._run, name=f"penstock-running-{nodes.name}", daemon=True)

    def start(self) -> None:
        """Start the thread that makes the calls."""
        self._thread.start()

    def begin(self, fence: Fence) -> None:
        """Queue the call of `on_running` with the fence of an election that was won."""
        self._add(fence)

    def end(self, reason: str) -> None:
        """Queue the call of `on_stopped` with the reason why the term has ended."""
        self._add(reason)

    def is_idle(self) -> bool:
        """Return whether no call of `on_running` or `on_stopped` is queued or being made."""
        with self._changed:
            return not self._queue and not self._is_busy

    def wait(self, timeout_s: float) -> bool:
        """Wait until all calls were made; False after the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._is_busy, timeout_s)

    def close(self) -> None:
        """Make the calls of `on_running` and `on_stopped` that are still queued, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    def _add(self, call: Fence | str) -> None:
        with self._changed:
            self._queue.append(call)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._queue or self._is_closing)
                if not self._queue:
                    return
                call = self._queue.popleft()
                self._is_busy = True
            if isinstance(call, Fence):
                self._begin(call)
            else:
                self._end(call)

    def _begin(self, fence: Fence) -> None:
        if not fence.is_held():
            return  # this term ended while the one before it was being stopped
        try:
            self._on_running(fence)
        except Exception as error:  # noqa: BLE001 - whatever it is, another server may do better
            self._on_failed(fence, error)
        else:
            self._has_begun = True

    def _end(self, reason: str) -> None:
        if not self._has_begun:
            return
        self._has_begun = False
        try:
            self._on_stopped(reason)
        except Exception:
            log.exception("error while stopping at the end of an election term %s", self._label)
