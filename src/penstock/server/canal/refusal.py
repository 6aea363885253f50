"""The error codes and texts with which canal's protocol refuses a request."""

from penstock.errors import PenstockError

UNSUPPORTED, UNKNOWN_ACTION = 300, 301  # canal's codes for its console
GENERAL, MISSING, NO_BATCH = 400, 401, 402  # canal's codes for its clients
TRY_AGAIN = 503  # our own: the destination is starting
_MAX_TEXT_LENGTH = 500


class CanalRefusedError(PenstockError):
    """A request is refused with one of canal's codes."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message[:_MAX_TEXT_LENGTH]


def describe_error(error: PenstockError) -> str:
    """Return an error as one short line, as clients show it."""
    return " ".join(str(error).split())[:_MAX_TEXT_LENGTH]
