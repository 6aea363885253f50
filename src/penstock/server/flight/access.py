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


class TokenMiddleware(fl.ServerMiddlewareFactory):
    """Lets calls in that carry one of the configured tokens, and refuses all others as unauthenticated."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._tokens = {name: token.encode() for name, token in tokens.items()}

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> "AuthenticatedCall":
        """Check the Authorization header of a call and return its caller. Arrow Flight calls this before every call."""
        credentials = [value for key, values in headers.items() if key.lower() == "authorization" for value in values]
        for value in credentials:
            scheme, _, rest = value.partition(" ")
            name, token = _decode_basic(rest) if scheme.lower() == "basic" else ("", rest)
            if scheme.lower() in {"basic", "bearer"} and (caller := self._find_name(name, token)) is not None:
                return AuthenticatedCall(caller, token if scheme.lower() == "basic" else None)
        reason = "wrong token" if credentials else "no token"
        log.warning("flight call refused call=%s reason=%s", info.method.name.lower(), reason)
        raise fl.FlightUnauthenticatedError("this server wants a token: Authorization: Bearer TOKEN")

    def _find_name(self, name: str, token: str) -> str | None:
        """Return the configured name of a token, or None. Every token is compared, so that the time taken tells
        nothing."""
        encoded, owner = token.encode(), None
        for known, value in self._tokens.items():
            if hmac.compare_digest(encoded, value) and name in {"", known}:
                owner = known
        return owner


class FlightHandshake(fl.ServerAuthHandler):
    """Accepts the handshake of clients that begin with one; their tokens are checked with every call all the same."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Accept the handshake without reading it: tokens are checked with every call."""

    def is_valid(self, token: bytes) -> bytes:  # noqa: ARG002
        """Return an empty identity for any token: tokens are checked with every call."""
        return b""


class AuthenticatedCall(fl.ServerMiddleware):
    """The name that a call's token is configured under."""

    def __init__(self, name: str, token: str | None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.name, self._token = name, token

    def sending_headers(self) -> dict[str, str]:
        """Return the token as a bearer header to a client that logged in with name and password, for its next calls."""
        return {"authorization": f"Bearer {self._token}"} if self._token else {}


def _decode_basic(text: str) -> tuple[str, str]:
    """Return name and password of HTTP basic authentication, both empty if they cannot be decoded."""
    try:
        name, _, token = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, token
