"""A server's admin port, asked over HTTP."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from penstock.errors import (
    AuthenticationError,
    ConfigurationError,
    NotRunningError,
    ProtocolError,
    ServerUnavailableError,
)
from penstock.model import Position

_MOST_BYTES = 64 << 20


class AdminClient:
    """Calls a server's admin port over HTTP.

    AdminClient("http://127.0.0.1:11112").status()
    """

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 10) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError(f"{url!r} is no address of a server: write it as http://host:port")
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        # No proxy, and no way elsewhere: the token is for this server alone.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _RedirectBlocker())

    def status(self) -> dict[str, Any]:
        """Return the status of the server and its instances."""
        return self._get_json("/status")

    def readiness(self) -> dict[str, Any]:
        """Return whether the server is ready, and why not."""
        return self._get_json("/readyz")

    def forget_client(self, destination: str, client_id: int) -> None:
        """Forget a client, its subscription and its cursor, on the server that runs the destination."""
        self._request(_client_path(destination, client_id), "DELETE")

    def seek_client(self, destination: str, client_id: int, position: Position) -> None:
        """Let a client resume at a position of the source's log, on the server that runs the destination."""
        where = urlencode({"position": f"{position.file}:{position.offset}", "epoch": position.epoch})
        self._request(f"{_client_path(destination, client_id)}?{where}", "PUT")

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self._request("/metrics").decode()

    def _get_json(self, path: str) -> dict[str, Any]:
        """Request a path, and return the JSON object that it answers with."""
        try:
            answer = json.loads(self._request(path))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ProtocolError(f"{self.url} does not answer as a Penstock server does: is it another one?")
        return cast("dict[str, Any]", answer)

    def _request(self, path: str, method: str = "GET") -> bytes:
        """Request a path, and return the body of the answer."""
        request = urllib.request.Request(self.url + path, headers=self._headers, method=method)  # noqa: S310 - http(s)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return self._check_refusal(path, error.code, error.read(_MOST_BYTES))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerUnavailableError(
                f"no Penstock server answers at {self.url} ({reason}): is `penstock serve` running there, with an"
                " admin port?"
            ) from None

    def _check_refusal(self, path: str, code: int, body: bytes) -> bytes:
        """Return the body of a refused request if it is an answer, else raise the error that it means."""
        if code == http.HTTPStatus.SERVICE_UNAVAILABLE and path == "/readyz":
            return body
        text = body[:200].decode("utf-8", "replace").strip()
        if code in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}:
            raise AuthenticationError(f"{self.url} refuses: {text}")
        if code == http.HTTPStatus.SERVICE_UNAVAILABLE:
            raise NotRunningError(f"{self.url}: {text}")
        raise ProtocolError(f"{self.url}{path} answers {code}: {text}")


def _client_path(destination: str, client_id: int) -> str:
    """Return the path of a client of a destination."""
    return f"/instances/{quote(destination, safe='')}/clients/{client_id}"


class _RedirectBlocker(urllib.request.HTTPRedirectHandler):
    """Returns redirects as they are, so that no token goes to another address."""

    def redirect_request(self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str) -> None:
        """Follow no redirect."""
