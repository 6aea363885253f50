"""The queue of one member of a group, for one client.

The queue peeks into the member's store first, then gets exactly the transactions that are delivered, so that acking
what was delivered acks nothing else. Two things cannot be peeked: what lies before the store, and the end of a
transaction that is larger than the store. Those are got as they come, and wait here until all of them were delivered.
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
from penstock.group.timeline import NEVER, PendingTransactions
from penstock.group.transactions import Transactions, commit_times, join_column
from penstock.instance.clients import Clients
from penstock.model import Position
from penstock.store import BatchSize, EventStore

_MIN_LOOKAHEAD_BYTES, _MAX_LOOKAHEAD_BYTES, _ENTRY_BYTES = 1 << 16, 1 << 20, 1 << 8  # how far it looks ahead
_MAX_TRANSACTION_BYTES = 1 << 23  # beyond that a transaction is not planned at as a whole
_ONE_ENTRY = BatchSize(1)


class Member(Protocol):
    """What a group calls of each of its member instances."""

    @property
    def state(self) -> InstanceState:
        """The state of the member's capture."""
        ...

    @property
    def failure(self) -> PenstockError | None:
        """The error with which the member has failed; None while it has not."""
        ...

    @property
    def store(self) -> EventStore:
        """The store from which the group reads the member's transactions."""
        ...

    @property
    def clients(self) -> Clients:
        """The member's clients, by which the group gets, acks and rolls back."""
        ...

    def start(self) -> None:
        """Start the member."""
        ...

    def stop(self) -> None:
        """Stop the member."""
        ...


