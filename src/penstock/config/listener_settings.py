"""The settings of the server's ports: where they listen, and who may connect.

Connections from other machines must authenticate; a canal port without a password has to be allowed explicitly.
"""

import hashlib
import ipaddress
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, ByteSize, Field, SecretStr, model_validator

from penstock.config.section import Section

_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_HASH_LENGTH = 40


def _check_hash(value: SecretStr) -> SecretStr:
    """Raise ValueError for a password hash that is not 40 hex digits."""
    text = value.get_secret_value()
    if len(text) != _HASH_LENGTH or not _HEX_DIGITS.issuperset(text):
        raise ValueError("a password_hash is SHA1(SHA1(password)) in 40 hex digits, as canal.passwd")
    return value


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


PasswordHash = Annotated[SecretStr, AfterValidator(_check_hash)]


class Login(Section):
    """A user and a password, in plain text or as canal's hash."""

    user: str = Field(default="", description="user name that clients must send; any user is accepted when empty")
    password: SecretStr | None = Field(default=None, min_length=1, description="password of the user")
    password_hash: PasswordHash | None = Field(
        default=None,
        description="alternative to `password`: SHA1(SHA1(password)) in 40 hex digits, as in canal's `canal.passwd`",
    )

    @model_validator(mode="after")
    def _check_one_password(self) -> Self:
        """Raise ValueError for a user without a password, or with both forms of it."""
        if self.password is not None and self.password_hash is not None:
            raise ValueError("set either password or password_hash")
        if self.user and not self.has_password:
            raise ValueError(f"the user {self.user} has no password: set password or password_hash")
        return self

    @property
    def has_password(self) -> bool:
        """Return whether a password is configured."""
        return self.password is not None or self.password_hash is not None

    @property
    def stored_hash(self) -> bytes | None:
        """Return SHA1(SHA1(password)), which canal's protocols compare with; None without a password."""
        if self.password_hash is not None:
            return bytes.fromhex(self.password_hash.get_secret_value())
        if self.password is None:
            return None
        once = hashlib.sha1(self.password.get_secret_value().encode(), usedforsecurity=False).digest()
        return hashlib.sha1(once, usedforsecurity=False).digest()


class FlightSettings(Section):
    """Arrow Flight, for Spark and every other Arrow client.

    settings = FlightSettings(host="0.0.0.0", port=11115, tokens={"spark": SecretStr("…")})
    """

    host: str = Field(
        default="127.0.0.1",
        description="address to listen on for Arrow Flight; an address that other machines can reach requires tokens",
    )
    port: int = Field(default=11115, ge=0, le=65535, description="port to listen on for Arrow Flight; 0: any free port")
    tls_cert: Path | None = Field(
        default=None,
        description="TLS certificate of this server, a PEM file; when set, only TLS connections are accepted",
    )
    tls_key: Path | None = Field(default=None, description="private key of tls_cert, a PEM file")
    tokens: dict[str, SecretStr] = Field(
        default={},
        description="access tokens, as NAME: TOKEN for each caller; a caller sends `Authorization: Bearer TOKEN`",
    )
    streams: int = Field(
        default=256, ge=1, description="maximum number of concurrent Arrow Flight streams of all clients"
    )

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        """Raise ValueError for a port that other machines reach without a token, and for unusable tokens."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together")
        if empty := sorted(name for name, token in self.tokens.items() if not token.get_secret_value()):
            raise ValueError(f"the token of {', '.join(empty)} is empty")
        if odd := sorted(name for name, token in self.tokens.items() if not token.get_secret_value().isascii()):
            raise ValueError(f"the token of {', '.join(odd)} is not ASCII: it could not be sent")
        if not is_loopback(self.host) and not self.tokens:
            raise ValueError(f"{self.host} is no loopback address: set tokens for those who may call")
        return self


class CanalSettings(Login):
    """canal's protocol, for its clients in any language.

    settings = CanalSettings(port=11111, allow_anonymous=True)
    """

    host: str = Field(default="127.0.0.1", description="address to listen on for canal's protocol")
    port: int | None = Field(
        default=11111, ge=0, le=65535, description="port to listen on for canal's protocol; 0: any free port; null: off"
    )
    allow_anonymous: bool = Field(
        default=False, description="accept clients from other machines without a password, as canal does"
    )
    frame_limit: ByteSize = Field(
        default=ByteSize(16 << 20), ge=1 << 10, description="maximum size of one packet from a canal client"
    )
    idle_s: float = Field(
        default=3600, gt=0, description="a canal client's connection that has been idle for this many seconds is closed"
    )
    handshake_s: float = Field(
        default=10,
        gt=0,
        description="a canal client that has not authenticated after this many seconds is disconnected",
    )
    start_wait_s: float = Field(
        default=10,
        ge=0,
        description="how many seconds a request for a destination that is still starting is kept waiting before the"
        " client is told to try again",
    )
    connections: int = Field(
        default=1000, ge=1, description="maximum number of concurrent connections of canal's clients"
    )

    @model_validator(mode="after")
    def _check_open_on_purpose(self) -> Self:
        """Raise ValueError for a port that other machines reach without a password, unless that is allowed
        explicitly."""
        is_open = self.port is not None and not self.has_password and not is_loopback(self.host)
        if is_open and not self.allow_anonymous:
            raise ValueError(
                f"{self.host} is no loopback address, and there is no password: set password, or allow_anonymous: true"
            )
        return self


class AdminSettings(Section):
    """The admin port, HTTP: health checks, status and metrics.

    settings = AdminSettings(port=11112)
    """

    host: str = Field(
        default="127.0.0.1",
        description="address to listen on for HTTP requests for health, status and metrics; an address that other"
        " machines can reach requires a token",
    )
    port: int | None = Field(
        default=11112,
        ge=0,
        le=65535,
        description="port to listen on for HTTP requests for health, status and metrics; 0: any free port; null: off",
    )
    token: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="access token that HTTP requests must carry, as `Authorization: Bearer TOKEN`",
    )

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        """Raise ValueError for a port that other machines reach without a token."""
        if self.port is not None and self.token is None and not is_loopback(self.host):
            raise ValueError(f"{self.host} is no loopback address: set a token")
        return self


class CanalAdminSettings(Login):
    """The port of canal's admin protocol, which canal-admin connects to; off by default."""

    host: str = Field(default="127.0.0.1", description="address to listen on for canal's admin protocol")
    port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="port to listen on for canal's admin protocol (canal uses 11110); 0: any free port; null: off",
    )

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        """Raise ValueError for an open port without a password."""
        if self.port is not None and not self.has_password:
            raise ValueError("who starts and stops instances needs a password: set password, or password_hash")
        return self
