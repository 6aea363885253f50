"""One session with ZooKeeper, and no other: what is asked of it after the session ended is an error."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from penstock.coordinate.lease import Clock, Lease, boot_clock
from penstock.coordinate.tree import Tree, ZooKeeperTree
from penstock.errors import CoordinationError

log = logging.getLogger(__name__)

_MARGIN = 1 / 3  # of a session, by which the lease is shorter
_LOOK_AGAIN_S = 0.05
T = TypeVar("T")
Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Node:
    value: bytes
    version: int
    owner: int  # the session with which it goes; 0 when it stays


class Nodes(Tree, Protocol):
    """What an election needs of a session. A wake is called once, from any thread, after the next change of what was
    asked for, and when the connection is lost; it may be called for nothing."""

    session_id: int
    lease: Lease

    def look(self, path: str, wake: Wake | None = None) -> Node | None: ...

    def names(self, path: str, wake: Wake | None = None) -> list[str]:
        """Of its children, in order; none of what is not there."""
        ...

    def make(self, path: str, value: bytes) -> bool:
        """A node that goes with the session. False: there is one."""
        ...

    def remove(self, path: str, version: int) -> bool:
        """False: it is not there in this version."""
        ...


class Listener(Protocol):
    """Called by the session's thread: what takes time belongs elsewhere."""

    def on_lost(self) -> None:
        """Before anything else is done; nothing of it is held any more."""
        ...

    def on_back(self) -> None: ...


class Links(Protocol):
    """One session after another: what an election needs of a Session."""

    past: set[int]

    @property
    def link(self) -> Nodes | None: ...

    def listen(self, listener: Listener) -> None: ...

    def forget(self, listener: Listener) -> None: ...


class Link(ZooKeeperTree):
    """The lease begins with the first answer. It is reckoned from when a request was sent that a quorum has answered:
    a server that is cut off from its leader answers reads for a while, and so does a leader that was replaced, when the
    others have given our nodes away. The margin is for what a server had heard of us and took along when it died."""

    def __init__(self, hosts: str, *, session_s: float, clock: Clock = boot_clock) -> None:
        self.lease = Lease(clock)
        self.session_id = 0
        self.timeout_s = session_s  # what ZooKeeper has made of it
        self._clock = clock
        self._closing = threading.Event()
        super().__init__(hosts, timeout_s=session_s)
        self.session_id = (self._client.client_id or (0,))[0]
        sent = clock()
        try:
            self._touch(session_s)
        except BaseException:
            self.close()
            raise
        self.lease.renew(self._until(sent))

    def _before_start(self) -> None:
        """kazoo keeps to itself which timeout was agreed on: what it makes of it is two thirds, in milliseconds. And
        when a session has ended it would begin another by itself."""
        connection = self._client._connection  # noqa: SLF001
        connect = connection._connect  # noqa: SLF001

        def measured(*host: Any) -> tuple[float, float]:
            if not self.lease.is_held():
                raise self._errors.ConnectionDropped("the session has ended")
            found = connect(*host)
            self.timeout_s = found[0] * 1.5 / 1000
            return found

        connection._connect = measured  # noqa: SLF001
        self._client.add_listener(self._on_state)

    def _on_state(self, state: str) -> None:
        if state == "LOST":
            self.lease.end()

    def _ask(self, action: Callable[[], T]) -> T:
        """Once: who asks looks again himself."""
        if self._closing.is_set() or not self.lease.is_held():
            raise CoordinationError(f"the session {self.session_id:#x} with ZooKeeper at {self._hosts} has ended")
        with self._answered():
            return action()

    # -- the lease

    def renew(self) -> bool:
        """Ask until there is an answer; False: the lease is out."""
        while self.lease.is_held():
            sent = self._clock()
            try:
                self._touch(self.lease.left_s)
            except CoordinationError:
                self._closing.wait(min(_LOOK_AGAIN_S, self.lease.left_s))
            else:
                self.lease.renew(self._until(sent))
                return self.lease.is_held()
        return False

    def _until(self, sent: float) -> float:
        return sent + self.timeout_s * (1 - _MARGIN)

    def _touch(self, timeout_s: float) -> None:
        """A transaction that changes nothing, and that the leader agrees on with the others."""
        request = self._client.transaction()
        request.check("/", -1)
        with self._answered():
            request.commit_async().get(timeout=max(timeout_s, 0.001))

    # -- nodes

    def look(self, path: str, wake: Wake | None = None) -> Node | None:
        return self._ask(lambda: self._look(path, wake and _Watch(wake)))

    def _look(self, path: str, watch: Any) -> Node | None:
        while True:
            try:
                value, about = self._wait(self._client.get_async(path, watch=watch))
            except self._errors.NoNodeError:
                if watch is None or self._wait(self._client.exists_async(path, watch=watch)) is None:
                    return None
            else:
                return Node(value, about.version, about.ephemeralOwner)

    def names(self, path: str, wake: Wake | None = None) -> list[str]:
        watch: Any = wake and _Watch(wake)
        try:
            return sorted(self._ask(lambda: self._wait(self._client.get_children_async(path, watch=watch))))
        except self._errors.NoNodeError:
            return []

    def make(self, path: str, value: bytes) -> bool:
        try:
            self._ask(lambda: self._wait(self._client.create_async(path, value, ephemeral=True, makepath=True)))
        except self._errors.NodeExistsError:
            return False
        return True

    def remove(self, path: str, version: int) -> bool:
        try:
            self._ask(lambda: self._wait(self._client.delete_async(path, version)))
        except (self._errors.NoNodeError, self._errors.BadVersionError):
            return False
        return True

    def close(self) -> None:
        self._closing.set()
        self.lease.end()
        super().close()


class _Watch:
    """kazoo keeps watches in a set: two of one wake are one."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    def __call__(self, _event: object) -> None:
        self._wake()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watch) and other._wake == self._wake

    def __hash__(self) -> int:
        return hash(self._wake)
