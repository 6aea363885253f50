"""A way to a search server that answers in its place, for as long as a test likes."""

import http.client
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_LONGEST_S = 120.0


class RefusingProxy:
    """Passes HTTP requests on to a port of this machine, or refuses them.

    >>> with RefusingProxy(server.port) as proxy:
    ...     proxy.refuse(503)
    ...     assert poll(lambda: proxy.refused[503] > 3)
    ...     proxy.accept()
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.status: int | None = None  # with which requests are refused
        self.largest_bytes = 0  # bodies up to this size pass all the same
        self.refused: Counter[int] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.proxy = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, name="refusing-proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def refuse(self, status: int, largest_bytes: int = -1) -> None:
        """Answer requests with a status from now on; those with a body up to a size pass."""
        self.status, self.largest_bytes = status, largest_bytes

    def accept(self) -> None:
        """Let every request pass from now on."""
        self.status = None


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Any

    def _answer(self) -> None:
        proxy: RefusingProxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = proxy.status
        if status is not None and len(body) > proxy.largest_bytes:
            proxy.refused[status] += 1
            self._send(status, b'{"error": "refused by a test"}', "application/json")
            return
        connection = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=_LONGEST_S)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        except OSError:
            self.close_connection = True  # the server is away: so is the way to it
            return
        finally:
            connection.close()
        self._send(answer.status, content, answer.getheader("Content-Type") or "application/json", answer)

    def _send(self, status: int, content: bytes, kind: str, answer: http.client.HTTPResponse | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if answer is not None and (encoding := answer.getheader("Content-Encoding")):
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815 - names that the library asks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


_OWN = {"host", "connection", "content-length"}
