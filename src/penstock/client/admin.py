"""A server's admin port, asked over HTTP."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, cast
from urllib.parse import urlsplit

from penstock.errors import AuthenticationError, ConfigurationError, ProtocolError, SourceConnectionError

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

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310 - http or https
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(path, error.code, error.read(_MOST_BYTES))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise SourceConnectionError(
                f"no Penstock server answers at {self.url} ({reason}): is `penstock serve` running there, with an"
                " admin port?"
            ) from None

    def _refused(self, path: str, code: int, body: bytes) -> bytes:
        if code == http.HTTPStatus.SERVICE_UNAVAILABLE and path == "/readyz":
            return body
        text = body[:200].decode("utf-8", "replace").strip()
        if code in {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}:
            raise AuthenticationError(f"{self.url} refuses: {text}")
        raise ProtocolError(f"{self.url}{path} answers {code}: {text}")


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str) -> None:
        """None: the answer counts as it is."""
