"""A client of several servers: it finds the one that runs the destination, and resumes on another one that takes over.

    with CanalCluster.from_zookeeper("zk1:2181,zk2:2181", "example") as cluster:
        cluster.subscribe("shop\\..*")
        message = cluster.get_without_ack(1000, timeout_s=1)

What was not acked is redelivered by the next server. Of several clients with the same id, the one that has the
lock in ZooKeeper reads; the others wait in `connect`.
"""

import itertools
import logging
import os
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self, TypeVar

from penstock.client.canal.connector import DEFAULT_CLIENT, CanalConnector
from penstock.client.canal.message import CanalMessage
from penstock.coordinate import ClientLock, ServerLookup, SessionManager
from penstock.errors import (
    AuthenticationError,
    CoordinationError,
    NotRunningError,
    PenstockError,
    ProtocolError,
    ServerUnavailableError,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
_PAUSE_S = 0.05


class ServerFinder(Protocol):
    """Finds the servers to try next; with ZooKeeper, it also decides which of several clients with one id may read."""

    def candidate_addresses(self) -> Iterator[str]:
        """Yield the addresses of the servers to try, the most likely one first."""
        ...

    def wait_for_change(self, timeout_s: float) -> None:
        """Wait until trying again makes sense, at most this long."""

    def holds_client_lock(self) -> bool:
        """Return whether this client may read, because no other client with its id does."""
        ...

    def acquire_client_lock(self, timeout_s: float) -> None:
        """Wait until this client may read. Raises CoordinationError when another client with its id still reads after
        `timeout_s`."""

    def close(self) -> None:
        """Release the client lock, and close the connections."""


class ListFinder:
    """Tries the servers of a list one after the other, beginning with the one that worked last."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)

    def candidate_addresses(self) -> Iterator[str]:
        """Yield the addresses, beginning with the one that worked last."""
        yield from list(self._addresses)
        self._addresses.append(self._addresses.pop(0))

    def wait_for_change(self, timeout_s: float) -> None:
        """Sleep for `timeout_s`: a list of servers cannot report a change."""
        time.sleep(timeout_s)

    def holds_client_lock(self) -> bool:
        """Return True: a list has no client lock."""
        return True

    def acquire_client_lock(self, timeout_s: float) -> None:
        """Do nothing: a list has no client lock."""

    def close(self) -> None:
        """Do nothing: a list of servers has no lock and no connections."""


class ZooKeeperFinder:
    """Finds in ZooKeeper the server that runs the destination; while there is none, the servers that could run it."""

    def __init__(self, hosts: str, destination: str, client_id: int) -> None:
        self._session = SessionManager(hosts)
        self._servers = ServerLookup(self._session, destination)
        name = f"{socket.gethostname()}:{os.getpid()}"
        self._lock = ClientLock(self._session, destination, client_id, name)
        self._session.start()
        self._lock.start()

    def candidate_addresses(self) -> Iterator[str]:
        """Yield the running server, or those that could run the destination."""
        running = self._servers.running()
        if running is not None:
            yield running
        else:
            others = self._servers.members()
            yield from random.sample(others, len(others))

    def wait_for_change(self, timeout_s: float) -> None:
        """Wait until ZooKeeper reports a change, at most this long."""
        self._servers.wait_changed(timeout_s)

    def holds_client_lock(self) -> bool:
        """Return whether this client holds its lock in ZooKeeper."""
        return self._lock.is_held()

    def acquire_client_lock(self, timeout_s: float) -> None:
        """Wait for the client's lock in ZooKeeper. Raises CoordinationError when it cannot be taken within
        `timeout_s`."""
        if not self._lock.is_held() and not self._lock.acquire(timeout_s):
            raise CoordinationError("another client with this id is reading")

    def close(self) -> None:
        """Release the client's lock, and close the ZooKeeper session."""
        self._lock.close()
        self._session.close()


class CanalCluster:
    """A canal client of several servers: it reconnects to whichever server runs the destination.

    cluster = CanalCluster.from_addresses(["cdc1:11111", "cdc2:11111"], "example")
    message = cluster.get_without_ack(1000, timeout_s=1)
    """

    def __init__(
        self, finder: ServerFinder, destination: str, *, retry_timeout_s: float = 60, **connector: Any
    ) -> None:
        """Create the client; `connector` has the options of a CanalConnector. No server for `retry_timeout_s` is an
        error.
        """
        self._finder, self._destination, self._retry_timeout_s = finder, destination, retry_timeout_s
        self._connector_options = connector
        self._connector: CanalConnector | None = None
        self._filter: str | None = None

    @classmethod
    def from_addresses(cls, addresses: Sequence[str], destination: str, **options: Any) -> Self:
        """Create a client of the servers in a list."""
        return cls(ListFinder(addresses), destination, **options)

    @classmethod
    def from_zookeeper(cls, hosts: str, destination: str, **options: Any) -> Self:
        """Create a client of the server that ZooKeeper names."""
        return cls(
            ZooKeeperFinder(hosts, destination, options.get("client_id", DEFAULT_CLIENT)), destination, **options
        )

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str | None:
        """Return the address of the server that it is connected to."""
        return self._connector.address if self._connector is not None else None

    def connect(self) -> None:
        """Connect to the server that runs the destination."""
        self._get_connector()

    def disconnect(self) -> None:
        """Disconnect; batches that were not acked are redelivered later."""
        connector, self._connector = self._connector, None
        if connector is not None:
            connector.disconnect()

    def close(self) -> None:
        """Disconnect, and release the client lock."""
        self.disconnect()
        self._finder.close()

    def subscribe(self, table_filter: str = "") -> None:
        """Subscribe with a filter; it is repeated after each reconnect."""
        self._filter = table_filter
        self._call_with_retry(lambda connector: connector.subscribe(table_filter))

    def unsubscribe(self) -> None:
        """End the client's subscription to the destination."""
        self._call_with_retry(lambda connector: connector.unsubscribe())
        self._filter = None

    def get(self, batch_size: int = 1000, timeout_s: float | None = None) -> CanalMessage:
        """Return the next batch and ack it at once: if the client crashes afterwards, the batch is lost."""
        message = self.get_without_ack(batch_size, timeout_s)
        self.ack(message.id)
        return message

    def get_without_ack(self, batch_size: int = 1000, timeout_s: float | None = None) -> CanalMessage:
        """Return the next batch, which is outstanding until it is acked or rolled back."""
        return self._call_with_retry(lambda connector: connector.get_without_ack(batch_size, timeout_s))

    def ack(self, batch_id: int) -> None:
        """Ack a batch at the server that it came from. If that server is gone, the batch is redelivered by the next."""
        with suppress(ServerUnavailableError):
            if self._connector is not None:
                self._connector.ack(batch_id)

    def rollback(self, batch_id: int = 0) -> None:
        """Roll back a batch, or with 0 all outstanding batches: they are redelivered."""
        with suppress(ServerUnavailableError):
            if self._connector is not None:
                self._connector.rollback(batch_id)

    def _call_with_retry(self, action: Callable[[CanalConnector], T]) -> T:
        """Make a call, and repeat it on another connection if one breaks or its server no longer runs the
        destination.
        """
        deadline = time.monotonic() + self._retry_timeout_s
        while True:
            connector = self._get_connector(deadline)
            try:
                return action(connector)
            except (ServerUnavailableError, ProtocolError, NotRunningError) as error:
                self.disconnect()
                if time.monotonic() > deadline:
                    raise
                log.info(
                    "connection to canal server lost, looking for the running server destination=%s address=%s"
                    " reason=%s",
                    *(self._destination, connector.address, error),
                )
                self._finder.wait_for_change(_PAUSE_S)

    def _get_connector(self, deadline: float | None = None) -> CanalConnector:
        """Return the connector, connecting first if needed."""
        if self._connector is not None and self._connector.is_connected and self._finder.holds_client_lock():
            return self._connector
        self.disconnect()
        deadline = deadline or time.monotonic() + self._retry_timeout_s
        problem: PenstockError | None = None
        for attempt in itertools.count():
            try:
                self._finder.acquire_client_lock(max(0.0, deadline - time.monotonic()))
                for address in self._finder.candidate_addresses():
                    try:
                        self._connector = self._open_connector(address)
                    except (ServerUnavailableError, ProtocolError, NotRunningError) as error:
                        problem = error
                    else:
                        return self._connector
            except CoordinationError as error:
                problem = error
            if time.monotonic() > deadline and attempt:
                break
            self._finder.wait_for_change(_PAUSE_S)
        raise ServerUnavailableError(f"no server runs '{self._destination}': {problem or 'none is known'}")

    def _open_connector(self, address: str) -> CanalConnector:
        """Connect to one server, and subscribe again."""
        host, _, port = address.rpartition(":")
        connector = CanalConnector(host, int(port), self._destination, **self._connector_options)
        try:
            connector.connect()
            if self._filter is not None:
                connector.subscribe(self._filter)
                connector.rollback()
        except AuthenticationError:
            raise
        except BaseException:
            connector.disconnect()
            raise
        return connector
