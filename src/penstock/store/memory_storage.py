"""The storage of blocks in memory."""

from collections.abc import Callable, Sequence

from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.block_storage import BlockGoneError
from penstock.store.ring import Ring


class MemoryStorage:
    """Holds blocks in memory: at most `limit_bytes` bytes, and with `slots` at most that many entries. A block that
    exceeds a limit by itself is accepted when the storage is empty.

    storage = MemoryStorage(64 << 20)
    """

    def __init__(self, limit_bytes: int, *, slots: int | None = None) -> None:
        Ring[None](slots or 1)  # refuses what is no power of two
        self._limit_bytes, self._slots = limit_bytes, slots
        self.blocks: Ring[BlockInfo] = Ring()
        self.is_persistent = False
        self.problem = ""
        self.wake: Callable[[], None] = lambda: None
        self._entries: dict[int, tuple[BlockInfo, BlockEntries]] = {}  # by first sequence
        self._bytes = 0

    def has_room(self, waiting: int, blocks: Sequence[BlockEntries]) -> bool:
        """Return whether the blocks fit into the limits while `waiting` entries are not acked yet; an empty storage has
        room for anything."""
        if not len(self.blocks):
            return True
        size = self._bytes + sum(block.memory_bytes for block in blocks)
        count = waiting + sum(map(len, blocks))
        return size <= self._limit_bytes and (self._slots is None or count <= self._slots)

    def write(self, blocks: Sequence[tuple[BlockInfo, BlockEntries]]) -> None:
        """Do nothing: blocks are in memory already."""

    def add(self, info: BlockInfo, entries: BlockEntries) -> None:
        """Store a block in memory."""
        self.blocks.append(info)
        self._entries[info.first] = info, entries
        self._bytes += info.memory_bytes

    def is_near(self, sequence: int) -> bool:
        """Return True: all blocks are in memory."""
        del sequence
        return True

    def entries(self, info: BlockInfo) -> BlockEntries:
        """Return the entries of a block. Raises BlockGoneError when it was freed."""
        stored = self._entries.get(info.first)
        if stored is None or not stored[0].is_same(info):
            raise BlockGoneError.of(info)
        return stored[1]

    def free(self, sequence: int) -> BlockInfo | None:
        """Free the blocks whose entries all lie at or before this sequence, and return the last one that was freed."""
        dropped = None
        while len(self.blocks) and self.blocks[self.blocks.head].last <= sequence:
            dropped = self.blocks.drop_first()
            self._forget(dropped)
        return dropped

    @property
    def first_volatile(self) -> int | None:
        """Return None: entries in memory never become durable, so there is none that a caller could wait for."""
        return None

    def drop_last(self) -> BlockEntries:
        """Remove the newest block of events from memory, and return its entries."""
        info = self.blocks.drop_last()
        _, entries = self._entries[info.first]
        self._forget(info)
        return entries

    def _forget(self, info: BlockInfo) -> None:
        del self._entries[info.first]
        self._bytes -= info.memory_bytes

    @property
    def size_bytes(self) -> int:
        """The memory that the blocks take, in bytes."""
        return self._bytes

    def clear(self) -> None:
        """Remove all blocks."""
        self.blocks.clear()
        self._entries.clear()
        self._bytes = 0

    def close(self) -> None:
        """Remove all blocks: nothing outlives the process."""
        self.clear()
