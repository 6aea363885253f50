"""The tiered storage: blocks in memory, and the oldest in files once a client falls behind.

Clients that keep up are served from memory. When the memory is half full, a thread moves the oldest blocks to segment
files, so that a slow client costs disk and not memory, and no put waits for it. Files that all clients have acked are
deleted. What is in memory is written to the files when the storage is closed.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from penstock.disk import WriteWarnings
from penstock.errors import StoreError, StoreFullError
from penstock.store.block_index import TieredIndex
from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.file_storage import FileStorage
from penstock.store.ring import Ring

log = logging.getLogger(__name__)
_DISK_RETRY_S = 0.5  # between two attempts to write to a full disk


class TieredStorage:
    """Stores blocks in memory, and moves the oldest to files. `files` must not retain what all clients have acked:
    blocks in memory always follow those in files without a gap.

        storage = TieredStorage(64 << 20, FileStorage(folder))
        store = EventStore(storage, start)
    """

    def __init__(self, limit_bytes: int, files: FileStorage, *, is_eager: bool = False) -> None:
        """With `is_eager` every block is moved to files at once, so that it can be known which blocks outlive a
        crash."""
        self._is_eager = is_eager
        self.is_persistent = True
        self.problem = ""
        self.wake: Callable[[], None] = lambda: None
        self._limit_bytes = limit_bytes
        self._files = files
        self._moving = threading.Lock()  # held while a block is on its way, and taken before the next
        self._lock = threading.Lock()
        self._ring: Ring[BlockInfo] = Ring()  # of what is in memory
        self.blocks = TieredIndex(files.blocks, self._ring, self._lock)
        self._filled = threading.Condition(self._lock)
        # Protected by _lock: everything below, and the files' index.
        self._memory: dict[int, tuple[BlockInfo, BlockEntries]] = {}  # by first sequence, in order
        self._bytes = 0
        self._wanted = 0  # by the next put
        self._is_closing = False
        self._failure: StoreError | None = None
        self._warnings = WriteWarnings(
            log,
            f"blocks not moved to files destination={files.destination}",
            f"blocks moved to files again destination={files.destination}",
        )
        name = f"penstock-store-mover-{files.destination}"
        self._mover = threading.Thread(target=self._move_all, name=name, daemon=True)
        self._mover.start()

    # -- moving

    def _move_all(self) -> None:
        while True:
            with self._lock:
                while not (self._is_closing or self._is_crowded):
                    self._filled.wait()
                if self._is_closing:
                    return
                oldest = next(iter(self._memory.values()))
            try:
                self._move(*oldest)
                self._warnings.report_success()
                self.problem = ""
            except StoreFullError as error:
                self._warnings.report_failure(error)
                self.problem = str(error)
                self.wake()
                with self._lock:
                    if not self._is_closing:
                        self._filled.wait(_DISK_RETRY_S)
            except Exception as error:
                # Without this thread no put would ever have room again: the next one says why.
                log.exception(
                    "moving blocks of the store from memory to files failed destination=%s", self._files.destination
                )
                with self._lock:
                    self._failure = StoreError(f"blocks cannot be moved to files: {error}")
                self.problem = str(self._failure)
                self.wake()
                return

    def _move(self, info: BlockInfo, entries: BlockEntries) -> None:
        files = self._files
        with self._moving:
            files.write([(info, entries)])
            with self._lock:
                if self._memory.get(info.first, (None,))[0] is info:
                    files.add(info, entries)
                    self._ring.drop_first()
                    del self._memory[info.first]
                    self._bytes -= info.memory_bytes
                else:
                    files.unwrite(info)  # it was freed, or taken away again, in the meantime
        self.wake()

    # -- the storage

    def has_room(self, waiting: int, blocks: Sequence[BlockEntries]) -> bool:
        """Return whether the blocks fit into the memory, which has room for anything when it is empty; if they do not,
        older blocks are moved to files. Raises StoreError when blocks can no longer be moved."""
        del waiting
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._wanted = sum(block.memory_bytes for block in blocks)
            if not self._memory or self._bytes + self._wanted <= self._limit_bytes:
                self.problem = ""  # nothing waits for the disk
                return True
            self._filled.notify_all()
            return False

    @property
    def _is_crowded(self) -> bool:
        is_over = self._bytes > self._limit_bytes // 2 or self._bytes + self._wanted > self._limit_bytes
        is_over = is_over or self._is_eager
        return bool(self._memory) and is_over

    def write(self, blocks: Sequence[tuple[BlockInfo, BlockEntries]]) -> None:
        """Do nothing: blocks are in memory already, and are moved to files later."""

    def add(self, info: BlockInfo, entries: BlockEntries) -> None:
        """Store a block in memory, from where it may be moved to files later."""
        with self._lock:
            self._ring.append(info)
            self._memory[info.first] = (info, entries)
            self._bytes += info.memory_bytes
            self._wanted = 0
            self._filled.notify_all()

    def entries(self, info: BlockInfo) -> BlockEntries:
        """Return the entries of a block, from memory or from its file. Raises BlockGoneError when it was freed."""
        with self._lock:
            stored = self._memory.get(info.first)
        return stored[1] if stored is not None and stored[0].is_same(info) else self._files.entries(info)

    def is_near(self, sequence: int) -> bool:
        """Return whether an entry is not older than what is in memory; True for any when no block is there."""
        with self._lock:
            first = next(iter(self._memory), None)
            return first is None or sequence >= first

    def free(self, sequence: int) -> BlockInfo | None:
        """Free blocks in files first, then those in memory."""
        with self._lock:
            count = len(self._files.blocks)
            dropped = self._files.free(sequence)
            count -= len(self._files.blocks)
            while not len(self._files.blocks) and len(self._ring) and self._ring[self._ring.head].last <= sequence:
                dropped = self._ring.drop_first()
                del self._memory[dropped.first]
                self._bytes -= dropped.memory_bytes
                count += 1
            self.blocks.head += count
        return dropped

    @property
    def first_volatile(self) -> int | None:
        """Return the sequence (number) of the first entry that is only in memory yet, which a crash would lose; None
        when all are in files."""
        with self._lock:
            return next(iter(self._memory), None)

    def drop_last(self) -> BlockEntries:
        """Remove the newest block of events, from memory or from the segment files, and return its entries."""
        with self._lock:
            if not len(self._ring):
                return self._files.drop_last()
            info = self._ring.drop_last()
            self._bytes -= info.memory_bytes
            return self._memory.pop(info.first)[1]

    @property
    def size_bytes(self) -> int:
        """The bytes of the blocks in memory."""
        with self._lock:
            return self._bytes

    def clear(self) -> None:
        """Remove all blocks from memory and files."""
        with self._moving, self._lock:
            self._memory.clear()
            self._bytes = 0
            self._ring.clear()
            self._files.clear()

    def close(self) -> None:
        """Stop moving blocks, write those that are in memory to files, and close the files."""
        with self._lock:
            self._is_closing = True
            self._filled.notify_all()
        self._mover.join()
        try:
            for info, entries in list(self._memory.values()):
                self._move(info, entries)
        finally:
            # What could not be written is captured from the source's log again.
            self._memory.clear()
            self._bytes = 0
            self._ring.clear()
            self._files.close()
