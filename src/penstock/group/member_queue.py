"""What comes next of one member of a group, for one client.

A batch of the member is got when it is known what of it goes out, and so big that all of it does: an ack of what went
out acks that and nothing else. So the lane looks ahead into the member's store first. Where that is not possible, a
batch is got as it comes and waits here until all of it has gone out: what lies before the store, and the end of a
transaction that is larger than the store.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.capture.state import InstanceState
from penstock.errors import PenstockError
from penstock.group.timeline import NEVER, Pending
from penstock.group.transactions import Transactions, joined, times_of
from penstock.instance.clients import Clients
from penstock.model import Position
from penstock.store import BatchSize, EventStore

_LEAST_BYTES, _MOST_BYTES, _ENTRY_BYTES = 1 << 16, 1 << 20, 1 << 8  # how far one looks ahead
_LARGEST_BYTES = 1 << 23  # beyond that a transaction is not looked at as a whole
_ONE = BatchSize(1)


class Member(Protocol):
    """What a group needs of an instance."""

    @property
    def state(self) -> InstanceState: ...

    @property
    def failure(self) -> PenstockError | None: ...

    @property
    def store(self) -> EventStore: ...

    @property
    def clients(self) -> Clients: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class MemberQueue:
    """Its owner sees to it that one thread uses it at a time."""

    def __init__(self, member: Member, client_id: int, hold_s: float, clock: Callable[[], float]) -> None:
        self._member, self._client, self._hold_s, self._clock = member, client_id, hold_s, clock
        self.begin_again()

    def begin_again(self) -> None:
        """What was got and not acked comes again."""
        self._at: Position | None = None  # after what was got
        self._got: deque[Block] = deque()  # and has not gone out
        self._batches: deque[tuple[int, Position]] = deque()  # what was got, by the id of each and its end
        self._ahead: list[Block] = []  # what was looked at, after that
        self._last = 0  # time of the last transaction that has gone out
        self._known: deque[tuple[Position, float]] = deque()  # how far the store went then
        self._part_since: float | None = None  # there is a part of a transaction, and its end does not come

    # -- looking

    def pending(self, size: BatchSize) -> Pending:
        latest, now = self._member.store.latest, self._clock()  # before one looks what there is up to there
        if not self._known or self._known[-1][0] < latest:
            self._known.append((latest, now))
        is_more = self._look_ahead(size)
        found = self._transactions()
        times = np.maximum(np.maximum.accumulate(found.times), self._last)
        last = int(times[-1]) if times.size else self._last
        is_ripe = found.is_open and self._is_ripe(found, size)
        if found.is_open and not is_ripe:
            found, times = found.without_last, times[:-1]
        future = NEVER
        if is_more or self._member.state is InstanceState.FOLLOWING:
            future = last if is_more else max(last, latest.timestamp * 1_000_000)
        overdue = self._overdue(now) + is_ripe
        return Pending(times, found.entries, found.sizes, found.are_statements, is_ripe, future, overdue)

    @property
    def has_more(self) -> bool:
        """Anything, a part of a transaction too."""
        return bool(self._got or self._ahead) or self._member.clients.wait(self._client, _ONE, 0)

    def _overdue(self, now: float) -> int:
        """How many whole transactions have been there for long enough."""
        while len(self._known) > 1 and self._known[1][1] <= now - self._hold_s:
            self._known.popleft()
        if self._known[0][1] > now - self._hold_s:
            return 0
        edge = self._known[0][0]
        return sum(_ended(block, edge) for block in (*self._got, *self._ahead))

    def _look_ahead(self, size: BatchSize) -> bool:
        """Whether there is more than what is known now."""
        if self._at is None and not self.get(_ONE):
            return False
        store, at = self._member.store, self._ahead[-1].end if self._ahead else self._at
        enough = size.bytes if size.unit == "memory" else size.count * _ENTRY_BYTES
        enough = min(max(enough, _LEAST_BYTES), _MOST_BYTES)
        if at is None or sum(block.size_bytes for block in self._ahead) >= enough:
            return True
        end = store.end_after(at, enough, 0)
        if end <= at:
            self._look_at_part(size)
            return False
        is_small = end.file_key != at.file_key or end.offset - at.offset <= _LARGEST_BYTES
        blocks = store.read(at, end) if is_small else None
        if blocks is not None:
            self._ahead += blocks
            self._part_since = None
        elif not self._ahead and not self._has_boundary and not self._is_full(self._transactions(), size):
            self.get(size)
        return blocks is None or store.latest > end

    @property
    def _has_boundary(self) -> bool:
        return any(block.boundaries.size for block in self._got)

    def _look_at_part(self, size: BatchSize) -> None:
        """Of a transaction whose end is not in the store. If it does not come in time, the part is got."""
        put, got, _ = self._member.store.sequences(str(self._client))
        has_part = put > got and not self._ahead
        if not has_part and not self._transactions().is_open:
            self._part_since = None
            return
        if self._part_since is None:
            self._part_since = self._clock()
        if has_part and self._has_waited and not self._has_boundary:
            self.get(size)

    @property
    def _has_waited(self) -> bool:
        return self._part_since is not None and self._clock() - self._part_since >= self._hold_s

    def _is_ripe(self, found: Transactions, size: BatchSize) -> bool:
        """Whether a part of a transaction may go out without its end."""
        return self._has_waited or (len(found) == 1 and self._is_full(found, size))

    def _is_full(self, found: Transactions, size: BatchSize) -> bool:
        weights = found.weights(size)
        return bool(weights.size) and int(weights[0]) >= (size.count if size.unit == "items" else size.bytes)

    def _transactions(self) -> Transactions:
        return Transactions.of([*self._got, *self._ahead])

    # -- taking

    def get(self, size: BatchSize) -> bool:
        """The member's next batch, whatever is in it."""
        got = self._member.clients.get(self._client, size, 0)
        if got is None:
            return False
        batch_id, batch = got
        self._at = batch.end
        self._got.extend(block for block in batch.blocks if len(block))
        self._batches.append((batch_id, batch.end))
        self._ahead = [rest for block in self._ahead if len(rest := block.between(batch.end, block.end))]
        return True

    def get_ahead(self, count: int) -> bool:
        """So many transactions as one looked at are got, if they are not yet; False if other things came."""
        missing = count - sum(block.boundaries.size for block in self._got)
        if missing <= 0:
            return True
        last = int(np.flatnonzero(joined(self._ahead, "boundary"))[missing - 1])
        looked = Transactions.of(self._ahead)
        if self.get(BatchSize(int(looked.entries[:missing].sum()))) and self._at == looked.end_of(last):
            return True
        self._ahead = []
        return False

    def take(self, count: int) -> list[Block]:
        """Out of what was got: so many transactions."""
        self._part_since = None
        found = list[Block]()
        while count:
            block = self._got.popleft()
            marks = block.boundaries[:count]
            count -= marks.size
            self._last = max(self._last, int(times_of(block)[marks].max(initial=0)))
            stop = len(block) if count else int(marks[-1]) + 1
            found.append(block.slice(0, stop))
            if stop < len(block):
                self._got.appendleft(block.slice(stop, len(block)))
        return found

    def take_piece(self, size: BatchSize) -> tuple[list[Block], bool]:
        """Of the next transaction: what there is of it and a batch has room for; and whether that is its end."""
        if not self._has_boundary and not self._has_whole(size):
            self._ahead = []
            unit = 1 if size.unit == "items" else size.unit_bytes
            have = int(self._transactions().weights(size).sum()) // unit
            if have < size.count:
                self.get(replace(size, count=size.count - have))
            if not self._got:
                return [], False
        if self._has_boundary:
            return self.take(1), True
        found, self._got = list(self._got), deque()
        return found, False

    def _has_whole(self, size: BatchSize) -> bool:
        """It is small enough to be got as a whole, and that was done."""
        self._look_ahead(size)
        found = self._transactions()
        is_whole = len(found) > int(found.is_open)
        room = size.count if size.unit == "items" else size.bytes
        return is_whole and int(found.weights(size)[0]) <= room and self.get_ahead(1)

    def finished(self) -> list[int]:
        """Batches of which nothing is left here; each is told once."""
        rest = self._got[0].start if self._got else None
        done = list[int]()
        while self._batches and (rest is None or self._batches[0][1] <= rest):
            done.append(self._batches.popleft()[0])
        return done


def _ended(block: Block, edge: Position) -> int:
    """How many transactions have their end in a block and not after a place."""
    own = Position(block.file, 0, epoch=block.epoch).file_key
    ends: NDArray[np.int64] = (block.column("position") + block.column("span"))[block.boundaries]
    if own != edge.file_key:
        return ends.size if own < edge.file_key else 0
    return int(np.searchsorted(ends, edge.offset, "right"))
