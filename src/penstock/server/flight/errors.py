"""Penstock's errors as errors of Arrow Flight, with the class name beside the message, so that a client can raise the
same class."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager

import pyarrow.flight as fl

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

_MAX_TEXT_LENGTH = 500


@contextmanager
def translate_errors() -> Generator[None, None, None]:
    """Turn an exception in the block into an error of Arrow Flight with a one-line text. Internal errors are logged,
    and their text is not sent."""
    try:
        yield
    except PenstockError as error:
        cls = fl.FlightUnavailableError if error.transient else fl.FlightServerError
        raise _refusal(cls, type(error).__name__, str(error)) from None
    except (fl.FlightError, GeneratorExit):
        raise
    except Exception:
        log.exception("flight call failed")
        text = "an error inside of the server: its log says more"
        raise _refusal(fl.FlightInternalError, "PenstockError", text) from None


def _refusal(cls: type[fl.FlightError], name: str, message: str) -> fl.FlightError:
    text = " ".join(message.split())[:_MAX_TEXT_LENGTH]
    return cls(text, json.dumps({"error": name, "message": text}).encode())
