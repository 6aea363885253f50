"""Which clients of an instance are connected, and from where. One client may have several connections at a time."""

import itertools
import threading
from collections.abc import Callable


class Connections:
    """The open connections of an instance's clients. Any thread may call it. `on_change` is called when a client's
    first connection begins, and when its last one ends."""

    def __init__(self, on_change: Callable[[int, bool], None]) -> None:
        self._on_change = on_change
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # of the next, and of what `on_change` is told
        self._open: dict[int, dict[int, str]] = {}  # addresses by client and number of the connection

    def open(self, client_id: int, address: str) -> Callable[[], None]:
        """Add a connection of a client. The returned function ends it, and may be called more than once."""
        number = next(self._numbers)
        with self._lock:
            self._open.setdefault(client_id, {})[number] = address
            self._on_change(client_id, True)
        return lambda: self._end(client_id, number)

    def _end(self, client_id: int, number: int) -> None:
        """Remove one connection of a client."""
        with self._lock:
            addresses = self._open.get(client_id, {})
            if addresses.pop(number, None) is not None and not addresses:
                del self._open[client_id]
                self._on_change(client_id, False)

    def is_connected(self, client_id: int) -> bool:
        """Return whether a client has at least one connection."""
        with self._lock:
            return client_id in self._open

    def addresses(self) -> dict[int, list[str]]:
        """Return the addresses of all connected clients, by client id, in the order of connection."""
        with self._lock:
            return {client_id: list(numbered.values()) for client_id, numbered in self._open.items()}
