"""The calls of canal's admin that a server makes.

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
_LONGEST = 4 << 20
_SHORT = 200


@dataclass(frozen=True, slots=True)
class PolledSettings:
    """`status` is "0" for what is to stand still."""

    content: str
    status: str | None = None

    @property
    def md5(self) -> str:
        return hashlib.md5(self.content.encode(), usedforsecurity=False).hexdigest()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The login is for this manager, not for whom it points to."""

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
    """`address` is how the manager knows this server: host, and port of canal's admin protocol."""

    def __init__(self, settings: ManagerSettings, address: tuple[str, int]) -> None:
        self._settings = settings
        self._here = {"ip": address[0], "port": str(address[1])}
        self._opener = urllib.request.build_opener(_NoRedirect())

    def server(self, md5: str) -> PolledSettings | None:
        """None when nothing has changed."""
        settings = self._settings
        more = {"register": str(int(settings.announce)), "cluster": settings.cluster, "name": settings.name}
        return _filled(self._ask("server_polling", {**self._here, "md5": md5, **more}))

    def destinations(self, md5: str) -> PolledSettings | None:
        """Here nothing is an answer: nothing is to run."""
        return self._ask("instances_polling", {"md5": md5, **self._here})

    def instance(self, destination: str, md5: str) -> PolledSettings | None:
        return _filled(self._ask(f"instance_polling/{quote(destination, safe='')}", {"md5": md5}))

    def _ask(self, what: str, query: Mapping[str, str]) -> PolledSettings | None:
        url = f"{self._settings.url}/api/v1/config/{what}?{urlencode(query)}"
        request = urllib.request.Request(url, headers=self._login())  # noqa: S310 - the settings allow http only
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_LONGEST + 1)
        except urllib.error.HTTPError as error:
            error.close()
            raise self._complaint(what, f"answers {error.code}") from None
        except (OSError, ValueError, HTTPException) as error:
            raise self._complaint(what, f"cannot be asked: {getattr(error, 'reason', error)}") from None
        if len(body) > _LONGEST:
            raise self._complaint(what, f"answers with more than {_LONGEST} bytes")
        return self._read(what, body)

    def _login(self) -> dict[str, str]:
        stored = self._settings.stored_hash
        return {"user": self._settings.user, "passwd": "" if stored is None else stored.hex()}

    def _read(self, what: str, body: bytes) -> PolledSettings | None:
        try:
            answer: Any = json.loads(body)
            code, data = answer["code"], answer.get("data")
            content, status = (data.get("content"), data.get("status")) if data else (None, None)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._complaint(what, "answers what canal's admin does not") from None
        if code != _OK:
            message = " ".join(str(answer.get("message")).split())
            raise self._complaint(what, f"refuses, with code {code}: {message[:_SHORT]}")
        return None if content is None else PolledSettings(str(content), None if status is None else str(status))

    def _complaint(self, what: str, text: str) -> ConfigurationError:
        return ConfigurationError(f"the manager {self._settings.url} {text} ({what})")


def _filled(polled: PolledSettings | None) -> PolledSettings | None:
    return polled if polled is not None and polled.content else None
