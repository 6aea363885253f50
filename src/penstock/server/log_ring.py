"""The last lines of the log, in memory: for operators who ask a port, and not the machine."""

import logging
import re
import threading
from collections import deque
from collections.abc import Iterable

_LINES = 5000
_LINE_CHARACTERS = 1000
_TAIL_BYTES = 4 << 20  # of one answer, as canal's
_SHORTEST_SECRET = 4  # a shorter one would mask half of every line


class LogRing(logging.Handler):
    """One line for each record, without tracebacks. It holds what passes the logger's own level."""

    def __init__(self, lines: int = _LINES) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        self._lines = deque[str](maxlen=lines)
        self._guard = threading.Lock()  # of _lines

    def emit(self, record: logging.LogRecord) -> None:
        plain = logging.makeLogRecord(record.__dict__ | {"exc_info": None, "exc_text": None, "stack_info": None})
        try:
            line = " ".join(self.format(plain).split("\n"))[:_LINE_CHARACTERS]
        except Exception:  # noqa: BLE001 - a line that cannot be written is no reason to fail
            self.handleError(record)
            return
        with self._guard:
            self._lines.append(line)

    def attach(self) -> None:
        logging.getLogger("penstock").addHandler(self)

    def detach(self) -> None:
        logging.getLogger("penstock").removeHandler(self)

    def tail(self, count: int, destination: str | None = None, secrets: Iterable[str] = ()) -> str:
        """The last lines, of one destination or all, with these secrets masked, should they ever be in one."""
        with self._guard:
            found = list(self._lines)
        if destination is not None:
            about = re.compile(rf"\bdestination={re.escape(destination)}(?![\w.-])")
            found = [line for line in found if about.search(line)]
        kept, size = deque[str](), 0
        for line in reversed(found[-count:] if count > 0 else []):
            shown = _masked(line, secrets)
            size += len(shown.encode()) + 1
            if size > _TAIL_BYTES:
                break
            kept.appendleft(shown)
        return "\n".join(kept)


def _masked(line: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            line = line.replace(secret, "***")
    return line
