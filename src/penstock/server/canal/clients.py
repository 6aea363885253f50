"""Clients by destination and id, as packets name them."""

import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from penstock.errors import MetaError, NotRunningError, PenstockError, StartingError
from penstock.server.canal.view import ClientView, RenderedBatch, Served

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.2


class CanalClients:
    """`instance_of` gives the running instance of a destination, or raises why there is none. One that was started anew
    is another instance: its clients have subscribed already, and what they had got comes again."""

    def __init__(self, instance_of: Callable[[str], Served], start_wait_s: float = 0) -> None:
        self._instance_of, self._start_wait_s = instance_of, start_wait_s
        self._lock = threading.Lock()
        self._views: WeakKeyDictionary[Served, dict[int, ClientView]] = WeakKeyDictionary()

    def await_start(self, destination: str, is_gone: Callable[[], bool]) -> None:
        """Hold a client while its destination is starting, for `start_wait_s` at most: those of canal give up at the
        first error. Returns also when the client is gone, or the wait is over: the call itself says how it is."""
        until, pause_s = time.monotonic() + self._start_wait_s, _FIRST_PAUSE_S
        while self._is_starting(destination) and time.monotonic() < until and not is_gone():
            time.sleep(min(pause_s, max(0.0, until - time.monotonic())))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _is_starting(self, destination: str) -> bool:
        try:
            self._instance_of(destination)
        except StartingError:
            return True
        except PenstockError:
            return False
        return False

    def subscribe(self, destination: str, client_id: int, text: str) -> None:
        instance = self._instance_of(destination)
        with self._lock:
            view = self._views.setdefault(instance, {}).get(client_id)
        if view is not None:
            view.subscribe(text)
            return
        made = ClientView(instance, client_id, text)
        with self._lock:
            self._views.setdefault(instance, {}).setdefault(client_id, made)

    def connected(self, address: str) -> "ConnectedClients":
        """The clients of one connection, which has just begun."""
        return ConnectedClients(self._instance_of, address)

    def unsubscribe(self, destination: str, client_id: int) -> None:
        instance = self._instance_of(destination)
        instance.clients.unsubscribe(client_id)
        with self._lock:
            self._views.get(instance, {}).pop(client_id, None)

    def get(
        self,
        destination: str,
        client_id: int,
        fetch_size: int,
        timeout_s: float | None,
        *,
        at_once: bool,
        is_gone: Callable[[], bool],
    ) -> RenderedBatch:
        view = self._view(destination, client_id)
        answer = view.get(fetch_size, timeout_s, at_once=at_once, is_gone=is_gone)
        if self._instance_of(destination) is not view.instance:
            raise NotRunningError(f"destination '{destination}' was started anew: connect again")
        return answer

    def prepare(self, destination: str, client_id: int, fetch_size: int) -> None:
        """What the client will ask for next."""
        self._view(destination, client_id).prepare(fetch_size)

    def ack(self, destination: str, client_id: int, batch_id: int) -> None:
        self._view(destination, client_id).ack(batch_id)

    def rollback(self, destination: str, client_id: int, batch_id: int | None) -> None:
        """All of them: of a client that has none, that is done. Clients say so before they subscribe, too."""
        try:
            view = self._view(destination, client_id)
        except PenstockError:
            if batch_id is None:
                return
            raise
        view.rollback(batch_id)

    def _view(self, destination: str, client_id: int) -> ClientView:
        instance = self._instance_of(destination)
        subscriptions = instance.clients.subscriptions()
        with self._lock:
            views = self._views.get(instance, {})
            if client_id not in subscriptions:
                views.pop(client_id, None)  # as when it was forgotten by hand
            view = views.get(client_id)
        if view is not None:
            return view
        if client_id not in subscriptions:
            raise MetaError(f"clientId {client_id} has not subscribed to {destination}: subscribe first")
        self.subscribe(destination, client_id, subscriptions[client_id])
        return self._view(destination, client_id)


class ConnectedClients:
    """Clients that one connection speaks for, usually one; used by its thread alone. They count as connected until
    `close`."""

    def __init__(self, instance_of: Callable[[str], Served], address: str) -> None:
        self._instance_of, self._address = instance_of, address
        self._open: dict[tuple[str, int], tuple[Served, Callable[[], None]]] = {}

    def note(self, destination: str, client_id: int) -> None:
        """Count a client that has subscribed as connected, also after its instance was restarted."""
        try:
            instance = self._instance_of(destination)
            known = self._open.get((destination, client_id))
            if known is not None and known[0] is instance:
                return
            self.forget(destination, client_id)
            if client_id in instance.clients.subscriptions():
                self._open[destination, client_id] = instance, instance.clients.connect(client_id, self._address)
        except PenstockError:
            self.forget(destination, client_id)  # there is no such instance now: the call itself says so

    def forget(self, destination: str, client_id: int) -> None:
        known = self._open.pop((destination, client_id), None)
        if known is not None:
            known[1]()

    def close(self) -> None:
        for key in list(self._open):
            self.forget(*key)
