"""The interface of block storages: the one thing in which memory, file and tiered stores differ."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.errors import StoreError
from penstock.store.block_info import BlockEntries, BlockInfo

if TYPE_CHECKING:
    from penstock.store.block_index import BlockIndex


class BlockGoneError(StoreError):
    """A block was freed after it was found in the index, and before it was read."""

    @classmethod
    def of(cls, info: BlockInfo) -> "BlockGoneError":
        """Return the error for a block that is no longer in the store."""
        return cls(f"the entries {info.first} to {info.last}, up to {info.end}, are no longer in the store")


class BlockStorage(Protocol):
    """Stores the blocks of a store. The store calls all but `write`, `entries` and `close` under its lock."""

    is_persistent: bool  # blocks outlive the process; they are then freed by whole transactions, where clients resume
    problem: str  # why there is no room, when it is not for clients
    wake: Callable[[], None]  # called, without any lock, when there is room again without an ack

    @property
    def blocks(self) -> "BlockIndex":
        """The index of the stored blocks."""
        ...

    def has_room(self, waiting: int, blocks: Sequence[BlockEntries]) -> bool:
        """Return whether there is room for all blocks while `waiting` entries are not acked yet.

        An empty storage has room for anything: waiting would never end.
        """
        ...

    def write(self, blocks: Sequence[tuple[BlockInfo, BlockEntries]]) -> None:
        """Write blocks to where they will be stored, all or none. Raises StoreFullError when there is no room for them
        after all. Only one thread calls it, and calls `add` after it."""
        ...

    def add(self, info: BlockInfo, entries: BlockEntries) -> None:
        """Make a block that was written readable."""
        ...

    def entries(self, info: BlockInfo) -> BlockEntries:
        """Return the entries of a stored block of events. It may read a file, so it is called without the store's lock.
        Raises BlockGoneError."""
        ...

    def is_near(self, sequence: int) -> bool:
        """Return whether an entry is in the fast tier, where most clients read."""
        ...

    def free(self, sequence: int) -> BlockInfo | None:
        """Free the entries up to this one, which no client needs. Return the last block that was freed."""
        ...

    @property
    def first_volatile(self) -> int | None:
        """Return the sequence (number) of the first stored entry that is not durable yet but will be; None when there
        is none to wait for."""
        ...

    def drop_last(self) -> BlockEntries:
        """Remove the newest block of events from the storage, and return its entries (rows, statements, begins and ends
        of transactions)."""
        ...

    @property
    def size_bytes(self) -> int:
        """The bytes that the blocks take: in memory or, when all of them are in files, on the disk."""
        ...

    def clear(self) -> None:
        """Remove all blocks."""
        ...

    def close(self) -> None:
        """Close the storage; blocks in files can be read by the next process that opens it."""
        ...
