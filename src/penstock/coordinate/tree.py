"""The tree of nodes in which servers share small values, and its implementation on ZooKeeper."""

import logging
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from penstock.errors import CoordinationError, FencedError, MissingExtraError

_TIMEOUT_S = 10.0
# Also how soon kazoo leaves a ZooKeeper that hangs: it gives a connection two thirds of this to answer, and each of n
# hosts an n-th of it to take a new one.
_SESSION_S = 6.0
_RETRY_S = 0.1
_RECONNECTS = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
T = TypeVar("T")
Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ZkNode:
    """The value of a node, its version, and the session that it ends with."""

    value: bytes
    version: int
    owner: int  # the session that it ends with; 0 for a persistent node


class Tree(Protocol):
    """A tree of small values with versions and atomic writes, as ZooKeeper has it."""

    def read(self, path: str) -> tuple[bytes, int] | None:
        """Return the value at a path and its version; None when the path does not exist."""
        ...

    def children(self, path: str) -> list[str]:
        """Return the names of the children of a path, sorted; none for a path that does not exist."""
        ...

    def create(self, path: str, value: bytes) -> None:
        """Create a value at a path, unless the path exists: then it stays as it is."""
        ...

    def commit(self, changes: Mapping[str, bytes | None], check: tuple[str, int] | None = None) -> None:
        """Write these values, and delete the paths whose value is None, all or none. Raises FencedError when the node
        at the path of `check` no longer has this version."""
        ...

    def close(self) -> None:
        """Close the connection to where the tree is stored."""
        ...


def import_kazoo() -> tuple[Any, Any, Any]:
    """Return kazoo's client, its exceptions and its timeout. Raises MissingExtraError when it is not installed."""
    try:
        from kazoo import exceptions  # noqa: PLC0415 - an extra
        from kazoo.client import KazooClient  # noqa: PLC0415
        from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.for_extra("zookeeper", "a tree in ZooKeeper") from None
    return KazooClient, exceptions, KazooTimeoutError


