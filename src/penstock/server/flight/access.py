"""Who may call: whoever comes with a token that the settings have, as `Authorization: Bearer TOKEN`, or as a password
with the name that the settings give it."""

import base64
import binascii
import hmac
import logging
from collections.abc import Mapping
from typing import Any

import pyarrow.flight as fl

log = logging.getLogger(__name__)

MIDDLEWARE = "access"


class FlightAccess(fl.ServerMiddlewareFactory):
    def __init__(self, tokens: Mapping[str, str]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._tokens = {name: token.encode() for name, token in tokens.items()}

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> "Caller":  # noqa: ARG002
        given = [value for key, values in headers.items() if key.lower() == "authorization" for value in values]
        for value in given:
            scheme, _, rest = value.partition(" ")
            name, token = _basic(rest) if scheme.lower() == "basic" else ("", rest)
            if scheme.lower() in {"basic", "bearer"} and (found := self._name(name, token)) is not None:
                return Caller(found, token if scheme.lower() == "basic" else None)
        log.warning("flight call refused reason=%s", "wrong token" if given else "no token")
        raise fl.FlightUnauthenticatedError("this server wants a token: Authorization: Bearer TOKEN")

    def _name(self, name: str, token: str) -> str | None:
        """Of whom the token is; every token is compared, so that the time says nothing."""
        given, found = token.encode(), None
        for known, value in self._tokens.items():
            if hmac.compare_digest(given, value) and name in {"", known}:
                found = known
        return found


class FlightHandshake(fl.ServerAuthHandler):
    """For clients that begin with one: what they come with is looked at as in every other call."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        pass

    def is_valid(self, token: bytes) -> bytes:  # noqa: ARG002
        return b""


class Caller(fl.ServerMiddleware):
    def __init__(self, name: str, token: str | None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.name, self._token = name, token

    def sending_headers(self) -> dict[str, str]:
        """For clients that have asked with name and password, and go on with what they get."""
        return {"authorization": f"Bearer {self._token}"} if self._token else {}


def _basic(text: str) -> tuple[str, str]:
    try:
        name, _, token = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, token
