"""A client of several servers: it finds the one that runs the destination, and goes on there when another one does.

    with CanalCluster.of_zookeeper("zk1:2181,zk2:2181", "example") as cluster:
        cluster.subscribe("shop\\..*")
        message = cluster.get_without_ack(1000, timeout_s=1)

What was got and not acked comes again from the next server. Of several clients with the same id, the one that has the
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
from penstock.client.canal.message import Message
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


class Finder(Protocol):
    """Where to try next; and whose turn it is."""

    def addresses(self) -> Iterator[str]: ...

    def wait(self, timeout_s: float) -> None: ...

    def has_turn(self) -> bool: ...

    def take_turn(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


class ListFinder:
    """One after the other, from where it went well last."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)

    def addresses(self) -> Iterator[str]:
        yield from list(self._addresses)
        self._addresses.append(self._addresses.pop(0))

    def wait(self, timeout_s: float) -> None:
        time.sleep(timeout_s)

    def has_turn(self) -> bool:
        return True

    def take_turn(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


class ZooKeeperFinder:
    """The running server; and while there is none, any of those that could be."""

    def __init__(self, hosts: str, destination: str, client_id: int) -> None:
        self._session = SessionManager(hosts)
        self._servers = ServerLookup(self._session, destination)
        name = f"{socket.gethostname()}:{os.getpid()}"
        self._lock = ClientLock(self._session, destination, client_id, name)
        self._session.start()
        self._lock.start()

    def addresses(self) -> Iterator[str]:
        running = self._servers.running()
        if running is not None:
            yield running
        else:
            others = self._servers.members()
            yield from random.sample(others, len(others))

    def wait(self, timeout_s: float) -> None:
        self._servers.wait_changed(timeout_s)

    def has_turn(self) -> bool:
        return self._lock.is_held()

    def take_turn(self, timeout_s: float) -> None:
        if not self._lock.is_held() and not self._lock.acquire(timeout_s):
            raise CoordinationError("another client with this id is reading")

    def close(self) -> None:
        self._lock.close()
        self._session.close()


class CanalCluster:
    def __init__(self, finder: Finder, destination: str, *, patience_s: float = 60, **connector: Any) -> None:
        """`connector` is what a CanalConnector takes. No server for `patience_s` is an error."""
        self._finder, self._destination, self._patience_s = finder, destination, patience_s
        self._how = connector
        self._connector: CanalConnector | None = None
        self._filter: str | None = None

    @classmethod
    def of_list(cls, addresses: Sequence[str], destination: str, **how: Any) -> Self:
        return cls(ListFinder(addresses), destination, **how)

    @classmethod
    def of_zookeeper(cls, hosts: str, destination: str, **how: Any) -> Self:
        return cls(ZooKeeperFinder(hosts, destination, how.get("client_id", DEFAULT_CLIENT)), destination, **how)

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str | None:
        """Of the server that it is connected to."""
        return self._connector.address if self._connector is not None else None

    def connect(self) -> None:
        self._connected()

    def disconnect(self) -> None:
        connector, self._connector = self._connector, None
        if connector is not None:
            connector.disconnect()

    def close(self) -> None:
        self.disconnect()
        self._finder.close()

    def subscribe(self, table_filter: str = "") -> None:
        self._filter = table_filter
        self._call(lambda connector: connector.subscribe(table_filter))

    def unsubscribe(self) -> None:
        self._call(lambda connector: connector.unsubscribe())
        self._filter = None

    def get(self, batch_size: int = 1000, timeout_s: float | None = None) -> Message:
        message = self.get_without_ack(batch_size, timeout_s)
        self.ack(message.id)
        return message

    def get_without_ack(self, batch_size: int = 1000, timeout_s: float | None = None) -> Message:
        return self._call(lambda connector: connector.get_without_ack(batch_size, timeout_s))

    def ack(self, batch_id: int) -> None:
        """Where the batch came from. If that server is gone, it comes again from the next."""
        with suppress(ServerUnavailableError):
            if self._connector is not None:
                self._connector.ack(batch_id)

    def rollback(self, batch_id: int = 0) -> None:
        with suppress(ServerUnavailableError):
            if self._connector is not None:
                self._connector.rollback(batch_id)

    def _call(self, action: Callable[[CanalConnector], T]) -> T:
        """Again on another connection, where one breaks or its server does not run the destination any more."""
        deadline = time.monotonic() + self._patience_s
        while True:
            connector = self._connected(deadline)
            try:
                return action(connector)
            except (ServerUnavailableError, ProtocolError, NotRunningError) as error:
                self.disconnect()
                if time.monotonic() > deadline:
                    raise
                log.info("canal server lookup restarted address=%s reason=%s", connector.address, error)
                self._finder.wait(_PAUSE_S)

    def _connected(self, deadline: float | None = None) -> CanalConnector:
        if self._connector is not None and self._connector.is_connected and self._finder.has_turn():
            return self._connector
        self.disconnect()
        deadline = deadline or time.monotonic() + self._patience_s
        problem: PenstockError | None = None
        for attempt in itertools.count():
            try:
                self._finder.take_turn(max(0.0, deadline - time.monotonic()))
                for address in self._finder.addresses():
                    try:
                        self._connector = self._opened(address)
                    except (ServerUnavailableError, ProtocolError, NotRunningError) as error:
                        problem = error
                    else:
                        return self._connector
            except CoordinationError as error:
                problem = error
            if time.monotonic() > deadline and attempt:
                break
            self._finder.wait(_PAUSE_S)
        raise ServerUnavailableError(f"no server runs '{self._destination}': {problem or 'none is known'}")

    def _opened(self, address: str) -> CanalConnector:
        host, _, port = address.rpartition(":")
        connector = CanalConnector(host, int(port), self._destination, **self._how)
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
