"""Penstock's errors as errors of Arrow Flight, with the class name beside the message, so that a client can raise the
same class."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow.flight as fl

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

_MAX_REQUEST_LENGTH = 500  # in a log line
# An error travels as metadata of gRPC: twice as a message, and once in its extra info. Of more than 8 KiB of metadata a
# client loses some at random.
_MAX_METADATA_BYTES = 7200
_PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")  # what gRPC does not encode
_OMISSION = " … (the rest is left out)"


@dataclass(slots=True)
class FlightCall:
    """The Flight call that a log line is about. Destination and client are filled in when its request has been
    parsed."""

    name: str  # do_get, do_action …
    peer: str
    request: str = ""  # the action, or the tables and the range; never values of rows
    destination: str = "-"
    client: int | None = None

    def set_request(self, destination: str, request: str, client: int | None = None) -> None:
        """Fill in what the call asks for."""
        self.destination, self.request, self.client = destination, request, client


@contextmanager
def translate_errors(call: FlightCall) -> Generator[FlightCall]:
    """Turn an exception in the block into an error of Arrow Flight with a one-line text. Internal errors are logged
    with the call, and their text is not sent."""
    try:
        yield call
    except PenstockError as error:
        cls = fl.FlightUnavailableError if error.transient else fl.FlightServerError
        raise _refusal(cls, type(error).__name__, str(error)) from None
    except (fl.FlightError, GeneratorExit):
        raise
    except Exception:
        log.exception(
            "flight call failed destination=%s call=%s client=%s peer=%s request=%s",
            *(call.destination, call.name, call.client or "-", call.peer, call.request[:_MAX_REQUEST_LENGTH]),
        )
        text = "an error inside of the server: its log says more"
        raise _refusal(fl.FlightInternalError, "PenstockError", text) from None


def _refusal(cls: type[fl.FlightError], name: str, message: str) -> fl.FlightError:
    text = _fit(" ".join(message.split()))
    return cls(text, json.dumps({"error": name, "message": text}).encode())


def _fit(text: str) -> str:
    """Return the text, or as many of its words as fit into the metadata. Words are never cut: a part of a GTID set
    would be a valid position, and an earlier one."""
    if _metadata_bytes(text) <= _MAX_METADATA_BYTES:
        return text
    room, end = _MAX_METADATA_BYTES - _metadata_bytes(_OMISSION), 0
    while (room := room - _metadata_bytes(text[end])) >= 0:
        end += 1
    return text[:end].rpartition(" ")[0] + _OMISSION


def _metadata_bytes(text: str) -> int:
    """Return how many bytes a text takes: as a message, percent-encoded and plain, and as JSON in the extra info."""
    return len(quote(text, safe=_PLAIN)) + len(text.encode()) + len(json.dumps(text)) - 2
