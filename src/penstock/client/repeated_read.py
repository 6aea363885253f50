"""Reading a part of the log to its end, over several servers if need be.

A part gives the same changes in the same order as often as it is read, but not in the same blocks, nor with the same
events between them: after a break it is read from its start again, and events up to the last one that came before the
break are left out. Opening a stream is retried by the link: where that has failed, the time for retries is over.
"""

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.backoff import Backoff, RetryTimer
from penstock.client.link import ServerLink, ServerStream
from penstock.errors import PenstockError, ProtocolError
from penstock.model.position import file_number

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block

log = logging.getLogger(__name__)

_BACKOFF = Backoff(0.05, 2.0)


class ResumedRead:
    """Reads a part of the log to its end, and reads it again after a break, without the events that came before.

    It is for one thread. Transient errors are retried for the `retry_timeout_s` of the link, from the first break
    after which nothing new has come.
    """

    def __init__(self, link: ServerLink, ticket: bytes) -> None:
        self._link, self._ticket = link, ticket
        self._stream: ServerStream | None = None
        self._given = 0  # events, of all reads together
        self._last: tuple[int, int, int] | None = None  # epoch, file number and position of the last event given
        self._equal = 0  # how many events were given at that position: those of an XA transaction may share one
        self._skipped = 0  # how many of these were redelivered since the break
        self._is_behind = False  # a break is over when something new has come
        self._timer: RetryTimer | None = None  # of a break that is not over

    def next_chunk(self) -> Any:
        """Return the next chunk of the stream, or None at its end."""
        while True:
            if self._stream is None:
                self._stream = self._link.open_stream(self._ticket)
                self._is_behind, self._skipped = self._last is not None, 0
            try:
                return self._stream.read_chunk()
            except StopIteration:
                return None
            except PenstockError as error:
                self._timer = self._timer or RetryTimer(_BACKOFF)
                delay_s = self._timer.next_delay_s(self._link.retry_timeout_s)
                if not error.transient or delay_s is None:
                    raise
                log.warning(
                    "range read from Penstock server interrupted, resume scheduled destination=%s events_read=%d"
                    " delay_s=%.2f reason=%s",
                    *(self._link.destination, self._given, delay_s, error),
                )
                self._stream = None
                time.sleep(delay_s)

    def drop_repeated(self, block: "Block") -> "Block":
        """Return the events of a block that did not come before a break."""
        repeated = self._count_repeated(block) if self._is_behind else 0
        new = block.slice(repeated, len(block))
        if len(new):
            self._is_behind, self._timer = False, None
            self._given += len(new)
            self._record_last(new)
        return new

    def _count_repeated(self, block: "Block") -> int:
        """Return how many events of the block came before a break."""
        if self._last is None or not len(block):
            return 0
        epoch, file, last = self._last
        if block.epoch != epoch:
            raise ProtocolError("the source was switched while a part of its log was read: read it again")
        if (number := file_number(block.file)) != file:
            return len(block) if number < file else 0
        position = block.column("position")
        before, behind = (int(np.searchsorted(position, last, side)) for side in ("left", "right"))
        equal = min(behind - before, self._equal - self._skipped)
        self._skipped += equal
        return before + equal

    def _record_last(self, block: "Block") -> None:
        """Record the last event that was delivered."""
        last = int(block.column("position")[-1])
        equal = len(block) - int(np.searchsorted(block.column("position"), last, "left"))
        identity = block.epoch, file_number(block.file), last
        self._equal = self._equal + equal if identity == self._last else equal
        self._last = identity


def read_whole(link: ServerLink, ticket: bytes) -> list[Any]:
    """Return all batches of a stream that has an end. After a break it is read again from its start: nothing is
    returned before all of it is there."""
    timer: RetryTimer | None = None
    while True:
        batches: list[Any] = []
        stream = link.open_stream(ticket)
        try:
            while True:
                batch = stream.read_chunk().data
                if batch.num_rows:
                    batches.append(batch)
        except StopIteration:
            return batches
        except PenstockError as error:
            timer = timer or RetryTimer(_BACKOFF)
            delay_s = timer.next_delay_s(link.retry_timeout_s)
            if not error.transient or delay_s is None:
                raise
            log.warning(
                "read from Penstock server interrupted, retry scheduled destination=%s delay_s=%.2f reason=%s",
                *(link.destination, delay_s, error),
            )
            time.sleep(delay_s)
