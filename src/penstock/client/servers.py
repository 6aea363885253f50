"""The servers that a client may ask: one, those of a list, or the one that ZooKeeper names."""

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol, TypeVar

from penstock.client.address import Address
from penstock.client.channel import Channel, Stream
from penstock.client.embedded import EmbeddedServers, EmbeddedSource
from penstock.errors import CoordinationError, ServerUnavailableError

if TYPE_CHECKING:
    from penstock.coordinate import RunningServer
    from penstock.coordinate.running_lookup import Cancelled

T = TypeVar("T")


class Servers(Protocol):
    """Where to ask for one destination. Any thread may call it."""

    is_single: bool  # whether there is no other server to go to

    def candidates(self) -> Sequence[Channel]:
        """Return the servers to ask, the most likely one first; NotRunningError or CoordinationError when there is
        none to ask now."""
        ...

    def leave(self, channel: Channel) -> None:
        """Do not ask this one first any more: it does not run the destination, or does not answer."""
        ...

    def run(self, channel: Channel, call: Callable[[], T]) -> T:
        """Make a call once; ServerUnavailableError also when it hangs, and another server runs the destination."""
        ...

    def follow(self, channel: Channel, stream: Stream) -> None:
        """Cancel a stream when its server is known not to run the destination any more."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class NamedServers:
    """One server, or a list of servers of which one runs the destination."""

    def __init__(self, address: Address) -> None:
        urls = address.urls
        self.is_single = len(urls) == 1
        names = (
            [text.strip() for text in address.server.split(",")] if self.is_single else [_place(url) for url in urls]
        )
        advice = {} if self.is_single else {"advice": ""}
        self._channels = [Channel(address, url, name=name, **advice) for url, name in zip(urls, names, strict=True)]
        self._lock = threading.Lock()  # of this:
        self._first = 0  # the one to ask first

    def candidates(self) -> Sequence[Channel]:
        with self._lock:
            first = self._first
        return self._channels[first:] + self._channels[:first]

    def leave(self, channel: Channel) -> None:
        with self._lock:
            if self._channels[self._first] is channel:
                self._first = (self._first + 1) % len(self._channels)

    def run(self, channel: Channel, call: Callable[[], T]) -> T:
        return channel.call(call)

    def follow(self, channel: Channel, stream: Stream) -> None:
        """Nobody says where it runs: a server of a list ends its streams itself."""

    def close(self) -> None:
        for channel in self._channels:
            channel.client.close()


class LookedUpServers:
    """The server that runs a destination according to ZooKeeper. It is looked up when the one before is left, and while
    ZooKeeper does not answer the last one is asked."""

    is_single = False

    def __init__(self, address: Address, destination: str) -> None:
        from penstock.coordinate import shared_lookup  # noqa: PLC0415 - not needed by who names a server

        self._address, self._destination = address, destination
        self._lookup = shared_lookup(address.zookeeper)
        self._lock = threading.Lock()  # of these:
        self._current: tuple[RunningServer, Channel] | None = None
        self._is_left = False

    def candidates(self) -> Sequence[Channel]:
        with self._lock:
            if self._current is not None and not self._is_left:
                return [self._current[1]]
        return [self._find()]

    def _find(self) -> Channel:
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
                name = f"{_place(url)} (named by ZooKeeper at {self._lookup.hosts})"
                self._current = running, Channel(self._address, url, name=name, advice="")
            else:
                self._current = running, self._current[1]
            self._is_left = False
            return self._current[1]

    def leave(self, channel: Channel) -> None:
        with self._lock:
            if self._current is not None and self._current[1] is channel:
                self._is_left = True

    def run(self, channel: Channel, call: Callable[[], T]) -> T:
        followed = _FollowedCall(channel, call)
        self._follow(channel, followed)
        return followed.run()

    def follow(self, channel: Channel, stream: Stream) -> None:
        self._follow(channel, stream)

    def _follow(self, channel: Channel, cancelled: "Cancelled") -> None:
        with self._lock:
            current = self._current
        if current is not None and current[1] is channel:
            self._lookup.follow(self._destination, current[0], cancelled)

    def close(self) -> None:
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            current[1].client.close()


class _FollowedCall(Generic[T]):
    """A call that is made in a thread of its own, and given up when it is cancelled: Flight has no other way to leave a
    server that does not answer."""

    def __init__(self, channel: Channel, call: Callable[[], T]) -> None:
        self._channel, self._call = channel, call
        self._outcome: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()  # what to do, the first that comes

    def run(self) -> T:
        threading.Thread(target=self._make, name="penstock-followed-call", daemon=True).start()
        return self._outcome.get()()

    def cancel(self) -> None:
        self._outcome.put(self._give_up)

    def _make(self) -> None:
        try:
            answer = self._channel.call(self._call)
        except BaseException as error:  # noqa: BLE001 - raised where the call was made
            self._outcome.put(partial(_raise, error))
        else:
            self._outcome.put(lambda: answer)

    def _give_up(self) -> T:
        raise ServerUnavailableError(f"{self._channel.name} does not run the destination any more")


def _raise(error: BaseException) -> NoReturn:
    raise error


def open_servers(address: Address | EmbeddedSource, destination: str) -> Servers:
    """Return the servers of an address, without connecting to any; ConfigurationError when it cannot be read."""
    if isinstance(address, EmbeddedSource):
        return EmbeddedServers(address)
    return LookedUpServers(address, destination) if address.zookeeper else NamedServers(address)


def _place(url: str) -> str:
    return url.removeprefix("grpc://")
