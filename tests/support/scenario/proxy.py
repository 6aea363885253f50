"""A network that one can spoil: a TCP proxy that cuts, stalls or delays what a server sends."""

import contextlib
import random
import socket
import threading
from collections.abc import Callable
from typing import Self

_PIECE = 1 << 16


class Network:
    """`trouble` is asked once per connection: after how many bytes from the server, from when it is set, something
    happens."""

    def __init__(self, port: int, seed: int) -> None:
        self._target = port
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.trouble: Callable[[random.Random], int] | None = None
        self.is_silent = False  # the connection stays open as if nothing more came, instead of being cut
        self.delay_s = 0.0
        self.happened = 0
        self._closing = threading.Event()
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for connection in (self._listener, *self._sockets):
            _close(connection)

    def move_to(self, port: int) -> None:
        """Another server is behind it now, and all connections end."""
        self._target = port
        for connection in self._sockets:
            _close(connection)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    _close(client)
                    continue
                self._sockets += [client, server]
                for target, arguments in ((self._to_server, (client, server)), (self._to_client, (server, client))):
                    threading.Thread(target=target, args=arguments, name="proxy-pump", daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_PIECE):
                server.sendall(data)
        _close(server)

    def _to_client(self, server: socket.socket, client: socket.socket) -> None:
        limit: int | None = None
        with contextlib.suppress(OSError):
            while data := server.recv(_PIECE):
                if (trouble := self.trouble) is not None:
                    limit = trouble(self._random) if limit is None else limit
                    data = data[:limit]
                    limit -= len(data)
                if self.delay_s:
                    self._closing.wait(self._random.random() * self.delay_s)
                client.sendall(data)
                if limit == 0:
                    self.happened += 1
                    if self.is_silent:
                        self._closing.wait()
                    break
        _close(client)
        _close(server)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
