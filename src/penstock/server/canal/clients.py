"""The clients of canal's port, by destination and client id, as packets name them."""

import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from penstock.errors import MetaError, NotRunningError, PenstockError, StartingError
from penstock.server.canal.view import CanalClientView, RenderedBatch, Served

_MIN_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.2


class CanalClients:
    """Calls of canal clients, each on the running instance of its destination. `get_instance` returns that instance, or
    raises why there is none. After a restart it is another instance: its clients are still subscribed, and their
    outstanding batches are redelivered."""

    def __init__(self, get_instance: Callable[[str], Served], start_wait_s: float = 0) -> None:
        self._get_instance, self._start_wait_s = get_instance, start_wait_s
        self._lock = threading.Lock()
        self._views: WeakKeyDictionary[Served, dict[int, CanalClientView]] = WeakKeyDictionary()

    def await_start(self, destination: str, is_gone: Callable[[], bool]) -> None:
        """Wait while a destination is starting, for at most `start_wait_s`: canal's clients give up at the first error.
        It also returns when the client is gone or the time is over; the call that follows raises the reason."""
        until, pause_s = time.monotonic() + self._start_wait_s, _MIN_PAUSE_S
        while self._is_starting(destination) and time.monotonic() < until and not is_gone():
            time.sleep(min(pause_s, max(0.0, until - time.monotonic())))
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def _is_starting(self, destination: str) -> bool:
        """Return whether a destination is configured and still starting."""
        try:
            self._get_instance(destination)
        except StartingError:
            return True
        except PenstockError:
            return False
        return False

    def subscribe(self, destination: str, client_id: int, text: str) -> None:
        """Subscribe a client to a destination, or replace its filter."""
        instance = self._get_instance(destination)
        with self._lock:
            view = self._views.setdefault(instance, {}).get(client_id)
        if view is not None:
            view.subscribe(text)
            return
        view = CanalClientView(instance, client_id, text)
        with self._lock:
            self._views.setdefault(instance, {}).setdefault(client_id, view)

    def open_connection(self, address: str) -> "ConnectionClients":
        """Return the tracker of the clients that use a new connection."""
        return ConnectionClients(self._get_instance, address)

    def unsubscribe(self, destination: str, client_id: int) -> None:
        """End a client's subscription."""
        instance = self._get_instance(destination)
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
        """Return the next batch of a client, rendered as canal's entries."""
        view = self._require_view(destination, client_id)
        answer = view.get(fetch_size, timeout_s, at_once=at_once, is_gone=is_gone)
        if self._get_instance(destination) is not view.instance:
            raise NotRunningError(f"destination '{destination}' was restarted: connect again")
        return answer

    def prefetch(self, destination: str, client_id: int, fetch_size: int) -> None:
        """Get and render the batch that the client will ask for next."""
        self._require_view(destination, client_id).prefetch(fetch_size)

    def ack(self, destination: str, client_id: int, batch_id: int) -> None:
        """Ack the first outstanding batch of a client."""
        self._require_view(destination, client_id).ack(batch_id)

    def rollback(self, destination: str, client_id: int, batch_id: int | None) -> None:
        """Roll back the outstanding batches of a client. Rolling back all of them is never an error: canal's clients do
        so before they subscribe, too."""
        try:
            view = self._require_view(destination, client_id)
        except PenstockError:
            if batch_id is None:
                return
            raise
        view.rollback(batch_id)

    def _require_view(self, destination: str, client_id: int) -> CanalClientView:
        """Return the view of a subscribed client; raise MetaError for one that has not subscribed."""
        instance = self._get_instance(destination)
        subscriptions = instance.clients.subscriptions()
        with self._lock:
            views = self._views.get(instance, {})
            if client_id not in subscriptions:
                views.pop(client_id, None)  # as when it was forgotten manually
            view = views.get(client_id)
        if view is not None:
            return view
        if client_id not in subscriptions:
            raise MetaError(f"clientId {client_id} has not subscribed to {destination}: subscribe first")
        self.subscribe(destination, client_id, subscriptions[client_id])
        return self._require_view(destination, client_id)


class ConnectionClients:
    """The clients that use one connection, usually one. They count as connected until `close`. Only the connection's
    thread uses it."""

    def __init__(self, get_instance: Callable[[str], Served], address: str) -> None:
        self._get_instance, self._address = get_instance, address
        self._open: dict[tuple[str, int], tuple[Served, Callable[[], None]]] = {}

    def mark_connected(self, destination: str, client_id: int) -> None:
        """Count a subscribed client as connected, also after its instance was restarted."""
        try:
            instance = self._get_instance(destination)
            known = self._open.get((destination, client_id))
            if known is not None and known[0] is instance:
                return
            self.mark_disconnected(destination, client_id)
            if client_id in instance.clients.subscriptions():
                self._open[destination, client_id] = instance, instance.clients.connect(client_id, self._address)
        except PenstockError:
            self.mark_disconnected(destination, client_id)  # there is no such instance now: the call itself says so

    def mark_disconnected(self, destination: str, client_id: int) -> None:
        """Count a client as no longer connected by this connection."""
        known = self._open.pop((destination, client_id), None)
        if known is not None:
            known[1]()

    def close(self) -> None:
        """Count all clients of this connection as disconnected."""
        for key in list(self._open):
            self.mark_disconnected(*key)
