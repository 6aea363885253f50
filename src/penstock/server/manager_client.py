"""The HTTP calls that a server makes to canal-admin, or to a server with the same HTTP interface.

    GET /api/v1/config/server_polling?ip=&port=&md5=&register=&cluster=&name=   canal.properties
    GET /api/v1/config/instances_polling?md5=&ip=&port=                         destinations, with commas between them
    GET /api/v1/config/instance_polling/DESTINATION?md5=                        an instance.properties

Each answers {"code": 20000, "message": …, "data": {"content": …, "status": …}}, and without data when the content has
the MD5 that was asked with. The headers `user` and `passwd` carry the login, the password as canal keeps it.
"""

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote, urlencode

from penstock.config import ManagerSettings
from penstock.errors import ConfigurationError

_OK = 20000
_TIMEOUT_S = 5.0
_MAX_BYTES = 4 << 20
_MAX_MESSAGE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class PolledSettings:
    """One configuration file as canal-admin sends it. The status "0" means that the destination should be stopped."""

    content: str
    status: str | None = None

    @property
    def md5(self) -> str:
        """Return the MD5 of the content, which canal-admin compares with that of its own content."""
        return hashlib.md5(self.content.encode(), usedforsecurity=False).hexdigest()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses HTTP redirects: the login must not be sent to another server than canal-admin."""

    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002 - as in the base class
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: Message,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


class ManagerClient:
    """Polls canal-admin. `address` is the address by which canal-admin knows this server: the host, and the port of
    canal's admin protocol."""

    def __init__(self, settings: ManagerSettings, address: tuple[str, int]) -> None:
        self._settings = settings
        self._own_address = {"ip": address[0], "port": str(address[1])}
        self._opener = urllib.request.build_opener(_NoRedirect())

    def poll_server(self, md5: str) -> PolledSettings | None:
        """Return the server's `canal.properties`; None when it has not changed since the content with this MD5."""
        settings = self._settings
        options = {"register": str(int(settings.announce)), "cluster": settings.cluster, "name": settings.name}
        return _drop_empty(self._request("server_polling", {**self._own_address, "md5": md5, **options}))

    def poll_destinations(self, md5: str) -> PolledSettings | None:
        """Return the list of destinations, which may be empty; None when it has not changed."""
        return self._request("instances_polling", {"md5": md5, **self._own_address})

    def poll_instance(self, destination: str, md5: str) -> PolledSettings | None:
        """Return the `instance.properties` of a destination; None when it has not changed."""
        return _drop_empty(self._request(f"instance_polling/{quote(destination, safe='')}", {"md5": md5}))

    def _request(self, path: str, query: Mapping[str, str]) -> PolledSettings | None:
        """Send one request and return the content of the answer; None when it has not changed. Raises
        ConfigurationError."""
        url = f"{self._settings.url}/api/v1/config/{path}?{urlencode(query)}"
        request = urllib.request.Request(url, headers=self._login_headers())  # noqa: S310 - the settings allow http only
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_MAX_BYTES + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise self._make_error(path, f"answers {error.code}") from None
        except (OSError, ValueError, HTTPException) as error:
            raise self._make_error(path, f"cannot be asked: {getattr(error, 'reason', error)}") from None
        if len(body) > _MAX_BYTES:
            raise self._make_error(path, f"answers with more than {_MAX_BYTES} bytes")
        return self._parse_reply(path, body)

    def _login_headers(self) -> dict[str, str]:
        """Return the headers that carry the login."""
        stored = self._settings.stored_hash
        return {"user": self._settings.user, "passwd": "" if stored is None else stored.hex()}

    def _parse_reply(self, path: str, body: bytes) -> PolledSettings | None:
        """Return the content of an answer; None when it has not changed. Raises ConfigurationError."""
        try:
            answer: Any = json.loads(body)
            code, data = answer["code"], answer.get("data")
            content, status = (data.get("content"), data.get("status")) if data else (None, None)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._make_error(path, "does not answer as canal-admin does") from None
        if code != _OK:
            message = " ".join(str(answer.get("message")).split())
            raise self._make_error(path, f"refuses, with code {code}: {message[:_MAX_MESSAGE_LENGTH]}")
        return None if content is None else PolledSettings(str(content), None if status is None else str(status))

    def _make_error(self, path: str, text: str) -> ConfigurationError:
        """Return the error for an answer that cannot be used."""
        return ConfigurationError(f"canal-admin at {self._settings.url} {text} ({path})")


def _drop_empty(polled: PolledSettings | None) -> PolledSettings | None:
    """Return None for an answer without content: canal-admin sends an empty file for settings that have not changed."""
    return polled if polled is not None and polled.content else None
