"""A way to a server that stalls in the middle of a long answer, for as long as a test likes; or leads to another
server from then on."""

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Self

_CHUNK = 1 << 16
_LONGEST_STALL_S = 300.0


class StallingProxy:
    """Passes connections on to a port of this machine.

    >>> with StallingProxy(server.port, stall_after_bytes=1 << 20) as proxy:
    ...     read_much_through(proxy.port)
    ...     assert proxy.has_stalled.wait(60)
    ...     proxy.resume()

    An answer stalls when a connection has carried more than `stall_after_bytes` of answers; after `resume` none does.
    """

    def __init__(self, port: int, stall_after_bytes: int = 1 << 62) -> None:
        self._target, self._limit = port, stall_after_bytes
        self.has_stalled, self._is_resumed = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open, self._threads = ExitStack(), list[threading.Thread]()

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._open.close()
        for thread in self._threads:
            thread.join(10)

    def resume(self) -> None:
        """Let everything pass from now on."""
        self._is_resumed.set()

    def switch_to(self, port: int) -> None:
        """Pass connections that are opened from now on to another port; those that are open stay."""
        self._target = port

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="stalling-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for end in (client, server):
                    self._open.callback(_close, end)
                self._start(self._pass_on, client, server, False)
                self._start(self._pass_on, server, client, True)

    def _pass_on(self, origin: socket.socket, target: socket.socket, may_stall: bool) -> None:
        """Pass bytes on in one direction until either side has ended."""
        passed = 0
        with suppress(OSError):
            while data := origin.recv(_CHUNK):
                passed += len(data)
                if may_stall and passed > self._limit and not self._is_resumed.is_set():
                    self.has_stalled.set()
                    self._is_resumed.wait(_LONGEST_STALL_S)
                target.sendall(data)
        _close(origin)
        _close(target)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
