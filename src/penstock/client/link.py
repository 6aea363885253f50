"""The way to a server: its address, what a caller proves itself with, and its errors raised as ours."""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from penstock import errors
from penstock.errors import (
    AuthenticationError,
    ConfigurationError,
    PenstockError,
    ProtocolError,
    SourceConnectionError,
    StartingError,
)

T = TypeVar("T")

log = logging.getLogger(__name__)

_TLS = "grpc+tls"
_BROKEN = ("RST_STREAM", "GOAWAY", "Stream removed")  # what gRPC says of a connection that broke inside of a call


@dataclass(frozen=True, slots=True)
class Address:
    """`server` is HOST:PORT, or a URL that begins with grpc:// or grpc+tls://."""

    server: str
    token: str = field(default="", repr=False)
    tls_ca: str = ""  # a file with the certificates to trust; those of the system when it is not given

    @property
    def url(self) -> str:
        scheme, found, rest = self.server.partition("://")
        if not found:
            scheme, rest = _TLS if self.tls_ca else "grpc", self.server
        host, _, port = rest.rstrip("/").rpartition(":")
        scheme = {"grpc+tcp": "grpc", "grpcs": _TLS}.get(scheme, scheme)
        if not host or not port.isdigit() or scheme not in {"grpc", _TLS}:
            raise ConfigurationError(
                f"not a server address: {self.server!r}; write it as HOST:PORT, for example 127.0.0.1:11115, or with"
                " grpc+tls:// before it"
            )
        return f"{scheme}://{host}:{port}"

    def open(self) -> fl.FlightClient:
        url, options = self.url, dict[str, Any]()
        if url.startswith(_TLS) and self.tls_ca:
            try:
                options["tls_root_certs"] = Path(self.tls_ca).read_bytes()
            except OSError as error:
                raise ConfigurationError(f"cannot read {self.tls_ca} ({error.strerror}): see tls_ca") from None
        return fl.FlightClient(url, **options)

    @property
    def options(self) -> fl.FlightCallOptions:
        headers = [(b"authorization", f"Bearer {self.token}".encode())] if self.token else []
        return fl.FlightCallOptions(headers=headers)


class Link:
    """Safe to keep for long; what is transient is tried again for `patience_s`, and a destination that the server is
    still starting is waited for, `start_patience_s` if that is longer."""

    def __init__(self, address: Address, patience_s: float = 0, *, start_patience_s: float = 0) -> None:
        self._address, self.patience_s = address, patience_s
        self._start_patience_s = max(patience_s, start_patience_s)
        self._parent = os.getppid()
        self._client, self._options = address.open(), address.options

    def close(self) -> None:
        self._client.close()

    def action(self, name: str, request: Mapping[str, Any], *, waits_for_start: bool = True) -> list[bytes]:
        action = fl.Action(name, json.dumps(request).encode())
        answers = self.call(
            lambda: list(self._client.do_action(action, self._options)), waits_for_start=waits_for_start
        )
        return [answer.body.to_pybytes() for answer in answers]

    def info(self, request: Mapping[str, Any]) -> fl.FlightInfo:
        descriptor = fl.FlightDescriptor.for_command(json.dumps(request).encode())
        return self.call(lambda: self._client.get_flight_info(descriptor, self._options))

    def flights(self, destination: str = "") -> list[fl.FlightInfo]:
        return self.call(lambda: list(self._client.list_flights(destination.encode(), self._options)))

    def get(self, ticket: bytes, *, waits_for_start: bool = True) -> Any:
        """A stream; what it brings is asked for with `call_once`."""
        return self.call(lambda: self._client.do_get(fl.Ticket(ticket), self._options), waits_for_start=waits_for_start)

    def call_once(self, call: Callable[[], T]) -> T:
        """The rest of a stream cannot be asked for again."""
        try:
            return call()
        except fl.FlightError as error:
            raise self._ours(error) from error
        except pa.ArrowException as error:
            raise ProtocolError(f"the answer of {self._address.server} is not understood: {error}") from error

    def call(self, call: Callable[[], T], *, waits_for_start: bool = True) -> T:
        began, pause_s = time.monotonic(), 0.1
        while True:
            try:
                return self.call_once(call)
            except PenstockError as error:
                # Whoever started this process may be gone: nobody waits for the answer any more.
                is_orphan = os.getppid() != self._parent
                is_starting = waits_for_start and isinstance(error, StartingError)
                patience_s = self._start_patience_s if is_starting else self.patience_s
                if not error.transient or is_orphan or time.monotonic() + pause_s > began + patience_s:
                    raise
                log.warning("asking again server=%s in_s=%.1f reason=%s", self._address.server, pause_s, error)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 2.0)

    def _ours(self, error: Any) -> PenstockError:
        server = self._address.server
        try:
            about = json.loads(error.extra_info)
            return getattr(errors, about["error"])(about["message"])
        except (ValueError, KeyError, TypeError, AttributeError):
            text = str(error).partition(". Detail:")[0].splitlines()[0]
            if isinstance(error, fl.FlightUnauthenticatedError):
                return AuthenticationError(f"{server} refuses: {text}")
            if isinstance(error, fl.FlightCancelledError) or any(sign in text for sign in _BROKEN):
                return SourceConnectionError(f"{server} has ended the call: it is being stopped, or was ({text})")
            if isinstance(error, fl.FlightUnavailableError):
                return SourceConnectionError(
                    f"no Penstock server answers at {server}: is `penstock serve` running there, and is it TLS at both"
                    " ends or at none?"
                )
            return ProtocolError(f"{server}: {text}")
