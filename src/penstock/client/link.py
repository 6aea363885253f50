"""The way to the server that runs a destination: calls are repeated, on another server where one has taken over."""

import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow.flight as fl

from penstock.backoff import Backoff, RetryTimer
from penstock.client.address import ServerAddress
from penstock.client.cancellable_call import CancellableCall
from penstock.client.channel import LONG_CALL_TIMEOUT_S, ServerChannel, ServerStream
from penstock.client.embedded import EmbeddedSource
from penstock.client.servers import open_servers
from penstock.errors import (
    CoordinationError,
    FencedError,
    NotRunningError,
    PenstockError,
    ServerUnavailableError,
    StartingError,
    UnknownDestinationError,
)

__all__ = ["ServerAddress", "ServerLink", "ServerStream"]

T = TypeVar("T")

log = logging.getLogger(__name__)

# They may look for a position in the log, read much of it, or wait for the source; a frozen server is noticed then.
_LONG_ACTIONS = {"resolve", "subscribe", "latest", "chunks", "inside"}
_BACKOFF = Backoff(0.1, 2.0)
SILENCE_S = 30.0
_LEAST_SILENCE_S = 5.0  # of a server that sends heartbeats every other second
# Errors of a server after which another one is asked, where there is another one.
_ELSEWHERE = (ServerUnavailableError, NotRunningError, CoordinationError, FencedError, UnknownDestinationError)


@dataclass(frozen=True, slots=True)
class _ServerCall(Generic[T]):
    """A call that can be made on any server of a list."""

    make: Callable[[ServerChannel], T]
    discard: Callable[[T], None] | None = None  # of what it returns after it was given up
    longest_s: float = math.inf  # also on a server that answers other calls