class ZooKeeperTree:
    """A tree of values in ZooKeeper, for any thread. A server that cannot be reached is a CoordinationError, which is
    transient.

        tree = ZooKeeperTree("zk1:2181,zk2:2181")
        node = tree.read("/otter/canal/destinations/shop/running")
    """

    logger: logging.Logger | None = None  # where kazoo logs; by default in its own

    def __init__(self, hosts: str, *, timeout_s: float = _TIMEOUT_S, session_s: float | None = None) -> None:
        client, self._errors, self._timeouts = import_kazoo()
        self._hosts, self._timeout_s = hosts, timeout_s
        session_s = session_s or min(timeout_s, _SESSION_S)
        self._client: Any = client(hosts, timeout=session_s, connection_retry=_RECONNECTS, logger=self.logger)
        self._is_closed = False
        self._before_start()
        with self._translate_errors():
            self._client.start(timeout_s)

    def _before_start(self) -> None:
        """Do nothing before the connection is made; a subclass may watch it being made."""

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        errors = self._errors
        try:
            yield
        except (errors.ConnectionLoss, errors.SessionExpiredError, errors.ConnectionClosedError) as error:
            raise CoordinationError(f"ZooKeeper at {self._hosts} cannot be reached: {type(error).__name__}") from None
        except (self._timeouts, errors.OperationTimeoutError):
            raise CoordinationError(f"ZooKeeper at {self._hosts} does not answer") from None
        except errors.NoAuthError:
            raise CoordinationError(f"ZooKeeper at {self._hosts} refuses: no permission") from None

    def _ask(self, action: Callable[[], T]) -> T:
        """Make a request, and repeat it for as long as one answer may take when the connection or the session breaks:
        every request may be made twice."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                with self._translate_errors():
                    return action()
            except CoordinationError:
                if self._is_closed or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    def _wait(self, answer: Any) -> Any:
        """Return the answer to a request, and wait for it with a limit: kazoo would wait for as long as the connection
        is away."""
        return answer.get(timeout=self._timeout_s)

    def read(self, path: str) -> tuple[bytes, int] | None:
        """Return the value of a node and its version; None when the node does not exist."""
        try:
            value, stat = self._ask(lambda: self._wait(self._client.get_async(path)))
        except self._errors.NoNodeError:
            return None
        return value, stat.version

    def children(self, path: str) -> list[str]:
        """Return the names of the children of a node, sorted; none for a node that does not exist."""
        return self.child_names(path)

    def get_node(self, path: str, wake: Wake | None = None) -> ZkNode | None:
        """Return a node, or None when it does not exist. `wake` is called once, from any thread, after the next change
        of it or when the connection is lost; it may also be called for nothing."""
        return self._ask(lambda: self._get_node(path, wake and _Watch(wake)))

    def _get_node(self, path: str, watch: Any) -> ZkNode | None:
        while True:
            try:
                value, stat = self._wait(self._client.get_async(path, watch=watch))
            except self._errors.NoNodeError:
                if watch is None or self._wait(self._client.exists_async(path, watch=watch)) is None:
                    return None
            else:
                return ZkNode(value, stat.version, stat.ephemeralOwner)

    def child_names(self, path: str, wake: Wake | None = None) -> list[str]:
        """Return the names of the children of a node, sorted; none for a node that does not exist."""
        watch: Any = wake and _Watch(wake)
        try:
            return sorted(self._ask(lambda: self._wait(self._client.get_children_async(path, watch=watch))))
        except self._errors.NoNodeError:
            return []

    def create(self, path: str, value: bytes) -> None:
        """Create a node and its parents, unless the node exists: then it stays as it is."""
        with suppress(self._errors.NodeExistsError):
            self._ask(lambda: self._wait(self._client.create_async(path, value, makepath=True)))

    def commit(self, changes: Mapping[str, bytes | None], check: tuple[str, int] | None = None) -> None:
        """Write these nodes, and delete those whose value is None, in one transaction. Raises FencedError when the node
        at the path of `check` no longer has this version."""
        for attempt in range(3):
            answers = self._ask(lambda: self._commit_once(changes, check))
            failed = [answer for answer in answers if isinstance(answer, Exception)]
            if not failed:
                return
            if check is not None and isinstance(answers[0], (self._errors.BadVersionError, self._errors.NoNodeError)):
                raise FencedError(f"{check[0]} has changed: another server has taken over")
            # Somebody made or removed a node between our look and our write.
            if attempt == 2:
                raise CoordinationError(f"ZooKeeper at {self._hosts} did not take a write: {failed[0]!r}")

    def _commit_once(self, changes: Mapping[str, bytes | None], check: tuple[str, int] | None) -> list[Any]:
        client = self._client
        request = client.transaction()
        if check is not None:
            request.check(*check)
        made = set[str]()
        for path, value in changes.items():
            is_there = self._wait(client.exists_async(path)) is not None
            if value is None:
                if is_there and not self._has_others(path, changes):
                    request.delete(path)
            elif is_there:
                request.set_data(path, value)
            else:
                parent = path.rpartition("/")[0]
                if parent not in made:
                    self._wait(client.ensure_path_async(parent))
                request.create(path, value)
                made.add(path)
        return self._wait(request.commit_async())

    def _has_others(self, path: str, changes: Mapping[str, bytes | None]) -> bool:
        """Return whether a node has children that somebody else has made: then it is not deleted."""
        children = self._wait(self._client.get_children_async(path))
        return any(changes.get(f"{path}/{name}", b"") is not None for name in children)

    def close(self) -> None:
        """Close the connection to ZooKeeper."""
        if not self._is_closed:
            self._is_closed = True
            self._client.stop()
            self._client.close()


class _Watch:
    """A watch that equals every other one with the same wake: kazoo keeps watches in a set."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    def __call__(self, _event: object) -> None:
        self._wake()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watch) and other._wake == self._wake

    def __hash__(self) -> int:
        return hash(self._wake)
