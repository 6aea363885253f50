"""Reading a part of the log to its end, over several servers if need be.

A part gives the same events in the same order as often as it is read, but not in the same blocks: after a break it is
read from its start again, and as many events are left out as have come before.
"""

import logging
import time
from typing import TYPE_CHECKING, Any

from penstock.client.link import Link
from penstock.errors import PenstockError, ProtocolError
from penstock.model.position import file_number

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block

log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0


class RepeatedRead:
    """For one thread. What is transient is tried again for the patience of the link, counted from the last chunk."""

    def __init__(self, link: Link, ticket: bytes) -> None:
        self._link, self._ticket = link, ticket
        self._stream: Any = None
        self._given = 0  # events, of all reads together
        self._seen = 0  # events of this read
        self._last: tuple[int, int] | None = None  # file number and position of the last event that was given

    def next_chunk(self) -> Any:
        """Return the next chunk of the stream, or None at its end."""
        deadline, pause_s = time.monotonic() + self._link.patience_s, _FIRST_PAUSE_S
        while True:
            try:
                if self._stream is None:
                    self._stream, self._seen = self._link.get(self._ticket), 0
                return self._link.call_once(self._stream.read_chunk)
            except StopIteration:
                return None
            except PenstockError as error:
                if not error.transient or time.monotonic() + pause_s > deadline:
                    raise
                log.warning("part read again events=%d delay_s=%.2f reason=%s", self._given, pause_s, error)
                self._stream = None
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def without_known(self, block: "Block") -> "Block":
        """Return the events of a block that did not come before a break."""
        known = min(len(block), self._given - self._seen)
        self._seen += len(block)
        if known and self._seen >= self._given and _identity(block, known - 1) != self._last:
            raise ProtocolError("a part of the log came otherwise than before the server was restarted: read it again")
        if known < len(block):
            self._given, self._last = self._seen, _identity(block, len(block) - 1)
        return block.slice(known, len(block)) if known else block


def _identity(block: "Block", event: int) -> tuple[int, int]:
    return file_number(block.file), int(block.column("position")[event])