class MemberQueue:
    """The transactions of one member that wait to be delivered to one client of a group. One thread at a time may use
    it."""

    def __init__(self, member: Member, client_id: int, hold_s: float, clock: Callable[[], float]) -> None:
        self._member, self._client, self._hold_s, self._clock = member, client_id, hold_s, clock
        self.reset()

    def reset(self) -> None:
        """Forget everything that was got: after a rollback it is redelivered."""
        self._got_until: Position | None = None  # the end of what was got
        self._got: deque[Block] = deque()  # got and not delivered
        self._batches: deque[tuple[int, Position]] = deque()  # ids and ends of the batches that were got
        self._ahead: list[Block] = []  # read from the store after `_got_until`, and not got
        self._last = 0  # commit time of the last transaction that was delivered
        self._known: deque[tuple[Position, float]] = deque()  # the end of the store, and when it was seen there
        self._part_since: float | None = None  # since when an incomplete transaction waits for its end

    # -- peeking

    def collect_pending(self, size: BatchSize) -> PendingTransactions:
        """Return the member's transactions that wait, and how long the other members need to wait for it."""
        latest, now = self._member.store.latest, self._clock()  # before the store is read up to there
        if not self._known or self._known[-1][0] < latest:
            self._known.append((latest, now))
        is_more = self._look_ahead(size)
        transactions = self._transactions()
        times = np.maximum(np.maximum.accumulate(transactions.times), self._last)
        last = int(times[-1]) if times.size else self._last
        can_send_part = transactions.is_open and self._can_send_part(transactions, size)
        if transactions.is_open and not can_send_part:
            transactions, times = transactions.without_last, times[:-1]
        future = NEVER
        if is_more or self._member.state is InstanceState.FOLLOWING:
            future = last if is_more else max(last, latest.timestamp * 1_000_000)
        overdue = self._count_overdue(now) + can_send_part
        return PendingTransactions(
            times, transactions.entries, transactions.sizes, transactions.are_statements, can_send_part, future, overdue
        )

    @property
    def has_more(self) -> bool:
        """Return whether anything can be delivered, be it a part of a transaction."""
        return bool(self._got or self._ahead) or self._member.clients.wait(self._client, _ONE_ENTRY, 0)

    def _count_overdue(self, now: float) -> int:
        """Return how many complete transactions have waited for `hold_s`, and need not wait for other members any
        longer."""
        while len(self._known) > 1 and self._known[1][1] <= now - self._hold_s:
            self._known.popleft()
        if self._known[0][1] > now - self._hold_s:
            return 0
        edge = self._known[0][0]
        return sum(_count_ended(block, edge) for block in (*self._got, *self._ahead))

    def _look_ahead(self, size: BatchSize) -> bool:
        """Read what follows in the member's store, without getting it; return whether there is still more."""
        if self._got_until is None and not self.get_batch(_ONE_ENTRY):
            return False
        store, at = self._member.store, self._ahead[-1].end if self._ahead else self._got_until
        enough = size.bytes if size.unit == "memory" else size.count * _ENTRY_BYTES
        enough = min(max(enough, _MIN_LOOKAHEAD_BYTES), _MAX_LOOKAHEAD_BYTES)
        if at is None or sum(block.size_bytes for block in self._ahead) >= enough:
            return True
        end = store.find_batch_end(at, enough, 0)
        if end <= at:
            self._wait_for_end(size)
            return False
        is_small = end.file_key != at.file_key or end.offset - at.offset <= _MAX_TRANSACTION_BYTES
        blocks = store.read(at, end) if is_small else None
        if blocks is not None:
            self._ahead += blocks
            self._part_since = None
        elif not self._ahead and not self._has_boundary and not self._fills_batch(self._transactions(), size):
            self.get_batch(size)
        return blocks is None or store.latest > end

    @property
    def _has_boundary(self) -> bool:
        """Return whether the end of a transaction is among what was got."""
        return any(block.boundaries.size for block in self._got)

    def _wait_for_end(self, size: BatchSize) -> None:
        """Wait for the end of a transaction that is not in the store yet. If it does not come in time, get the part
        that is there."""
        put, got, _ = self._member.store.sequences(str(self._client))
        has_part = put > got and not self._ahead
        if not has_part and not self._transactions().is_open:
            self._part_since = None
            return
        if self._part_since is None:
            self._part_since = self._clock()
        if has_part and self._has_waited_for_end and not self._has_boundary:
            self.get_batch(size)

    @property
    def _has_waited_for_end(self) -> bool:
        """Return whether the end of an incomplete transaction was waited for long enough."""
        return self._part_since is not None and self._clock() - self._part_since >= self._hold_s

    def _can_send_part(self, transactions: Transactions, size: BatchSize) -> bool:
        """Return whether a part of a transaction may be delivered without its end."""
        return self._has_waited_for_end or (len(transactions) == 1 and self._fills_batch(transactions, size))

    def _fills_batch(self, transactions: Transactions, size: BatchSize) -> bool:
        """Return whether the first transaction alone fills a batch of this size."""
        weights = transactions.weights(size)
        return bool(weights.size) and int(weights[0]) >= (size.count if size.unit == "items" else size.bytes)

    def _transactions(self) -> Transactions:
        """Return what is known of all transactions that were got or peeked at."""
        return Transactions.from_blocks([*self._got, *self._ahead])

    # -- taking

    def get_batch(self, size: BatchSize) -> bool:
        """Get the member's next batch, whatever is in it; return whether there was one."""
        got = self._member.clients.get(self._client, size, 0)
        if got is None:
            return False
        batch_id, batch = got
        self._got_until = batch.end
        self._got.extend(block for block in batch.blocks if len(block))
        self._batches.append((batch_id, batch.end))
        self._ahead = [rest for block in self._ahead if len(rest := block.between(batch.end, block.end))]
        return True

    def get_planned(self, count: int) -> bool:
        """Get as many transactions as were planned, exactly as they were peeked at; False if the member delivered
        something else."""
        missing = count - sum(block.boundaries.size for block in self._got)
        if missing <= 0:
            return True
        last = int(np.flatnonzero(join_column(self._ahead, "boundary"))[missing - 1])
        planned = Transactions.from_blocks(self._ahead)
        if self.get_batch(BatchSize(int(planned.entries[:missing].sum()))) and self._got_until == planned.end_of_event(
            last
        ):
            return True
        self._ahead = []
        return False

    def take_transactions(self, count: int) -> list[Block]:
        """Remove this many transactions from what was got, and return their blocks."""
        self._part_since = None
        taken = list[Block]()
        while count:
            block = self._got.popleft()
            marks = block.boundaries[:count]
            count -= marks.size
            self._last = max(self._last, int(commit_times(block)[marks].max(initial=0)))
            stop = len(block) if count else int(marks[-1]) + 1
            taken.append(block.slice(0, stop))
            if stop < len(block):
                self._got.appendleft(block.slice(stop, len(block)))
        return taken

    def take_part(self, size: BatchSize) -> tuple[list[Block], bool]:
        """Remove as much of the next transaction as a batch has room for; return its blocks, and whether they end the
        transaction."""
        if not self._has_boundary and not self._get_whole(size):
            self._ahead = []
            unit = 1 if size.unit == "items" else size.unit_bytes
            have = int(self._transactions().weights(size).sum()) // unit
            if have < size.count:
                self.get_batch(replace(size, count=size.count - have))
            if not self._got:
                return [], False
        if self._has_boundary:
            return self.take_transactions(1), True
        taken, self._got = list(self._got), deque()
        return taken, False

    def _get_whole(self, size: BatchSize) -> bool:
        """Get the next transaction from the member into this queue, if it is complete and fits into one batch; return
        whether it was."""
        self._look_ahead(size)
        transactions = self._transactions()
        is_whole = len(transactions) > int(transactions.is_open)
        room = size.count if size.unit == "items" else size.bytes
        return is_whole and int(transactions.weights(size)[0]) <= room and self.get_planned(1)

    def take_finished(self) -> list[int]:
        """Return the ids of the member's batches that were delivered completely since the last call: acking them acks
        nothing else."""
        rest = self._got[0].start if self._got else None
        done = list[int]()
        while self._batches and (rest is None or self._batches[0][1] <= rest):
            done.append(self._batches.popleft()[0])
        return done


def _count_ended(block: Block, edge: Position) -> int:
    """Return how many transactions end in a block at or before a position."""
    own = Position(block.file, 0, epoch=block.epoch).file_key
    ends: NDArray[np.int64] = (block.column("position") + block.column("span"))[block.boundaries]
    if own != edge.file_key:
        return ends.size if own < edge.file_key else 0
    return int(np.searchsorted(ends, edge.offset, "right"))
