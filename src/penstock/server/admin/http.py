"""A minimal HTTP server side for short answers: one request per connection, and no body.

A request has a deadline as a whole, so that a peer that sends a byte now and then holds nothing for long.
"""

import hmac
import http.client
import io
import socket
import time
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from urllib.parse import parse_qs

LIMIT_BYTES = 8 << 10  # of a request
_PIECE = 4 << 10
_VERSIONS = {b"HTTP/1.0", b"HTTP/1.1"}


class HttpRefusedError(Exception):
    """A request is refused with a status code and one line of text."""

    def __init__(self, status: HTTPStatus, text: str, allow: str = "GET, HEAD") -> None:
        """`allow` lists the methods that the path has, for a request with another one."""
        super().__init__(status, text, allow)
        self.status, self.text, self.allow = status, text, allow


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request without its body."""

    method: str
    path: str
    headers: Message
    query: str = ""

    def query_parameter(self, name: str) -> str:
        """Return a parameter of the query string; empty when it is not there."""
        return parse_qs(self.query).get(name, [""])[0]

    def has_bearer_token(self, token: str) -> bool:
        """Return whether the Authorization header carries this token. The time taken does not depend on where they
        differ."""
        kind, _, given = self.headers.get("Authorization", "").strip().partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), token.encode())

    @property
    def host(self) -> str:
        """Return the host that the request was sent to, without the port."""
        named = self.headers.get("Host", "").strip().lower()
        if named.startswith("["):
            return named[1:].partition("]")[0]
        return named.rpartition(":")[0] if ":" in named else named


def read_request(connection: socket.socket, timeout_s: float) -> HttpRequest | None:
    """Read one request, within `timeout_s`. Returns None when the peer closes the connection first; raises
    HttpRefusedError."""
    deadline, raw = time.monotonic() + timeout_s, bytearray()
    while b"\r\n\r\n" not in raw and b"\n\n" not in raw:
        if len(raw) > LIMIT_BYTES:
            raise HttpRefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request has {LIMIT_BYTES} bytes at most"
            )
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            piece = connection.recv(_PIECE)
        except TimeoutError:
            raise HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, f"no request came in {timeout_s:g} s") from None
        if not piece:
            return None
        raw += piece
    return _parse_request(bytes(raw))


def _parse_request(raw: bytes) -> HttpRequest:
    """Parse the head of a request. Raises HttpRefusedError."""
    line, _, rest = raw.partition(b"\n")
    words = line.split()
    if len(words) != 3 or words[2] not in _VERSIONS:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
    try:
        headers = http.client.parse_headers(io.BytesIO(rest))
        method, target = words[0].decode("ascii"), words[1].decode("ascii")
    except (http.client.HTTPException, ValueError):
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "the request's head cannot be read") from None
    path, _, query = target.partition("?")
    return HttpRequest(method, path, headers, query)


def make_response(status: HTTPStatus, body: str, kind: str = "text/plain; charset=utf-8", **headers: str) -> bytes:
    """Return the bytes of an HTTP response."""
    raw = body.encode()
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(raw)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + raw
