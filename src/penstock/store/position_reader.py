"""Reads of the store by log position, for consumers that keep their own position."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from penstock.binlog.events.block import Block
from penstock.errors import BlocksFreedError, StoreError
from penstock.model import Position
from penstock.store.block_storage import BlockGoneError, BlockStorage
from penstock.store.cut import find_batch_end
from penstock.store.store_index import StoreIndex
from penstock.store.store_lock import StoreLock

EAGER_BYTES = 64 << 20  # a range up to this size is held while it is read, whatever is freed meanwhile
TRIES = 100  # to look into blocks that others free at the same time


class PositionReader:
    """Answers what the store has after a position. Any thread may call it; no client is registered for it."""

    def __init__(self, lock: StoreLock, storage: BlockStorage, index: StoreIndex) -> None:
        self._lock, self._storage = lock, storage
        self._index = index  # protected by the lock

    @property
    def first(self) -> Position:
        """The oldest position from which `read` can start; inside the only transaction there is, its beginning."""
        with self._lock:
            return min(self._index.origin.position, self._index.boundary.position)

    def first_for(self, position: Position) -> Position:
        """Return the oldest position from which `read` can start. After a failover the store has events of two binlogs:
        only the one that `position` belongs to counts."""
        with self._lock:
            return min(self._index.origin_for(position).position, self._index.boundary.position)

    @property
    def latest(self) -> Position:
        """The last transaction boundary that was put."""
        with self._lock:
            return self._index.boundary.position

    def find_batch_end(self, start: Position, max_bytes: int, timeout_s: float = 0) -> Position:
        """Return where a batch that begins at `start` should end; `start` itself when nothing was put in time.

        Before what the store has, that is where the store begins: only the source's log has what lies between.
        """
        index = self._index
        for _ in range(TRIES):
            with self._lock:
                self._lock.wait(lambda: index.boundary.position > start, timeout_s)
                if index.boundary.position <= start:
                    return start
                origin = index.origin_for(start).position
                if start < origin:
                    return min(origin, index.boundary.position)
                blocks = index.blocks_after(start, max_bytes)
                if not blocks:
                    return index.boundary.position  # the log continues elsewhere, and nothing of it was put yet
            with suppress(BlockGoneError):
                return find_batch_end(start, blocks, self._storage.entries, max_bytes)
        raise StoreError(f"what follows {start} went {TRIES} times while it was looked into")

    def read(self, start: Position, end: Position) -> Iterable[Block] | None:
        """Return the entries of (start, end], or None when the store does not have all of them.

        A large range is read block by block, so that it is never in memory as a whole: it can be iterated over once,
        and BlocksFreedError says that the rest was freed meanwhile.
        """
        with self._lock:
            self._lock.check()
            if start < self._index.origin_for(start).position or end > self._index.boundary.position:
                return None
            blocks = self._storage.blocks
            wanted = [
                info for info in blocks.iter_from(blocks.find(lambda info: info.end <= start)) if info.start < end
            ]
        parts = (part for info in wanted if len(part := self._storage.entries(info).block.between(start, end)))
        try:
            if sum(info.size for info in wanted) <= EAGER_BYTES:
                return tuple(parts)
            first = next(parts, None)
        except BlockGoneError:
            return None  # acked in the meantime
        return () if first is None else _read_on(first, parts)


def _read_on(first: Block, parts: Iterator[Block]) -> Iterator[Block]:
    yield first
    try:
        yield from parts
    except BlockGoneError:
        raise BlocksFreedError("a range of the log was freed from the store while it was read: read it again") from None
