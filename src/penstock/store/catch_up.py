"""A client that begins before the store does: the source's own log is read for it up to where the store begins.

It holds nothing in the store while it is far behind. When it comes near, the store keeps what it needs next, so that it
joins without a gap and without a duplicate. A client that is evicted from a full store resumes the same way.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.errors import PositionLostError, SourceConnectionError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.client import Client, Place
from penstock.store.cut import cut
from penstock.store.held import Entries, Held
from penstock.store.start import Start, place_of

NOT_IN_STORE = -1  # as a sequence


class LogReader(Protocol):
    """What the source implements."""

    def translated(self, position: Position) -> Position:
        """A place of an earlier epoch, in the log that there is now. Raises PositionLostError."""
        ...

    def find(self, start: Start) -> Position:
        """Where in the log a GTID or a time is: between two transactions. Raises PositionLostError."""
        ...

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        """Entries of (start, end] of the source's log; both lie between two transactions."""
        ...


def begin(
    name: str,
    start: Start,
    held: Sequence[Held],
    entries_of: Callable[[Held], Entries],
    origin: Place,
    boundary: Place,
    log: LogReader | None,
    origin_for: Callable[[Position], Place],
) -> Client:
    """A client at its start: in the store, or before it, if the source's log has that."""
    try:
        place = place_of(start, held, entries_of, origin, boundary)
    except PositionLostError:
        if log is None or (start.kind == "position" and start.position and start.position > boundary.position):
            raise
        place = origin
    if log is not None and place.position == origin.position and start.kind not in {"first", "latest"}:
        wanted = start.position or log.find(start)
        place = origin_for(wanted)
        if start.position is None and wanted.epoch > place.position.epoch:
            raise SourceConnectionError(
                "the source is being switched: what the store has of the new log is not known yet"
            )
        if wanted < place.position:
            return Client(name, place, place, place, catch_up=CatchUp(log, wanted), is_far=True)
    is_ahead = start.kind == "cursor" and start.position is not None and start.position > place.position
    return Client(name, place, place, place, ahead=start.position if is_ahead else None)


def evict(client: Client, log: LogReader) -> bool:
    """Keep nothing in the store for a client any more: it resumes after what it got, from the source's log, and what it
    got can still be acked. Return False while a batch is read from the log for it, which must end first."""
    if client.is_reading_log:
        return False
    if not client.is_behind:
        client.catch_up = CatchUp.resumed(log, client)
    client.is_far, client.rounds = True, 0
    client.delivered.clear()
    client.rewinds += 1  # what it is just getting from the store comes from the log
    return True


class CatchUp:
    """Of one client; used by one thread at a time.

    The log is read from places between two transactions only. So after a rollback, or an error of the log, what the
    client has of a transaction already is read again and left out.
    """

    def __init__(self, log: LogReader, boundary: Position, acked: Position | None = None) -> None:
        """The boundary is the last one that is acked; the client may have acked more, inside of a transaction."""
        self.boundary = boundary
        self.acked = self.got = acked or boundary
        self._log = log
        # Ends of the batches that are not acked, and the last boundary that is acked with each.
        self._waiting: deque[tuple[Position, Position]] = deque()
        self._stream: Iterator[Block] | None = None
        self._target = boundary  # where the stream ends
        self._reached = boundary  # up to there all of the log is read: a boundary
        self._parts: deque[tuple[Held, Entries]] = deque()  # read, and not all of it got
        self._place = self._read = Place(NOT_IN_STORE, self.acked, 0)  # after what was got, and after the last part

    @classmethod
    def resumed(cls, log: LogReader, client: Client) -> "CatchUp":
        """Of a client that got its last batches from the store, and maybe some before them from the log."""
        before = client.catch_up
        boundary, acked = (client.safe.position, client.ack.position)
        if before is not None:
            boundary, acked = before.boundary, before.acked
        resumed = cls(log, boundary, acked)
        resumed._waiting.extend(before.outstanding if before is not None else ())
        resumed._waiting.extend((end.position, last) for end, last in client.delivered)
        resumed.got = client.get.position
        resumed._target = resumed._reached = client.last_boundary
        resumed._place = resumed._read = Place(NOT_IN_STORE, resumed.got, 0)
        return resumed

    @property
    def outstanding(self) -> tuple[tuple[Position, Position], ...]:
        """Ends of the batches that are not acked, and the last boundary that is acked with each."""
        return tuple(self._waiting)

    @property
    def last_boundary(self) -> Position:
        """The last transaction boundary up to which its client got everything."""
        return self._waiting[-1][1] if self._waiting else self.boundary

    def get(self, client: Client, target: Position, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """The next batch before `target`; None when that is reached."""
        while not self._is_full(client, size) and self._pull(target):
            pass
        if not self._parts:
            self.got = max(self.got, self._reached)
            return None
        entries = {held.first: found for held, found in self._parts}
        held = [held for held, _ in self._parts]
        batch, self._place = cut(
            client, self._place, held, lambda one: entries[one.first], size, self._read.sequence,
            is_ddl_alone=is_ddl_alone,
        )  # fmt: skip
        while self._parts and self._parts[0][0].last <= self._place.sequence:
            self._parts.popleft()
        self._waiting.append((self._place.position, batch.ack or self.last_boundary))
        self.got = self._place.position  # last: an ack of the batch before may come at any moment
        return replace(batch, first_sequence=NOT_IN_STORE, end_sequence=NOT_IN_STORE)

    def _is_full(self, client: Client, size: BatchSize) -> bool:
        if client.wants_whole and not any(held.boundary > self._place.sequence for held, _ in self._parts):
            return False
        if size.unit == "items":
            return self._read.sequence - self._place.sequence >= size.count
        read_bytes = self._read.bytes - self._place.bytes
        return read_bytes >= size.bytes or size.is_enough(read_bytes)

    def _pull(self, target: Position) -> bool:
        """One more block; False when the target is reached. After an error the next call goes on where this one was."""
        if self._stream is None:
            if self._reached >= target:
                return False
            self._target = target
            self._stream = self._log.read_log(self._reached, target)
        try:
            block = next(self._stream, None)
        except BaseException:
            self._stream = None
            raise
        if block is None:
            self._stream, self._reached = None, self._target
            return self._reached < target
        self._add(block.between(self._read.position, self._target))
        return True

    def _add(self, block: Block) -> None:
        entries = Entries.of(block) if len(block) else None
        if entries is None or not len(entries):
            return
        held = Held.of(entries, self._read.sequence + 1, self._read.bytes, self._read.position)
        self._parts.append((held, entries))
        self._read = Place(held.last, held.end, held.base + held.size)
        if held.boundary >= 0:
            self._reached = entries.end_of(held.boundary - held.first)

    def ack(self, end: Position) -> bool:
        """Whether that is the end of one of its batches that are not acked; those before it are acked with it."""
        if all(end != waiting for waiting, _ in self._waiting):
            return False
        while self.acked != end:
            self.acked, self.boundary = self._waiting.popleft()
        return True

    @property
    def is_all_acked(self) -> bool:
        return not self._waiting

    def moved(self) -> "CatchUp":
        """After a switch of the source: from the last boundary that is acked, in the new log. What was got already can
        still be acked, and comes again."""
        moved = CatchUp(self._log, self._log.translated(self.boundary))
        moved._waiting.extend(self._waiting)
        return moved

    def rewound(self) -> "CatchUp":
        """From the last ack on."""
        return CatchUp(self._log, self.boundary, self.acked)
