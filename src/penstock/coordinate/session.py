"""The sessions of one process with ZooKeeper, one after another, each for as long as its lease lasts.

A lease runs out by our own clock, sooner than ZooKeeper would give our nodes away: also when this process was stopped
and goes on, or when the connection is cut. Then the session is lost, whatever ZooKeeper says of it, and the next one
is begun. Who serves or writes asks `is_held()` of what he got from the session that he got it from: this one's is
true again with the next session, when others may have what was ours.
"""

import logging
import threading
from collections.abc import Callable

from penstock.coordinate.lease import Clock, boot_clock
from penstock.coordinate.link import Link, Listener
from penstock.errors import CoordinationError, PenstockError

log = logging.getLogger(__name__)

_RENEWALS = 6  # per session
_LOOK_AGAIN_S = 0.5
_JOIN_S = 15.0


class Session:
    """Of a server, or of a client."""

    def __init__(self, hosts: str, *, session_s: float = 6.0, clock: Clock = boot_clock) -> None:
        self.hosts, self.session_s = hosts, session_s
        self.link: Link | None = None  # the present one, while it is held
        self.past: set[int] = set()  # sessions that this process has lost, some of which ZooKeeper may still know
        self._clock = clock
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()  # of the listeners
        self._is_there = threading.Condition()
        self._closing = threading.Event()
        self._problem = ""
        self._leaving: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="penstock-session", daemon=True)

    def start(self) -> None:
        """At once, also where ZooKeeper is not there yet."""
        self._thread.start()

    def wait(self, timeout_s: float) -> Link:
        """For a session; CoordinationError says why there is none."""
        with self._is_there:
            self._is_there.wait_for(lambda: self.link is not None, timeout_s)
        return self.require()

    def require(self) -> Link:
        link = self.link
        if link is None or not link.lease.is_held():
            why = self._problem or "not connected yet"
            raise CoordinationError(f"there is no session with ZooKeeper at {self.hosts}: {why}")
        return link

    @property
    def lease_until(self) -> float:
        """By the clock of `boot_clock`; 0 without a session."""
        link = self.link
        return 0.0 if link is None else link.lease.until

    def is_held(self) -> bool:
        link = self.link
        return link is not None and link.lease.is_held()

    def listen(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        with self._lock:
            self._listeners = [one for one in self._listeners if one is not listener]

    def close(self) -> None:
        """What was made with the session goes with it."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        for thread in self._leaving:
            thread.join(_JOIN_S)

    # -- its thread

    def _run(self) -> None:
        while not self._closing.is_set():
            link = self._open()
            if link is None:
                self._closing.wait(_LOOK_AGAIN_S)
                continue
            with self._is_there:
                self.link = link
                self._is_there.notify_all()
            self._tell(lambda one: one.on_back())
            while link.renew() and not self._closing.wait(link.timeout_s / _RENEWALS):
                pass
            self._lose(link)

    def _open(self) -> Link | None:
        try:
            link = Link(self.hosts, session_s=self.session_s, clock=self._clock)
        except PenstockError as error:
            if str(error) != self._problem:
                log.warning("no session hosts=%s reason=%s", self.hosts, error)
            self._problem = str(error)
            return None
        self._problem = ""
        log.info("session begun id=%#x hosts=%s timeout_s=%g", link.session_id, self.hosts, link.timeout_s)
        return link

    def _lose(self, link: Link) -> None:
        """Those who rest on it are told before ZooKeeper is."""
        link.lease.end()
        self.link = None
        self.past.add(link.session_id)
        if self._closing.is_set():
            log.info("session closed id=%#x", link.session_id)
        else:
            self._problem = "the last one was lost"
            log.warning("session lost id=%#x hosts=%s", link.session_id, self.hosts)
        self._tell(lambda one: one.on_lost())
        # It takes as long as a connection that does not answer.
        name = f"penstock-session-end-{link.session_id:x}"
        thread = threading.Thread(target=_close, args=(link,), name=name, daemon=True)
        self._leaving = [one for one in self._leaving if one.is_alive()] + [thread]
        thread.start()

    def _tell(self, what: Callable[[Listener], None]) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                what(listener)
            except Exception:
                log.exception("a listener failed hosts=%s", self.hosts)


def _close(link: Link) -> None:
    try:
        link.close()
    except Exception as error:  # noqa: BLE001 - kazoo's, of a connection that nobody needs any more
        log.warning("connection not closed id=%#x reason=%r", link.session_id, error)
