"""Our errors as Flight's, with the name of the class beside the message, so that a client can raise the same one."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager

import pyarrow.flight as fl

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

_LONGEST_TEXT = 500


@contextmanager
def answered() -> Generator[None, None, None]:
    """A text is one line; what is no fault of the caller is in the log only."""
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
    text = " ".join(message.split())[:_LONGEST_TEXT]
    return cls(text, json.dumps({"error": name, "message": text}).encode())
