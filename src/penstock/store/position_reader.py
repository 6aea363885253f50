"""Reads of the store by log position, for consumers that keep their own position."""

from contextlib import suppress

from penstock.binlog.events.block import Block
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.block_storage import BlockGoneError, BlockStorage
from penstock.store.cut import end_after
from penstock.store.store_index import StoreIndex
from penstock.store.store_lock import StoreLock

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
        """Return the oldest position from which `read` can start, in the log that `position` belongs to."""
        with self._lock:
            return min(self._index.origin_for(position).position, self._index.boundary.position)

    @property
    def latest(self) -> Position:
        """The last transaction boundary that was put."""
        with self._lock:
            return self._index.boundary.position

    def end_after(self, start: Position, max_bytes: int, timeout_s: float = 0) -> Position:
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
                return end_after(start, blocks, self._storage.entries, max_bytes)
        raise StoreError(f"what follows {start} went {TRIES} times while it was looked into")

    def read(self, start: Position, end: Position) -> tuple[Block, ...] | None:
        """Return the entries of (start, end], or None when the store does not have all of them."""
        with self._lock:
            self._lock.check()
            if start < self._index.origin_for(start).position or end > self._index.boundary.position:
                return None
            blocks = self._storage.blocks
            wanted = [info for info in blocks.since(blocks.find(lambda info: info.end <= start)) if info.start < end]
        try:
            parts = [self._storage.entries(info).block.between(start, end) for info in wanted]
        except BlockGoneError:
            return None  # acked in the meantime
        return tuple(part for part in parts if len(part))
