"""The port: a thread for each connection."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable

from penstock.canal import packet
from penstock.canal.packet import Wire
from penstock.errors import ConfigurationError
from penstock.instance import Instance
from penstock.server.canal.clients import CanalClients
from penstock.server.canal.session import GENERAL, Access, Session

log = logging.getLogger(__name__)

_BACKLOG = 128
_JOIN_S = 5.0


class CanalListener:
    """Binds when constructed."""

    def __init__(
        self,
        host: str,
        port: int,
        instance_of: Callable[[str], Instance],
        *,
        access: Access | None = None,
        frame_limit: int = 16 << 20,
        idle_s: float = 3600,
        handshake_s: float = 10,
        connections: int = 1000,
    ) -> None:
        self.clients = CanalClients(instance_of)
        self._access, self._limit, self._idle_s = access or Access(), frame_limit, idle_s
        self._handshake_s, self._most = handshake_s, connections
        try:
            self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror}): if the port is in use, choose another one"
            ) from None
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._is_stopping = False
        self._thread = threading.Thread(target=self._accept, name="penstock-canal", daemon=True)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        with self._lock:
            return len(self._open)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping = True
        _close(self._socket)
        with self._lock:
            left = dict(self._open)
        for connection in left:
            _close(connection)
        for thread in (*left.values(), *([self._thread] if self._thread.is_alive() else [])):
            thread.join(_JOIN_S)

    def _accept(self) -> None:
        while not self._is_stopping:
            try:
                connection, peer = self._socket.accept()
            except OSError as error:
                if not self._is_stopping:
                    log.warning("connection not taken reason=%s", error)
                    threading.Event().wait(0.1)  # out of files, say
                continue
            if self.open_connections >= self._most:
                log.warning("connection refused peer=%s reason=there are %d", peer[0], self._most)
                with contextlib.suppress(OSError):
                    connection.settimeout(0)
                    connection.send(packet.ack(GENERAL, f"the server has {self._most} connections: try again later"))
                _close(connection)
                continue
            name = f"penstock-canal-{peer[0]}:{peer[1]}"
            thread = threading.Thread(target=self._serve, args=(connection, name), name=name, daemon=True)
            with self._lock:
                self._open[connection] = thread
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more of them; the port stays open
                log.warning("connection refused peer=%s reason=%s", peer[0], error)
                _close(connection)
                with self._lock:
                    self._open.pop(connection, None)

    def _serve(self, connection: socket.socket, name: str) -> None:
        try:
            wire = Wire(connection, self._limit, self._handshake_s)
            Session(wire, self.clients, self._access, self._idle_s).run()
        except OSError as error:
            log.debug("connection ended %s reason=%s", name, error)
        except Exception:
            log.exception("connection failed %s", name)
        finally:
            _close(connection)
            with self._lock:
                self._open.pop(connection, None)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
