"""The last lines of the log in memory, for operators who read them in canal-admin instead of on the machine."""

import logging
import re
import threading
from collections import deque
from collections.abc import Iterable

_LINES = 5000
_LINE_CHARACTERS = 1000
_TAIL_BYTES = 4 << 20  # of one answer, as canal's
_MIN_SECRET_LENGTH = 4  # a shorter one would mask half of every line


class LogRing(logging.Handler):
    """A logging handler that holds the last lines, one for each record, without tracebacks. It gets what passes the
    logger's own level."""

    def __init__(self, lines: int = _LINES) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        self._lines = deque[str](maxlen=lines)
        self._guard = threading.Lock()  # of _lines

    def emit(self, record: logging.LogRecord) -> None:
        """Store a log record as one line."""
        plain = logging.makeLogRecord(record.__dict__ | {"exc_info": None, "exc_text": None, "stack_info": None})
        try:
            line = " ".join(self.format(plain).split("\n"))[:_LINE_CHARACTERS]
        except Exception:  # noqa: BLE001 - a line that cannot be written is no reason to fail
            self.handleError(record)
            return
        with self._guard:
            self._lines.append(line)

    def attach(self) -> None:
        """Begin to receive Penstock's log records."""
        logging.getLogger("penstock").addHandler(self)

    def detach(self) -> None:
        """Receive no more log records."""
        logging.getLogger("penstock").removeHandler(self)

    def tail(self, count: int, destination: str | None = None, secrets: Iterable[str] = ()) -> str:
        """Return the last lines, of one destination or of all, with these secrets masked."""
        with self._guard:
            lines = list(self._lines)
        if destination is not None:
            pattern = re.compile(rf"\bdestination={re.escape(destination)}(?![\w.-])")
            lines = [line for line in lines if pattern.search(line)]
        tail, size = deque[str](), 0
        for line in reversed(lines[-count:] if count > 0 else []):
            masked = _mask_secrets(line, secrets)
            size += len(masked.encode()) + 1
            if size > _TAIL_BYTES:
                break
            tail.appendleft(masked)
        return "\n".join(tail)


def _mask_secrets(line: str, secrets: Iterable[str]) -> str:
    """Replace secrets in a log line."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_LENGTH:
            line = line.replace(secret, "***")
    return line
