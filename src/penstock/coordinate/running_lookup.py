"""Looks up the server that runs a destination, for clients of Arrow Flight.

A client only reads ZooKeeper: it makes no nodes, and has no lease to renew. All clients of a process share one
connection per ensemble, which is opened with the first question and closed when nobody has needed it for a while.
"""

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.coordinate import canal
from penstock.coordinate.canal import MemberNode, RunningNode
from penstock.coordinate.tree import T, ZooKeeperTree
from penstock.errors import CoordinationError, NotRunningError

log = logging.getLogger(__name__)

_TIMEOUT_S = 6.0  # of a session, and of each answer
_IDLE_S = 30.0
_POLL_S = 5.0  # between two looks at what is followed, when no watch fires


@dataclass(frozen=True, slots=True)
class RunningServer:
    """The server that runs a destination: its address for canal's clients, the URL of its Arrow Flight, and the
    ZooKeeper session that its running node ends with."""

    address: str
    flight_url: str
    owner: int


class Cancelled(Protocol):
    """A call or an open stream that is bound to the server that runs a destination."""

    def cancel(self) -> None:
        """End the call or the stream; called from another thread."""
        ...


@dataclass(frozen=True, slots=True)
class _Follower:
    destination: str
    owner: int
    stream: "weakref.ref[Cancelled]"


class _LookupTree(ZooKeeperTree):
    """Puts each question once: whoever asks for a running server has retries of its own, and logs them."""

    logger = logging.getLogger(f"{__name__}.kazoo")
    logger.setLevel(logging.ERROR)

    def _ask(self, action: Callable[[], T]) -> T:
        with self._translate_errors():
            return action()


class RunningLookup:
    """Looks up running servers in one ZooKeeper ensemble. Any thread may call it.

    lookup = shared_lookup("zk1:2181,zk2:2181")
    lookup.find("shop").flight_url
    """

    def __init__(self, hosts: str, *, idle_s: float = _IDLE_S) -> None:
        self.hosts, self._idle_s = hosts, idle_s
        self._lock = threading.Lock()  # protects these:
        self._tree: ZooKeeperTree | None = None
        self._used = 0.0  # when somebody asked last
        self._thread: threading.Thread | None = None
        self._followers: list[_Follower] = []
        self._owners: dict[str, int | None] = {}  # of the running nodes that are watched, as seen last
        self._woken = threading.Event()

    @property
    def is_connected(self) -> bool:
        """Return whether this lookup has an open connection to ZooKeeper."""
        return self._tree is not None

    def find(self, destination: str) -> RunningServer:
        """Return the server that runs a destination now; NotRunningError says that there is none, CoordinationError
        that ZooKeeper does not say."""
        tree = self._open()
        node = tree.get_node(canal.running_path(destination))
        if node is None:
            members = ", ".join(tree.child_names(canal.members_path(destination)))
            candidates = f"{members} could run it" if members else "no server there has it"
            raise NotRunningError(f"ZooKeeper at {self.hosts} has no running server of '{destination}': {candidates}")
        running = RunningNode.from_bytes(node.value)
        if not running.is_active:
            raise NotRunningError(f"{running.address} has paused '{destination}': active=false in its running node")
        member = tree.get_node(canal.member_path(destination, running.address))
        # The node of an earlier process with the same address stays until the session of that one ends.
        flight_url = MemberNode.from_bytes(member.value).flight_url if member and member.owner == node.owner else ""
        if not flight_url:
            raise NotRunningError(
                f"{running.address} runs '{destination}', and has not published in ZooKeeper where its Arrow Flight"
                " is: is it a canal server?"
            )
        return RunningServer(running.address, flight_url, node.owner)

    def follow(self, destination: str, server: RunningServer, stream: Cancelled) -> None:
        """Cancel a call or a stream as soon as its server does not run the destination any more, for as long as it is
        referenced: a server that hangs, or lost its network, does not end them itself."""
        with self._lock:
            self._followers.append(_Follower(destination, server.owner, weakref.ref(stream)))
            self._start_thread()
            is_known = self._owners.get(destination) == server.owner
        if not is_known:
            self._woken.set()

    def _open(self) -> ZooKeeperTree:
        with self._lock:
            self._used = time.monotonic()
            if self._tree is None:
                self._tree = _LookupTree(self.hosts, timeout_s=_TIMEOUT_S)
                log.debug("zookeeper connection for server lookup opened hosts=%s", self.hosts)
                self._start_thread()
            return self._tree

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock-running-lookup", daemon=True)
            self._thread.start()

    # -- its thread, which ends when nobody has needed it for a while

    def _run(self) -> None:
        while True:
            self._woken.wait(min(_POLL_S, self._idle_s))
            self._woken.clear()
            with self._lock:
                self._followers = [follower for follower in self._followers if follower.stream() is not None]
                destinations = {follower.destination for follower in self._followers}
                self._owners = {name: owner for name, owner in self._owners.items() if name in destinations}
                if not destinations and time.monotonic() > self._used + self._idle_s:
                    tree, self._tree, self._thread = self._tree, None, None
                    break
            for destination in destinations:
                self._check(destination)
        if tree is not None:
            tree.close()
            log.debug("zookeeper connection for server lookup closed hosts=%s", self.hosts)

    def _check(self, destination: str) -> None:
        try:
            node = self._open().get_node(canal.running_path(destination), self._woken.set)
        except CoordinationError as error:
            log.debug("lookup of the running server failed destination=%s reason=%s", destination, error)
            with self._lock:
                self._owners.pop(destination, None)
            return
        owner = None if node is None else node.owner
        with self._lock:
            self._owners[destination] = owner
            moved = [
                follower
                for follower in self._followers
                if follower.destination == destination and follower.owner != owner
            ]
            self._followers = [follower for follower in self._followers if follower not in moved]
        for follower in moved:
            stream = follower.stream()
            if stream is not None:
                log.info(
                    "change stream cancelled destination=%s reason=its server does not run the destination any more",
                    destination,
                )
                stream.cancel()


_lookups: dict[tuple[int, str], RunningLookup] = {}  # by process, because no connection survives a fork, and ensemble
_lookups_lock = threading.Lock()


def shared_lookup(hosts: str) -> RunningLookup:
    """Return the lookup that all clients of this process share."""
    with _lookups_lock:
        return _lookups.setdefault((os.getpid(), hosts), RunningLookup(hosts))
