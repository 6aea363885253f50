"""A ring of blocks in memory: put → get → ack.

Three sequences count entries (one per event) from -1: `ack ≤ get ≤ put`. A put waits while the ring holds its limit
of bytes or slots; an ack frees whole blocks. Batches end where the log is between two transactions, so a consumer
never sees half of one. A transaction larger than the ring makes it grow, because nothing could ever free room.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.binlog.events.block import Block
from penstock.errors import PenstockError, StoreError
from penstock.model import Position

SLOTS = 1 << 14


@dataclass(frozen=True, slots=True)
class Batch:
    """What one get returned: the entries of (start, end], in blocks that are shared, not copied."""

    start: Position
    end: Position
    end_sequence: int
    blocks: tuple[Block, ...]


class MemoryStore:
    """One reader thread puts, any thread gets, acks and reads."""

    def __init__(
        self, start: Position, limit_bytes: int, *, slots: int = SLOTS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if slots < 1 or slots & (slots - 1):
            raise StoreError(f"the ring needs a power of two of slots, not {slots}")
        self._limit_bytes, self._limit_slots = limit_bytes, slots
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # Protected by _lock: everything below.
        self._ring: list[Block | None] = [None] * slots
        self._first_sequence = np.zeros(slots, np.int64)
        self._head = 0  # number of the oldest block held
        self._tail = 0  # number of the next block to put
        self._bytes = 0
        self._put = self._get = self._ack = -1
        self._origin = start  # everything before it has been acked, or was never here
        self._get_position = self._ack_position = self._boundary = start
        self._boundary_sequence = -1
        self._failure: PenstockError | None = None

    # -- capture's side

    def put(self, block: Block, timeout_s: float | None = None) -> bool:
        """Add a block; False when there was no room in time. Waits for ever without a timeout."""
        with self._lock:
            if not self._wait(lambda: self._has_room(block), timeout_s):
                return False
            self._place(block)
            self._changed.notify_all()
            return True

    def discard_incomplete(self) -> Position:
        """Drop entries after the last transaction boundary; gives that boundary, where capture goes on."""
        with self._lock:
            while self._tail > self._head:
                block = self._block(self._tail - 1)
                boundaries = block.boundaries
                keep = int(boundaries[-1]) + 1 if boundaries.size else 0
                if keep == len(block):
                    break
                self._tail -= 1
                self._bytes -= block.size_bytes
                self._ring[self._slot(self._tail)] = None
                self._put -= len(block)
                if keep:
                    self._place(block.slice(0, keep))
                    break
            self._free()
            return self._boundary

    def fail(self, error: PenstockError) -> None:
        """Every waiting or later put, get and read raises this error; what was read can still be acked."""
        with self._lock:
            self._failure = error
            self._changed.notify_all()

    # -- the consumers' side

    def get(self, max_bytes: int, timeout_s: float = 0) -> Batch | None:
        """The next entries, at least one transaction, at most about `max_bytes`; None when nothing came in time."""
        with self._lock:
            if not self._wait(lambda: self._boundary_sequence > self._get, timeout_s):
                return None
            start = self._get_position
            end, sequence = self._end_after(start, max_bytes)
            self._get, self._get_position = sequence, end
            return Batch(start, end, sequence, self._between(start, end))

    def ack(self, end: Position) -> None:
        """All up to the last boundary at or before `end` is done and may be freed. What was not put is refused."""
        with self._lock:
            if end > self._boundary:
                raise StoreError(f"cannot ack {end}: the store has transactions up to {self._boundary} only")
            done = self._boundary_before(end)
            if done is None:
                return
            self._ack_position, self._ack = done
            if self._get < self._ack:
                self._get, self._get_position = self._ack, self._ack_position
            self._free()
            self._changed.notify_all()

    def rollback(self) -> None:
        """The next get starts again after the last ack."""
        with self._lock:
            self._get, self._get_position = self._ack, self._ack_position
            self._changed.notify_all()

    # -- by position, for consumers that keep their own place

    @property
    def first(self) -> Position:
        """The oldest position from which `read` can start."""
        with self._lock:
            return self._origin

    @property
    def latest(self) -> Position:
        """The last transaction boundary that was put."""
        with self._lock:
            return self._boundary

    @property
    def sequences(self) -> tuple[int, int, int]:
        """put, get, ack."""
        with self._lock:
            return self._put, self._get, self._ack

    @property
    def size_bytes(self) -> int:
        with self._lock:
            return self._bytes

    def end_after(self, start: Position, max_bytes: int, timeout_s: float = 0) -> Position:
        """Where a batch that begins at `start` should end; `start` itself when nothing came in time.

        Before what the store holds, that is where the store begins: only the source's log has what lies between.
        """
        with self._lock:
            if start < self._origin:
                return self._origin
            self._wait(lambda: self._boundary > start, timeout_s)
            if self._boundary <= start:
                return start
            return self._end_after(start, max_bytes)[0]

    def read(self, start: Position, end: Position) -> tuple[Block, ...] | None:
        """The entries of (start, end], or None when they are not, or no longer, all here."""
        with self._lock:
            self._raise_failure()
            if start < self._origin or end > self._boundary:
                return None
            return self._between(start, end)

    # -- under the lock

    def _wait(self, ready: Callable[[], bool], timeout_s: float | None) -> bool:
        deadline = None if timeout_s is None else self._clock() + timeout_s
        while True:
            self._raise_failure()
            if ready():
                return True
            left = None if deadline is None else deadline - self._clock()
            if left is not None and left <= 0:
                return False
            self._changed.wait(left)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _has_room(self, block: Block) -> bool:
        if self._boundary_sequence <= self._ack:
            return True  # nothing here can be acked yet: waiting would be for ever
        return self._tail - self._head < self._limit_slots and self._bytes + block.size_bytes <= self._limit_bytes

    def _place(self, block: Block) -> None:
        if self._tail - self._head == len(self._ring):
            self._grow()
        slot = self._slot(self._tail)
        self._ring[slot] = block
        self._first_sequence[slot] = self._put + 1
        boundaries = block.boundaries
        if boundaries.size:
            last = int(boundaries[-1])
            self._boundary, self._boundary_sequence = block.end_of(last), self._put + 1 + last
        self._tail += 1
        self._bytes += block.size_bytes
        self._put += len(block)

    def _grow(self) -> None:
        """Twice the slots; every block keeps its number."""
        held = [(self._block(number), self._first_sequence[self._slot(number)]) for number in self._numbers]
        self._ring = [None] * (2 * len(self._ring))
        self._first_sequence = np.zeros(len(self._ring), np.int64)
        for number, (block, first) in zip(self._numbers, held, strict=True):
            self._ring[self._slot(number)], self._first_sequence[self._slot(number)] = block, first

    def _free(self) -> None:
        """Drop the blocks that lie before the last ack; a read can then start at that ack, not between two blocks."""
        while self._tail > self._head and self._block(self._head).end <= self._ack_position:
            self._bytes -= self._block(self._head).size_bytes
            self._ring[self._slot(self._head)] = None
            self._head += 1
            self._origin = self._ack_position

    @property
    def _numbers(self) -> range:
        return range(self._head, self._tail)

    def _slot(self, number: int) -> int:
        return number & (len(self._ring) - 1)

    def _block(self, number: int) -> Block:
        block = self._ring[self._slot(number)]
        if block is None:
            raise StoreError(f"block {number} is not in the ring ({self._head} to {self._tail})")
        return block

    def _number_at(self, position: Position) -> int:
        """Number of the first block that reaches past `position`; blocks are in log order."""
        low, high = self._head, self._tail
        while low < high:
            middle = (low + high) // 2
            if self._block(middle).end <= position:
                low = middle + 1
            else:
                high = middle
        return low

    def _end_after(self, start: Position, max_bytes: int) -> tuple[Position, int]:
        """The last boundary within `max_bytes` after `start`, or the first boundary if that one is farther."""
        total, best = 0, None
        for number in range(self._number_at(start), self._tail):
            whole = self._block(number)
            block = whole.between(start, whole.end)
            skipped = len(whole) - len(block)
            boundaries = block.boundaries
            _, starts, sizes = block.raw
            if boundaries.size:
                reach = total + starts[boundaries] + sizes[boundaries] - starts[0]
                fitting = boundaries[reach <= max_bytes]
                if fitting.size or best is None:
                    last = int(fitting[-1] if fitting.size else boundaries[0])
                    sequence = int(self._first_sequence[self._slot(number)]) + skipped + last
                    best = block.end_of(last), sequence
            total += int(sizes.sum())
            if best is not None and total >= max_bytes:
                break
        if best is None:
            raise StoreError(f"there is no transaction boundary after {start}")
        return best

    def _boundary_before(self, end: Position) -> tuple[Position, int] | None:
        """The last boundary that is not after `end`, with its sequence; None when it is acked already."""
        for number in range(min(self._number_at(end), self._tail - 1), self._head - 1, -1):
            block = self._block(number)
            if block.end <= self._ack_position:
                return None
            boundaries = block.between(block.start, end).boundaries
            if boundaries.size:
                last = int(boundaries[-1])
                found = block.end_of(last), int(self._first_sequence[self._slot(number)]) + last
                return found if found[1] > self._ack else None
        return None

    def _between(self, start: Position, end: Position) -> tuple[Block, ...]:
        found: list[Block] = []
        for number in range(self._number_at(start), self._tail):
            block = self._block(number)
            if block.start >= end:
                break
            part = block.between(start, end)
            if len(part):
                found.append(part)
        return tuple(found)
