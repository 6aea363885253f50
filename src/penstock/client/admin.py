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
    """`url` as `http://127.0.0.1:11112`."""

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 10) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError(f"{url!r} is no address of a server: write it as http://host:port")
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        # No proxy, and no way elsewhere: the token is for this server alone.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _StayHere())

    def status(self) -> dict[str, Any]:
        return self._json("/status")

    def readiness(self) -> dict[str, Any]:
        """Also when it is not ready."""
        return self._json("/readyz")

    def forget_client(self, destination: str, client_id: int) -> None:
        """Forget a client, its subscription and its cursor, on the server that runs the destination."""
        self._get(_client_path(destination, client_id), "DELETE")

    def seek_client(self, destination: str, client_id: int, position: Position) -> None:
        """Let a client resume at a position of the source's log, on the server that runs the destination."""
        where = urlencode({"position": f"{position.file}:{position.offset}", "epoch": position.epoch})
        self._get(f"{_client_path(destination, client_id)}?{where}", "PUT")

    def metrics(self) -> str:
        return self._get("/metrics").decode()

    def _json(self, path: str) -> dict[str, Any]:
        try:
            found = json.loads(self._get(path))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ProtocolError(f"{self.url} does not answer as a Penstock server does: is it another one?")
        return cast("dict[str, Any]", found)

    def _get(self, path: str, method: str = "GET") -> bytes:
        request = urllib.request.Request(self.url + path, headers=self._headers, method=method)  # noqa: S310 - http(s)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(path, error.code, error.read(_MOST_BYTES))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerUnavailableError(
                f"no Penstock server answers at {self.url} ({reason}): is `penstock serve` running there, with an"
                " admin port?"
            ) from None

    def _refused(self, path: str, code: int, body: bytes) -> bytes:
        if code == http.HTTPStatus.SERVICE_UNAVAILABLE and path == "/readyz":
            return body
        text = body[:200].decode("utf-8", "replace").strip()
        if code in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}:
            raise AuthenticationError(f"{self.url} refuses: {text}")
        if code == http.HTTPStatus.SERVICE_UNAVAILABLE:
            raise NotRunningError(f"{self.url}: {text}")
        raise ProtocolError(f"{self.url}{path} answers {code}: {text}")


def _client_path(destination: str, client_id: int) -> str:
    return f"/instances/{quote(destination, safe='')}/clients/{client_id}"


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str) -> None:
        """None: the answer counts as it is."""
