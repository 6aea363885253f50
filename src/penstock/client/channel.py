"""The connection to one server: its errors are raised as ours, and its streams know which server they come from."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from penstock import errors
from penstock.client.address import ServerAddress
from penstock.client.read_watch import ReadWatch
from penstock.errors import (
    AuthenticationError,
    ConfigurationError,
    PenstockError,
    ProtocolError,
    ServerUnavailableError,
)

T = TypeVar("T")

CALL_TIMEOUT_S = 120.0
LONG_CALL_TIMEOUT_S = 900.0  # of calls that may read much of the source's log before they answer
_BROKEN = ("RST_STREAM", "GOAWAY", "Stream removed")  # what gRPC says of a connection that broke inside of a call
_ADVICE = ": is `penstock serve` running there, and is it TLS at both ends or at none?"


class ServerChannel:
    """A Flight client of one server; it connects with its first call, and reconnects by itself."""

    def __init__(self, address: ServerAddress, url: str, *, name: str = "", advice: str = _ADVICE) -> None:
        """`name` is what errors call the server; `advice` ends the message of one that does not answer."""
        self._address, self.url, self.name, self._advice = address, url, name or url, advice
        self.client, self.options = address.open_client(url), address.call_options()
        # Of calls with one answer, for their threads: whoever waits for one has left a frozen server long before.
        self.short_options = address.call_options(CALL_TIMEOUT_S)
        self.long_options = address.call_options(LONG_CALL_TIMEOUT_S)
        self.read_watch = ReadWatch()

    def is_alive(self, limit_s: float) -> bool:
        """Return whether the server answers anything within `limit_s`, also while it works on a call that takes long.

        Flight's port answers this question alone, without any destination.
        """
        try:
            self.client.list_actions(self._address.call_options(limit_s))
        except (fl.FlightTimedOutError, fl.FlightUnavailableError, fl.FlightCancelledError):
            return False
        except pa.ArrowException:
            return True  # it refuses
        return True

    def call(self, call: Callable[[], T]) -> T:
        """Make a call to the server once, and raise errors of Flight as errors of Penstock."""
        try:
            return call()
        except fl.FlightError as error:
            raise self._translate_error(error) from error
        except pa.ArrowException as error:
            raise ProtocolError(f"the answer of {self.name} is not understood: {error}") from error

    def _translate_error(self, error: Any) -> PenstockError:
        """Return an error of Flight as one of Penstock's."""
        try:
            refusal = json.loads(error.extra_info)
            return getattr(errors, refusal["error"])(refusal["message"])
        except (ValueError, KeyError, TypeError, AttributeError):
            text = str(error).partition(". Detail:")[0].splitlines()[0]
            if isinstance(error, fl.FlightUnauthenticatedError):
                return AuthenticationError(f"{self.name} refuses: {text}")
            if isinstance(error, fl.FlightCancelledError) or any(sign in text for sign in _BROKEN):
                return ServerUnavailableError(f"{self.name} has ended the call: it is being stopped, or was ({text})")
            if isinstance(error, fl.FlightTimedOutError):
                return ServerUnavailableError(f"{self.name} does not answer: a call was given up after its time")
            if isinstance(error, fl.FlightUnavailableError):
                return _tls_error(text, self.name) or ServerUnavailableError(
                    f"no Penstock server answers at {self.name}{self._advice}"
                )
            return ProtocolError(f"{self.name}: {text}")


class ServerStream:
    """The Flight stream of one `do_get`; `on_failure` is called with an error that ends it.

    A server sends a heartbeat when it has nothing else to send, so a stream on which nothing comes for `silence_s` is
    given up.
    """

    def __init__(
        self, channel: ServerChannel, reader: Any, on_failure: Callable[[PenstockError], None], silence_s: float
    ) -> None:
        self._channel, self._reader, self._on_failure, self._silence_s = channel, reader, on_failure, silence_s
        # A refusal comes with the first thing that is asked of a stream.
        self.schema: pa.Schema = channel.call(lambda: reader.schema)

    def read_chunk(self) -> Any:
        """Return the next chunk; StopIteration ends the stream."""
        with self._channel.read_watch.limit(self._reader.cancel, self._silence_s) as read:
            try:
                return self._channel.call(self._reader.read_chunk)
            except PenstockError as error:
                if not read.is_given_up:
                    self._on_failure(error)
                    raise
                silence = f"{self._channel.name} does not answer: nothing came for {self._silence_s:g} s"
                self._on_failure(failure := ServerUnavailableError(silence))
                raise failure from error

    def cancel(self) -> None:
        """End the stream, also from another thread while it waits for a chunk."""
        self._reader.cancel()


def _tls_error(text: str, server: str) -> PenstockError | None:
    """Return the error for a TLS handshake that will fail every time, or None for another failure to connect."""
    if "certificate verify failed" in text:
        return ConfigurationError(
            f"the certificate of {server} is not trusted: name the CA that has signed it with tls_ca ({text})"
        )
    if "wrong version number" in text:
        return ConfigurationError(f"{server} does not speak TLS: write grpc:// and no tls_ca ({text})")
    return None
