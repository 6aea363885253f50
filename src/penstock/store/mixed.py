"""Blocks in memory, and the oldest in files once a client falls behind.

Clients that keep up are served from memory. When the memory is half full, a thread moves the oldest blocks to segment
files, so that a slow client costs disk and not memory, and no put waits for it. When all have acked what lies in the
files, these go. What is in memory is written to the files when the shelf is closed.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from penstock.disk import WriteWarnings
from penstock.errors import StoreError, StoreFullError
from penstock.store.file import FileShelf
from penstock.store.held import Entries, Held
from penstock.store.index import Joined
from penstock.store.ring import Ring

log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 0.5  # for room on the disk


class MixedShelf:
    """`files` must keep nothing that all have acked: what lies in memory is freed after what lies in files, so that it
    is always the next there."""

    def __init__(self, limit_bytes: int, files: FileShelf, *, is_eager: bool = False) -> None:
        """An eager one moves every block at once, for who must know that it outlives a crash."""
        self._is_eager = is_eager
        self.outlives = True
        self.problem = ""
        self.wake: Callable[[], None] = lambda: None
        self._limit_bytes = limit_bytes
        self._files = files
        self._moving = threading.Lock()  # held while a block is on its way, and taken before the next
        self._lock = threading.Lock()
        self._ring: Ring[Held] = Ring()  # of what is in memory
        self.held = Joined(files.held, self._ring, self._lock)
        self._filled = threading.Condition(self._lock)
        # Protected by _lock: everything below, and the files' index.
        self._memory: dict[int, tuple[Held, Entries]] = {}  # by first sequence, in order
        self._bytes = 0
        self._wanted = 0  # by the next put
        self._is_closing = False
        self._failure: StoreError | None = None
        self._warnings = WriteWarnings(log, "blocks stay in memory", "blocks move again")
        self._mover = threading.Thread(target=self._move_all, name="penstock-store-mover", daemon=True)
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
                self._warnings.succeeded()
                self.problem = ""
            except StoreFullError as error:
                self._warnings.failed(error)
                self.problem = str(error)
                self.wake()
                with self._lock:
                    if not self._is_closing:
                        self._filled.wait(_LOOK_AGAIN_S)
            except Exception as error:
                # Without this thread no put would ever have room again: the next one says why.
                log.exception("blocks cannot be moved")
                with self._lock:
                    self._failure = StoreError(f"blocks cannot be moved to files: {error}")
                self.problem = str(self._failure)
                self.wake()
                return

    def _move(self, held: Held, entries: Entries) -> None:
        files = self._files
        with self._moving:
            files.write([(held, entries)])
            with self._lock:
                if self._memory.get(held.first, (None,))[0] is held:
                    files.add(held, entries)
                    self._ring.drop_first()
                    del self._memory[held.first]
                    self._bytes -= held.memory_bytes
                else:
                    files.unwrite(held)  # it was freed, or taken away again, in the meantime
        self.wake()

    # -- the shelf

    def has_room(self, waiting: int, blocks: Sequence[Entries]) -> bool:
        del waiting
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._wanted = sum(one.memory_bytes for one in blocks)
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

    def write(self, blocks: Sequence[tuple[Held, Entries]]) -> None:
        """They are in memory already."""

    def add(self, held: Held, entries: Entries) -> None:
        with self._lock:
            self._ring.append(held)
            self._memory[held.first] = (held, entries)
            self._bytes += held.memory_bytes
            self._wanted = 0
            self._filled.notify_all()

    def entries(self, held: Held) -> Entries:
        with self._lock:
            found = self._memory.get(held.first)
        return found[1] if found is not None and found[0].is_same(held) else self._files.entries(held)

    def is_near(self, sequence: int) -> bool:
        with self._lock:
            first = next(iter(self._memory), None)
            return first is None or sequence >= first

    def free(self, sequence: int) -> Held | None:
        """What is in memory goes after what is in files."""
        with self._lock:
            count = len(self._files.held)
            dropped = self._files.free(sequence)
            count -= len(self._files.held)
            while not len(self._files.held) and len(self._ring) and self._ring[self._ring.head].last <= sequence:
                dropped = self._ring.drop_first()
                del self._memory[dropped.first]
                self._bytes -= dropped.memory_bytes
                count += 1
            self.held.head += count
        return dropped

    @property
    def unsafe(self) -> int | None:
        with self._lock:
            return next(iter(self._memory), None)

    def drop_last(self) -> Entries:
        with self._lock:
            if not len(self._ring):
                return self._files.drop_last()
            held = self._ring.drop_last()
            self._bytes -= held.memory_bytes
            return self._memory.pop(held.first)[1]

    @property
    def size_bytes(self) -> int:
        """Of memory."""
        with self._lock:
            return self._bytes

    def clear(self) -> None:
        with self._moving, self._lock:
            self._memory.clear()
            self._bytes = 0
            self._ring.clear()
            self._files.clear()

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            self._filled.notify_all()
        self._mover.join()
        try:
            for held, entries in list(self._memory.values()):
                self._move(held, entries)
        finally:
            # What could not be written comes from the source's log again.
            self._memory.clear()
            self._bytes = 0
            self._ring.clear()
            self._files.close()
