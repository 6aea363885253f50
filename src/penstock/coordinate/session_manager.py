"""The sessions of one process with ZooKeeper, one after another, each for as long as its lease lasts.

A lease runs out by our own clock, before ZooKeeper would delete our ephemeral nodes: also when this process was
suspended, or when the connection is cut. Then the session counts as lost, whatever ZooKeeper says of it, and the next
one begins. Check `is_held()` on the fence or guard you were given, never here: this one turns true again with the next
session, when another server may own the destination.
"""

import logging
import threading
from collections.abc import Callable

from penstock.coordinate.lease import Clock, boot_clock
from penstock.coordinate.zk_session import Listener, ZkSession
from penstock.errors import CoordinationError, PenstockError

log = logging.getLogger(__name__)

_RENEWALS = 6  # per session
_RETRY_S = 0.5
_JOIN_S = 15.0


class SessionManager:
    """Keeps a session with ZooKeeper for a server or a client, and begins the next when one is lost.

    sessions = SessionManager("zk1:2181,zk2:2181")
    sessions.start()
    sessions.wait(10).get_node("/otter/canal")
    """

    def __init__(self, hosts: str, *, session_s: float = 6.0, clock: Clock = boot_clock) -> None:
        self.hosts, self.session_s = hosts, session_s
        self.current: ZkSession | None = None  # the present one, while it is held
        self.past: set[int] = set()  # sessions that this process has lost, some of which ZooKeeper may still know
        self._clock = clock
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()  # of the listeners
        self._began = threading.Condition()
        self._closing = threading.Event()
        self._problem = ""
        self._leaving: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="penstock-session", daemon=True)

    def start(self) -> None:
        """Start the thread that opens sessions; the first begins as soon as ZooKeeper answers."""
        self._thread.start()

    def wait(self, timeout_s: float) -> ZkSession:
        """Wait for a session; CoordinationError says why there is none."""
        with self._began:
            self._began.wait_for(lambda: self.current is not None, timeout_s)
        return self.require()

    def require(self) -> ZkSession:
        """Return the present session; CoordinationError says why there is none."""
        session = self.current
        if session is None or not session.lease.is_held():
            why = self._problem or "not connected yet"
            raise CoordinationError(f"there is no session with ZooKeeper at {self.hosts}: {why}")
        return session

    @property
    def problem(self) -> str:
        """The reason why there is no session; empty while there is one, and before the first attempt to open one."""
        return "" if self.is_held() else self._problem

    @property
    def lease_until(self) -> float:
        """The time at which the present lease ends, by the clock of `boot_clock`; 0 without a session."""
        session = self.current
        return 0.0 if session is None else session.lease.until

    def is_held(self) -> bool:
        """Return whether there is a session now whose lease lasts; this turns true again with the next session."""
        session = self.current
        return session is not None and session.lease.is_held()

    def listen(self, listener: Listener) -> None:
        """Notify a listener, from now on, when a session is lost or begins."""
        with self._lock:
            self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        """Stop notifying a listener about sessions."""
        with self._lock:
            self._listeners = [known for known in self._listeners if known is not listener]

    def close(self) -> None:
        """End the session, and with it the ephemeral nodes that it made."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        for thread in self._leaving:
            thread.join(_JOIN_S)

    # -- its thread

    def _run(self) -> None:
        while not self._closing.is_set():
            session = self._open()
            if session is None:
                self._closing.wait(_RETRY_S)
                continue
            with self._began:
                self.current = session
                self._began.notify_all()
            self._notify(lambda listener: listener.on_back())
            while session.renew() and not self._closing.wait(session.timeout_s / _RENEWALS):
                pass
            self._lose(session)

    def _open(self) -> ZkSession | None:
        try:
            session = ZkSession(self.hosts, session_s=self.session_s, clock=self._clock)
        except PenstockError as error:
            if str(error) != self._problem:
                log.warning("zookeeper session not opened hosts=%s reason=%s", self.hosts, error)
            self._problem = str(error)
            return None
        self._problem = ""
        log.info(
            "zookeeper session opened id=%#x hosts=%s timeout_s=%g", session.session_id, self.hosts, session.timeout_s
        )
        return session

    def _lose(self, session: ZkSession) -> None:
        """Notify the listeners first, then end the session at ZooKeeper."""
        session.lease.end()
        self.current = None
        self.past.add(session.session_id)
        if self._closing.is_set():
            log.info("zookeeper session closed id=%#x", session.session_id)
        else:
            self._problem = "the last one was lost"
            log.warning("zookeeper session lost id=%#x hosts=%s", session.session_id, self.hosts)
        self._notify(lambda listener: listener.on_lost())
        # It takes as long as a connection that does not answer.
        name = f"penstock-session-end-{session.session_id:x}"
        thread = threading.Thread(target=_close, args=(session,), name=name, daemon=True)
        self._leaving = [closing for closing in self._leaving if closing.is_alive()] + [thread]
        thread.start()

    def _notify(self, notify: Callable[[Listener], None]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                notify(listener)
            except Exception:
                log.exception("zookeeper session listener failed hosts=%s", self.hosts)


def _close(session: ZkSession) -> None:
    try:
        session.close()
    except Exception as error:  # noqa: BLE001 - kazoo's, of a connection that nobody needs any more
        log.warning("zookeeper connection not closed id=%#x reason=%r", session.session_id, error)