class ServerLink:
    """A connection to the server that runs a destination, safe to keep for long and to share by threads.

        link = ServerLink(ServerAddress("cdc1:11115,cdc2:11115"), retry_timeout_s=60, destination="shop")
        link.call_action("status", {"destination": "shop"})

    It is opened with the first call. Of several servers each is asked in turn, and when the destination has moved, the
    next call goes to its new server; a stream that was open breaks, and is opened again by whoever reads it.

    A call that fails with a transient error is repeated for `retry_timeout_s`. A server that does not answer yet, and a
    destination that it is still starting, are waited for: `start_timeout_s`, if that is longer.
    """

    def __init__(
        self,
        address: ServerAddress | EmbeddedSource,
        retry_timeout_s: float = 0,
        *,
        start_timeout_s: float = 0,
        destination: str = "default",
    ) -> None:
        self._address, self.retry_timeout_s, self.destination = address, retry_timeout_s, destination
        self._start_timeout_s = max(retry_timeout_s, start_timeout_s)
        self._parent = os.getppid()
        self._servers = open_servers(address, destination)

    @property
    def _silence_s(self) -> float:
        """Return after how long a range on which nothing comes is given up: early enough to read it elsewhere."""
        return min(SILENCE_S, max(_LEAST_SILENCE_S, self.retry_timeout_s / 2)) if self.retry_timeout_s else SILENCE_S

    def _answer_limit_s(self, timer: RetryTimer) -> float:
        """Return after how long a server that answers nothing is given up: early enough to ask another one, and soon
        after the time for retries is over."""
        timeout_s = self._start_timeout_s
        return max(_LEAST_SILENCE_S, min(SILENCE_S, timeout_s / 2, timeout_s - timer.elapsed_s))

    def close(self) -> None:
        """Close the connections to all servers."""
        self._servers.close()

    def call_action(self, name: str, request: Mapping[str, Any], *, waits_for_start: bool = True) -> list[bytes]:
        """Call a Flight action on the server that runs the destination, and return the bodies of its results."""
        action = fl.Action(name, json.dumps(request).encode())

        def call(channel: ServerChannel) -> list[fl.Result]:
            options = channel.long_options if name in _LONG_ACTIONS else channel.short_options
            return list(channel.client.do_action(action, options))

        answers = self._call_with_retry(_ServerCall(call), waits_for_start=waits_for_start)
        return [answer.body.to_pybytes() for answer in answers]

    def get_info(self, request: Mapping[str, Any]) -> fl.FlightInfo:
        """Return what Flight says of a range of the log: its schema, and the parts in which it can be read."""
        descriptor = fl.FlightDescriptor.for_command(json.dumps(request).encode())
        call = _ServerCall(lambda channel: channel.client.get_flight_info(descriptor, channel.long_options))
        return self._call_with_retry(call)

    def list_flights(self, destination: str = "") -> list[fl.FlightInfo]:
        """Return what Flight says of each stream that can be read, of one destination or of all."""
        criteria = destination.encode()
        call = _ServerCall(lambda channel: list(channel.client.list_flights(criteria, channel.short_options)))
        return self._call_with_retry(call)

    def open_stream(self, ticket: bytes, *, waits_for_start: bool = True, has_end: bool = True) -> ServerStream:
        """Open a stream on a server that accepts it; a stream that breaks later is not opened again by this call.

        Of a range between two positions (`has_end`) something comes all the time; others may look for their start, or
        through much of the log, before something comes.
        """
        limit_s = self._silence_s if has_end else LONG_CALL_TIMEOUT_S

        def open_on(channel: ServerChannel) -> ServerStream:
            """Open the stream on one server."""
            reader: Any = channel.client.do_get(fl.Ticket(ticket), channel.options)
            stream = ServerStream(channel, reader, lambda error: self._leave_server(channel, error), limit_s)
            self._servers.watch(channel, stream)
            return stream

        call = _ServerCall(open_on, ServerStream.cancel, limit_s)
        return self._call_with_retry(call, waits_for_start=waits_for_start)

    def _call_with_retry(self, call: "_ServerCall[T]", *, waits_for_start: bool = True) -> T:
        """Make a call, and repeat it until it succeeds or the time for retries is over."""
        timer = RetryTimer(_BACKOFF)
        while True:
            try:
                return self._ask_servers(call, timer)
            except PenstockError as error:
                # Whoever started this process may be gone: nobody waits for the answer any more.
                is_orphan = os.getppid() != self._parent
                is_starting = waits_for_start and isinstance(error, (StartingError, ServerUnavailableError))
                timeout_s = self._start_timeout_s if is_starting else self.retry_timeout_s
                delay_s = timer.next_delay_s(timeout_s)
                if not error.transient or is_orphan or delay_s is None:
                    raise
                log.warning(
                    "call to Penstock server failed, retry scheduled destination=%s server=%s delay_s=%.1f reason=%s",
                    *(self.destination, self._address.server, delay_s, error),
                )
                time.sleep(delay_s)

    def _ask_servers(self, call: "_ServerCall[T]", timer: RetryTimer) -> T:
        """Make a call once on each server, until one of them accepts it."""
        refusals: list[PenstockError] = []
        reasons: list[str] = []
        try:
            channels = self._servers.candidates(self._start_timeout_s - timer.elapsed_s)
        except (NotRunningError, CoordinationError) as error:
            raise self._no_server_error([str(error)]) from error
        for channel in channels:
            try:
                return self._ask_server(channel, call, timer)
            except _ELSEWHERE as error:
                self._leave_server(channel, error)
                if self._servers.is_single:
                    raise
                refusals.append(error)
                text = str(error)
                reasons.append(text if channel.name in text else f"{channel.name}: {text}")
        if all(isinstance(error, UnknownDestinationError) for error in refusals):
            raise UnknownDestinationError("; ".join(reasons))
        raise self._no_server_error(reasons) from refusals[-1]

    def _ask_server(self, channel: ServerChannel, call: "_ServerCall[T]", timer: RetryTimer) -> T:
        """Make a call once, and wait for it for as long as its server runs the destination, and answers anything at
        all."""
        half_s, last_s = self._answer_limit_s(timer) / 2, time.monotonic() + call.longest_s
        followed = CancellableCall(channel, partial(call.make, channel), call.discard)
        self._servers.watch(channel, followed)
        return followed.run(half_s, lambda: time.monotonic() < last_s and channel.is_alive(half_s))

    def _no_server_error(self, reasons: list[str]) -> ServerUnavailableError:
        """Return the error for a destination that no server runs."""
        return ServerUnavailableError(f"no server runs '{self.destination}': {'; '.join(reasons)}")

    def _leave_server(self, channel: ServerChannel, error: PenstockError) -> None:
        """Do not ask this server first any more."""
        if isinstance(error, _ELSEWHERE):
            self._servers.demote(channel)
