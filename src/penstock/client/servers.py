"""The servers that a client may ask: one, those of a list, or the one that ZooKeeper names."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.client.address import ServerAddress
from penstock.client.channel import ServerChannel
from penstock.client.embedded import EmbeddedServers, EmbeddedSource
from penstock.errors import CoordinationError

if TYPE_CHECKING:
    from penstock.coordinate import RunningServer
    from penstock.coordinate.running_lookup import Cancelled


class ServerList(Protocol):
    """Decides which servers to ask for one destination. Any thread may call it."""

    is_single: bool  # whether there is no other server to go to

    def candidates(self, start_timeout_s: float) -> Sequence[ServerChannel]:
        """Return the servers to ask, the most likely one first; NotRunningError or CoordinationError when there is
        none to ask now. A server that is started for it may take `start_timeout_s`."""
        ...

    def demote(self, channel: ServerChannel) -> None:
        """Do not ask this server first any more: it does not run the destination, or does not answer."""
        ...

    def watch(self, channel: ServerChannel, cancelled: "Cancelled") -> None:
        """Cancel a call or a stream when its server no longer runs the destination, as far as that can be known without
        it."""
        ...

    def close(self) -> None:
        """Close the connections to all servers."""
        ...


class NamedServers:
    """One server, or a list of servers of which one runs the destination."""

    def __init__(self, address: ServerAddress) -> None:
        urls = address.urls
        self.is_single = len(urls) == 1
        names = (
            [text.strip() for text in address.server.split(",")]
            if self.is_single
            else [_host_and_port(url) for url in urls]
        )
        advice = {} if self.is_single else {"advice": ""}
        self._channels = [
            ServerChannel(address, url, name=name, **advice) for url, name in zip(urls, names, strict=True)
        ]
        self._lock = threading.Lock()  # of this:
        self._first = 0  # the one to ask first

    def candidates(self, start_timeout_s: float) -> Sequence[ServerChannel]:  # noqa: ARG002 - it starts none
        """Return the servers of the list, beginning with the one that worked last."""
        with self._lock:
            first = self._first
        return self._channels[first:] + self._channels[:first]

    def demote(self, channel: ServerChannel) -> None:
        """Ask the next server of the list first from now on, if this one was the first."""
        with self._lock:
            if self._channels[self._first] is channel:
                self._first = (self._first + 1) % len(self._channels)

    def watch(self, channel: ServerChannel, cancelled: "Cancelled") -> None:
        """Do nothing: a server of a list ends its calls and streams itself."""

    def close(self) -> None:
        """Close the connections to all servers of the list."""
        for channel in self._channels:
            channel.client.close()


class ZooKeeperServers:
    """Looks up in ZooKeeper which server runs a destination: before the first call, and whenever a server turned out
    not to run it. While ZooKeeper does not answer, the last known server is asked."""

    is_single = False

    def __init__(self, address: ServerAddress, destination: str) -> None:
        from penstock.coordinate import shared_lookup  # noqa: PLC0415 - not needed by who names a server

        self._address, self._destination = address, destination
        self._lookup = shared_lookup(address.zookeeper)
        self._lock = threading.Lock()  # of these:
        self._current: tuple[RunningServer, ServerChannel] | None = None
        self._is_left = False

    def candidates(self, start_timeout_s: float) -> Sequence[ServerChannel]:  # noqa: ARG002 - it starts none
        """Return the server that ZooKeeper names as the running one; while ZooKeeper does not answer, the last one that
        it named."""
        with self._lock:
            if self._current is not None and not self._is_left:
                return [self._current[1]]
        return [self._look_up()]

    def _look_up(self) -> ServerChannel:
        """Ask ZooKeeper for the running server, and return a channel to it."""
        try:
            running = self._lookup.find(self._destination)
        except CoordinationError:
            with self._lock:
                if self._current is None:
                    raise
                return self._current[1]
        url = self._address.check_published(running.flight_url)
        with self._lock:
            if self._current is None or self._current[1].url != url:
                name = f"{_host_and_port(url)} (named by ZooKeeper at {self._lookup.hosts})"
                self._current = running, ServerChannel(self._address, url, name=name, advice="")
            else:
                self._current = running, self._current[1]
            self._is_left = False
            return self._current[1]

    def demote(self, channel: ServerChannel) -> None:
        """Look the running server up again at the next call, if this one was the last that ZooKeeper named."""
        with self._lock:
            if self._current is not None and self._current[1] is channel:
                self._is_left = True

    def watch(self, channel: ServerChannel, cancelled: "Cancelled") -> None:
        """Cancel a call or a stream when another server takes over."""
        with self._lock:
            current = self._current
        if current is not None and current[1] is channel:
            self._lookup.follow(self._destination, current[0], cancelled)

    def close(self) -> None:
        """Close all connections and the ZooKeeper session."""
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            current[1].client.close()


def open_servers(address: ServerAddress | EmbeddedSource, destination: str) -> ServerList:
    """Return the servers of an address, without connecting to any; ConfigurationError when it cannot be read."""
    if isinstance(address, EmbeddedSource):
        return EmbeddedServers(address)
    return ZooKeeperServers(address, destination) if address.zookeeper else NamedServers(address)


def _host_and_port(url: str) -> str:
    """Return host and port of a URL."""
    return url.removeprefix("grpc://")
