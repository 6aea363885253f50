"""Blocks in memory."""

from collections.abc import Callable, Sequence

from penstock.store.held import Entries, Held
from penstock.store.ring import Ring
from penstock.store.shelf import BlockGoneError


class MemoryShelf:
    """Holds `limit_bytes` bytes at the most, and with `slots` also so many entries. A block that alone passes a limit
    has room when there is nothing else."""

    def __init__(self, limit_bytes: int, *, slots: int | None = None) -> None:
        Ring[None](slots or 1)  # refuses what is no power of two
        self._limit_bytes, self._slots = limit_bytes, slots
        self.held: Ring[Held] = Ring()
        self.outlives = False
        self.problem = ""
        self.wake: Callable[[], None] = lambda: None
        self._entries: dict[int, tuple[Held, Entries]] = {}  # by first sequence
        self._bytes = 0

    def has_room(self, waiting: int, blocks: Sequence[Entries]) -> bool:
        if not len(self.held):
            return True
        size = self._bytes + sum(one.memory_bytes for one in blocks)
        count = waiting + sum(map(len, blocks))
        return size <= self._limit_bytes and (self._slots is None or count <= self._slots)

    def write(self, blocks: Sequence[tuple[Held, Entries]]) -> None:
        """They are in memory already."""

    def add(self, held: Held, entries: Entries) -> None:
        self.held.append(held)
        self._entries[held.first] = held, entries
        self._bytes += held.memory_bytes

    def is_near(self, sequence: int) -> bool:
        del sequence
        return True

    def entries(self, held: Held) -> Entries:
        found = self._entries.get(held.first)
        if found is None or not found[0].is_same(held):
            raise BlockGoneError.of(held)
        return found[1]

    def free(self, sequence: int) -> Held | None:
        dropped = None
        while len(self.held) and self.held[self.held.head].last <= sequence:
            dropped = self.held.drop_first()
            self._forget(dropped)
        return dropped

    @property
    def unsafe(self) -> int | None:
        """It is not asked to outlive anything."""
        return None

    def drop_last(self) -> Entries:
        held = self.held.drop_last()
        _, entries = self._entries[held.first]
        self._forget(held)
        return entries

    def _forget(self, held: Held) -> None:
        del self._entries[held.first]
        self._bytes -= held.memory_bytes

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def clear(self) -> None:
        self.held.clear()
        self._entries.clear()
        self._bytes = 0

    def close(self) -> None:
        self.clear()
