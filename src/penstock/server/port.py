"""A TCP port of the server: one thread for each connection, and a limit of connections."""

import contextlib
import logging
import socket
import threading
import time
from abc import ABC, abstractmethod

from penstock.errors import ConfigurationError

log = logging.getLogger(__name__)

_BACKLOG = 128
_STOP_S = 5.0


class Port(ABC):
    """Accepts TCP connections, and serves each in a thread of its own. It binds when constructed. `name` appears in
    thread names and in the log."""

    def __init__(self, name: str, host: str, port: int, *, connections: int) -> None:
        self.name, self._max_connections = name, connections
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror}): if the port is in use, choose another one with"
                f" `{name.replace('-', '_')}: {{port: …}}`"
            ) from None
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._is_stopping = False
        self._thread = threading.Thread(target=self._accept_connections, name=f"penstock-{name}", daemon=True)

    @abstractmethod
    def _handle_connection(self, connection: socket.socket) -> None:
        """Serve a connection until it ends, in its own thread. An OSError means that the peer is gone."""

    @abstractmethod
    def _limit_reply(self) -> bytes:
        """Return what is sent to a connection beyond the limit before it is closed."""

    @property
    def address(self) -> str:
        """Return host:port of the listening socket."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        """Return how many connections are open now."""
        with self._lock:
            return len(self._open)

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Close all connections, and wait at most `timeout_s` until their threads have ended."""
        self._is_stopping, until = True, time.monotonic() + timeout_s
        _close(self._socket)
        with self._lock:
            left = dict(self._open)
        for connection in left:
            _close(connection)
        for thread in (*left.values(), *([self._thread] if self._thread.is_alive() else [])):
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def _accept_connections(self) -> None:
        """Accept connections until the port is stopped, and start a thread for each."""
        while not self._is_stopping:
            try:
                connection, peer = self._socket.accept()
            except OSError as error:
                if not self._is_stopping:
                    log.warning("connection of a client not accepted port=%s reason=%s", self.name, error)
                    threading.Event().wait(0.1)  # out of files, say
                continue
            if self.open_connections >= self._max_connections:
                log.warning(
                    "client rejected port=%s peer=%s reason=limit of %d connections reached",
                    self.name,
                    peer[0],
                    self._max_connections,
                )
                with contextlib.suppress(OSError):
                    connection.settimeout(0)
                    connection.send(self._limit_reply())
                _close(connection)
                continue
            name = f"penstock-{self.name}-{peer[0]}:{peer[1]}"
            thread = threading.Thread(target=self._run_connection, args=(connection, name), name=name, daemon=True)
            with self._lock:
                self._open[connection] = thread
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more of them; the port stays open
                log.warning("client rejected port=%s peer=%s reason=%s", self.name, peer[0], error)
                _close(connection)
                with self._lock:
                    self._open.pop(connection, None)

    def _run_connection(self, connection: socket.socket, name: str) -> None:
        """Serve one connection, log its error, and close it."""
        try:
            self._handle_connection(connection)
        except OSError as error:
            log.debug("connection ended connection=%s reason=%s", name, error)
        except Exception:
            log.exception("client connection closed by an unexpected error connection=%s", name)
        finally:
            _close(connection)
            with self._lock:
                self._open.pop(connection, None)


def peer_address(connection: socket.socket) -> str:
    """Return the address of a connection's peer, as host:port."""
    host, port = connection.getpeername()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
