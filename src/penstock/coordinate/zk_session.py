"""One session with ZooKeeper. A request after the session has ended is an error; it never continues in the next one."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from penstock.coordinate.lease import Clock, Lease, boot_clock
from penstock.coordinate.tree import Tree, Wake, ZkNode, ZooKeeperTree
from penstock.errors import CoordinationError

log = logging.getLogger(__name__)

_MARGIN = 1 / 3  # of a session, by which the lease is shorter
_RETRY_S = 0.05
T = TypeVar("T")


class ZkNodes(Tree, Protocol):
    """The operations on ZooKeeper's nodes, in one session, that an election needs.

    `wake` is called once, from any thread, after the next change of what was read, or when the connection is lost. It
    may also be called for nothing.
    """

    session_id: int
    lease: Lease

    def get_node(self, path: str, wake: Wake | None = None) -> ZkNode | None:
        """Return a node, or None when it does not exist."""
        ...

    def child_names(self, path: str, wake: Wake | None = None) -> list[str]:
        """Return the names of the children of a node, sorted; none for a node that does not exist."""
        ...

    def create_ephemeral(self, path: str, value: bytes) -> bool:
        """Create an ephemeral node; False when the path exists."""
        ...

    def delete(self, path: str, version: int) -> bool:
        """Delete a node and return True; False when it is not there, or has another version."""
        ...


class Listener(Protocol):
    """Receives the news that a session was lost or has begun, in the thread of the session manager: it must return
    quickly."""

    def on_lost(self) -> None:
        """Called before anything else happens: what the session held is held no longer."""
        ...

    def on_back(self) -> None:
        """Called when a new session has begun."""
        ...


class ZkSessions(Protocol):
    """The sessions of a process, one after another: what an election needs of a SessionManager."""

    past: set[int]

    @property
    def current(self) -> ZkNodes | None:
        """The present session; None while there is none."""
        ...

    def listen(self, listener: Listener) -> None:
        """Notify a listener, from now on, when a session is lost or begins."""
        ...

    def forget(self, listener: Listener) -> None:
        """Stop notifying a listener about sessions."""
        ...


class ZkSession(ZooKeeperTree):
    """One session, with a lease that ends by our own clock before ZooKeeper would expire the session.

    The lease runs from the moment we *sent* the last request that a quorum acknowledged. Reads do not count: a
    partitioned follower or a deposed leader keeps answering them after the ensemble expired us. The margin of a third
    covers heartbeats that a server had received but not forwarded when it died.
    """

    def __init__(self, hosts: str, *, session_s: float, clock: Clock = boot_clock) -> None:
        self.lease = Lease(clock)
        self.session_id = 0
        self.timeout_s = session_s  # as negotiated with ZooKeeper
        self._clock = clock
        self._closing = threading.Event()
        super().__init__(hosts, timeout_s=session_s, session_s=session_s)
        self.session_id = (self._client.client_id or (0,))[0]
        sent = clock()
        try:
            self._touch(session_s)
        except BaseException:
            self.close()
            raise
        self.lease.renew(self._until(sent))

    def _before_start(self) -> None:
        """Learn the negotiated timeout, which kazoo does not publish (its read timeout is two thirds of it, in
        milliseconds), and keep kazoo from beginning another session by itself."""
        connection = self._client._connection  # noqa: SLF001
        connect = connection._connect  # noqa: SLF001

        def connect_and_measure(*host: Any) -> tuple[float, float]:
            if not self.lease.is_held():
                raise self._errors.ConnectionDropped("the session has ended")
            timeouts = connect(*host)
            self.timeout_s = timeouts[0] * 1.5 / 1000
            return timeouts

        connection._connect = connect_and_measure  # noqa: SLF001
        self._client.add_listener(self._on_state)

    def _on_state(self, state: str) -> None:
        if state == "LOST":
            self.lease.end()

    def _ask(self, action: Callable[[], T]) -> T:
        """Make a request once, without retries: the caller repeats its whole step."""
        if self._closing.is_set() or not self.lease.is_held():
            raise CoordinationError(f"the session {self.session_id:#x} with ZooKeeper at {self._hosts} has ended")
        with self._translate_errors():
            return action()

    # -- the lease

    def renew(self) -> bool:
        """Renew the lease, and repeat that until ZooKeeper answers; False when the lease has run out."""
        while self.lease.is_held():
            sent = self._clock()
            try:
                self._touch(self.lease.left_s)
            except CoordinationError:
                self._closing.wait(min(_RETRY_S, self.lease.left_s))
            else:
                self.lease.renew(self._until(sent))
                return self.lease.is_held()
        return False

    def _until(self, sent: float) -> float:
        return sent + self.timeout_s * (1 - _MARGIN)

    def _touch(self, timeout_s: float) -> None:
        """Commit a transaction that changes nothing: only a quorum can acknowledge it."""
        request = self._client.transaction()
        request.check("/", -1)
        with self._translate_errors():
            request.commit_async().get(timeout=max(timeout_s, 0.001))

    # -- nodes

    def create_ephemeral(self, path: str, value: bytes) -> bool:
        """Create an ephemeral node, which ends with this session; False when the path exists."""
        try:
            self._ask(lambda: self._wait(self._client.create_async(path, value, ephemeral=True, makepath=True)))
        except self._errors.NodeExistsError:
            return False
        return True

    def delete(self, path: str, version: int) -> bool:
        """Delete a node and return True; False when it is not there, or has another version."""
        try:
            self._ask(lambda: self._wait(self._client.delete_async(path, version)))
        except (self._errors.NoNodeError, self._errors.BadVersionError):
            return False
        return True

    def close(self) -> None:
        """End the lease and the session, and close the connection to ZooKeeper."""
        self._closing.set()
        self.lease.end()
        super().close()
