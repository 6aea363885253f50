"""A client that begins before the store does: the source's own log is read for it up to where the store begins.

It holds nothing in the store while it is far behind. When it comes near, the store keeps what it needs next, so that it
joins without a gap and without a duplicate. A client that is evicted from a full store resumes the same way.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.errors import PositionLostError, SourceConnectionError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.block_info import BlockEntries, BlockInfo, EntryPosition
from penstock.store.client import AheadOfStore, CatchingUp, InStore, StoreClient
from penstock.store.cut import cut_batch
from penstock.store.start import Start, StoreView, find_start

NOT_IN_STORE = -1  # as a sequence


class LogReader(Protocol):
    """Reads the source's log for clients that catch up; the source implements it."""

    def translate(self, position: Position) -> Position:
        """Return the position in the present log of a position of an earlier epoch. Raises PositionLostError."""
        ...

    def find(self, start: Start) -> Position:
        """Return the transaction boundary at which a GTID or a time is found in the log. Raises PositionLostError."""
        ...

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        """Yield entries of (start, end] of the source's log; both are transaction boundaries."""
        ...


def begin_client(
    name: str,
    start: Start,
    view: StoreView,
    log: LogReader | None,
    origin_for: Callable[[Position], EntryPosition],
) -> StoreClient:
    """Return a client at its start: in the store, or before it, if the source's log has that."""
    origin, boundary = view.origin, view.boundary
    try:
        begin = find_start(start, view)
    except PositionLostError:
        if log is None or (start.kind == "position" and start.position and start.position > boundary.position):
            raise
        begin = origin
    if log is not None and begin.position == origin.position and start.kind not in {"stored", "latest"}:
        wanted = start.position or log.find(start)
        begin = origin_for(wanted)
        if start.position is None and wanted.epoch > begin.position.epoch:
            raise SourceConnectionError(
                "the source is being switched: what the store has of the new log is not known yet"
            )
        if wanted < begin.position:
            return StoreClient(name, begin, begin, begin, serving=CatchingUp(CatchUp(log, wanted)))
    is_ahead = start.kind == "cursor" and start.position is not None and start.position > begin.position
    serving = AheadOfStore(start.position) if is_ahead and start.position is not None else InStore()
    return StoreClient(name, begin, begin, begin, serving=serving)


def evict(client: StoreClient, log: LogReader) -> bool:
    """Keep nothing in the store for a client any more: it resumes after what it got, from the source's log, and what it
    got can still be acked. Return False while a batch is read from the log for it, which must end first."""
    if client.is_reading_log:
        return False
    catch_up = client.catch_up
    client.start_catch_up(catch_up if catch_up is not None and client.is_behind else CatchUp.resume(log, client))
    client.delivered.clear()
    client.rewinds += 1  # what it is just getting from the store comes from the log
    return True


class CatchUp:
    """Reads the source's log for one client, in one thread at a time. The log is read from transaction boundaries only.
    After a rollback, or an error of the log, the part of a transaction that the client has already is read again and
    skipped."""

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
        self._parts: deque[tuple[BlockInfo, BlockEntries]] = deque()  # read, and not all of it got
        self._delivered = self._read = EntryPosition(
            NOT_IN_STORE, self.acked, 0
        )  # after what was got, and after the last part

    @classmethod
    def resume(cls, log: LogReader, client: StoreClient) -> "CatchUp":
        """Return a catch-up for a client that got its last batches from the store, and perhaps earlier ones from the
        log."""
        before = client.catch_up
        boundary, acked = (client.acked_boundary.position, client.ack.position)
        if before is not None:
            boundary, acked = before.boundary, before.acked
        resumed = cls(log, boundary, acked)
        resumed._waiting.extend(before.outstanding if before is not None else ())
        resumed._waiting.extend((end.position, last) for end, last in client.delivered)
        resumed.got = client.get.position
        resumed._target = resumed._reached = client.last_boundary
        resumed._delivered = resumed._read = EntryPosition(NOT_IN_STORE, resumed.got, 0)
        return resumed

    @property
    def outstanding(self) -> tuple[tuple[Position, Position], ...]:
        """The end of each batch that is not acked, with the last boundary that is acked with it."""
        return tuple(self._waiting)

    @property
    def last_boundary(self) -> Position:
        """The last transaction boundary up to which its client got everything."""
        return self._waiting[-1][1] if self._waiting else self.boundary

    def get(self, client: StoreClient, target: Position, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """Return the next batch before `target`; None when that is reached."""
        while not self._is_full(client, size) and self._pull(target):
            pass
        if not self._parts:
            self.got = max(self.got, self._reached)
            return None
        entries = {info.first: block for info, block in self._parts}
        blocks = [info for info, _ in self._parts]
        batch, self._delivered = cut_batch(
            client, self._delivered, blocks, lambda info: entries[info.first], size, self._read.sequence,
            is_ddl_alone=is_ddl_alone,
        )  # fmt: skip
        while self._parts and self._parts[0][0].last <= self._delivered.sequence:
            self._parts.popleft()
        self._waiting.append((self._delivered.position, batch.ack or self.last_boundary))
        self.got = self._delivered.position  # last: an ack of the batch before may come at any moment
        return replace(batch, first_sequence=NOT_IN_STORE, end_sequence=NOT_IN_STORE)

    def _is_full(self, client: StoreClient, size: BatchSize) -> bool:
        if client.wants_whole and not any(info.boundary > self._delivered.sequence for info, _ in self._parts):
            return False
        if size.unit == "items":
            return self._read.sequence - self._delivered.sequence >= size.count
        read_bytes = self._read.bytes - self._delivered.bytes
        return read_bytes >= size.bytes or size.is_enough(read_bytes)

    def _pull(self, target: Position) -> bool:
        """Read one more block; return False when the target is reached. After an error the next call resumes where this
        one stopped."""
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
        entries = BlockEntries.of(block) if len(block) else None
        if entries is None or not len(entries):
            return
        info = BlockInfo.of(entries, self._read.sequence + 1, self._read.bytes, self._read.position)
        self._parts.append((info, entries))
        self._read = EntryPosition(info.last, info.end, info.base + info.size)
        if info.boundary >= 0:
            self._reached = entries.end_of(info.boundary - info.first)

    def ack(self, end: Position) -> bool:
        """Ack the batch that ends there and all before it; return whether it is the end of an outstanding batch."""
        if all(end != waiting for waiting, _ in self._waiting):
            return False
        while self.acked != end:
            self.acked, self.boundary = self._waiting.popleft()
        return True

    @property
    def is_all_acked(self) -> bool:
        """Return whether the client has acked all batches that it got from the source's log."""
        return not self._waiting

    def translate(self) -> "CatchUp":
        """Return a catch-up for the new log after a switch of the source: it resumes at the last boundary that is
        acked. Batches that were delivered already can still be acked, and are redelivered."""
        moved = CatchUp(self._log, self._log.translate(self.boundary))
        moved._waiting.extend(self._waiting)
        return moved

    def rewind(self) -> "CatchUp":
        """Return a catch-up reader positioned at the last ack, so that unacked entries are redelivered."""
        return CatchUp(self._log, self.boundary, self.acked)
