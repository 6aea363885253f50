"""The lock that lets one of several clients with the same client id read: canal's, at …/{client id}/running.

When the node vanishes its last owner takes it back at once, the others after `delay_s`. The lock ends with the session,
by our own clock, and when an operator removes the node or writes active=false into it: then it is released.
"""

import logging
import threading
from collections.abc import Callable

from penstock.coordinate import canal
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.lease import Clock, LeaseGuard, boot_clock
from penstock.coordinate.zk_session import ZkNodes, ZkSessions
from penstock.errors import CoordinationError

log = logging.getLogger(__name__)

_RETRY_S = 0.2
_POLL_S = 5.0
_JOIN_S = 10.0


class ClientLock:
    """The lock of one client id of one destination.

        lock = ClientLock(sessions, "shop", 1001, "10.0.0.9:40112")
        lock.start()
        lock.acquire(timeout_s=30)

    `on_lost` is called from another thread, with the reason; after that the lock can be acquired again.
    """

    def __init__(
        self,
        sessions: ZkSessions,
        destination: str,
        client_id: int,
        address: str,
        *,
        delay_s: float = 5.0,
        on_lost: Callable[[str], None] = lambda _: None,
        clock: Clock = boot_clock,
    ) -> None:
        self._sessions, self._clock, self._delay_s, self._on_lost = sessions, clock, delay_s, on_lost
        self._node = RunningNode(address, client_id=client_id)
        self._destination, self._client_id = destination, client_id
        self._path = canal.running_path(destination, client_id)
        self._changed = threading.Condition(threading.RLock())  # protects these:
        self._is_wanted = False
        self._guard: LeaseGuard | None = None
        self._has_node = False  # our node exists, as far as we know
        # Used by the thread alone:
        self._last_owner: str | None = None
        self._due: float | None = None  # when we may try, while nobody has it
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-lock-{destination}/{client_id}", daemon=True)

    def start(self) -> None:
        """Start the thread that takes and watches the lock; `acquire` waits for it."""
        self._sessions.listen(self)
        self._thread.start()

    def close(self) -> None:
        """Release the lock, and end its thread."""
        self.release()
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._sessions.forget(self)

    def acquire(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for the lock, and return whether this process has it. False means that another client
        had it all the time, or that ZooKeeper did not answer."""
        with self._changed:
            self._is_wanted = True
            self._woken.set()
            if self._changed.wait_for(self.is_held, timeout_s):
                return True
            self._is_wanted = False
            return False

    def is_held(self) -> bool:
        """Return whether this process has the lock now: its session has a lease that lasts, and the lock was not
        lost."""
        guard = self._guard
        return guard is not None and guard.is_held()

    def release(self, timeout_s: float = 5.0) -> None:
        """Release the lock: another client may take it when this returns, unless ZooKeeper does not answer."""
        with self._changed:
            self._is_wanted = False
            self._drop()
            self._woken.set()
            self._changed.wait_for(lambda: not self._has_node, timeout_s)

    # -- for the session, in its thread

    def on_lost(self) -> None:
        """Count the lock as lost, because the session with ZooKeeper was lost."""
        self._lose("the session with ZooKeeper was lost")
        self._woken.set()

    def on_back(self) -> None:
        """Look at the lock's node at once, because a new session with ZooKeeper has begun."""
        self._woken.set()

    # -- its thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            self._woken.wait(self.step())

    def step(self) -> float:
        """Read the lock's node once, and take the lock or give it up; return the seconds until the next step, unless a
        watch fires before."""
        session = self._sessions.current
        if session is None or not session.lease.is_held():
            self._note_not_held("the session with ZooKeeper was lost")
            return _POLL_S
        try:
            return self._step(session)
        except CoordinationError as error:
            log.debug(
                "client lock in ZooKeeper not checked, retrying destination=%s client=%d reason=%s",
                self._destination,
                self._client_id,
                error,
            )
            return _RETRY_S

    def _step(self, session: ZkNodes) -> float:
        node = session.get_node(self._path, self._woken.set)
        if node is None:
            self._note_not_held("the node was removed")
            return self._attempt(session)
        running = RunningNode.from_bytes(node.value)
        if node.owner == session.session_id and running.is_active and self._is_wanted:
            self._note_held(session)
            return _POLL_S
        if node.owner == session.session_id or node.owner in self._sessions.past:
            self._lose("active=false was written into its node")
            session.delete(self._path, node.version)
            return 0.0
        self._note_not_held(f"{running.address} has it")
        self._last_owner, self._due = running.address, None
        return _POLL_S

    def _attempt(self, session: ZkNodes) -> float:
        now = self._clock()
        if self._due is None:
            is_free = self._last_owner in {None, self._node.address}
            self._due = now if is_free else now + self._delay_s
        if not self._is_wanted:
            return _POLL_S
        if now < self._due:
            return self._due - now
        session.create_ephemeral(self._path, self._node.to_bytes())
        return 0.0

    def _note_held(self, session: ZkNodes) -> None:
        guard = LeaseGuard(session.lease)
        with self._changed:
            self._last_owner, self._due, self._has_node = self._node.address, None, True
            if self.is_held() or not guard.is_held():
                return
            self._guard = guard
            self._changed.notify_all()
        log.info(
            "client lock in ZooKeeper taken destination=%s client=%d address=%s",
            *(self._destination, self._client_id, self._node.address),
        )

    def _note_not_held(self, reason: str) -> None:
        self._lose(reason)
        with self._changed:
            self._has_node = False
            self._changed.notify_all()

    def _lose(self, reason: str) -> None:
        with self._changed:
            is_lost = self._drop()
            self._is_wanted = self._is_wanted and not is_lost
        if is_lost:
            log.warning(
                "client lock in ZooKeeper lost destination=%s client=%d address=%s reason=%s",
                *(self._destination, self._client_id, self._node.address, reason),
            )
            self._on_lost(reason)

    def _drop(self) -> bool:
        with self._changed:
            guard, self._guard = self._guard, None
            if guard is not None:
                guard.end()
            return guard is not None
