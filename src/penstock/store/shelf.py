"""Where a store keeps its blocks: the one thing in which memory, file and mixed differ."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.errors import StoreError
from penstock.store.held import Entries, Held

if TYPE_CHECKING:
    from penstock.store.index import Blocks


class BlockGoneError(StoreError):
    """A block was freed between a look at the index and a look at it."""

    @classmethod
    def of(cls, held: Held) -> "BlockGoneError":
        return cls(f"the entries {held.first} to {held.last}, up to {held.end}, are no longer in the store")


class Shelf(Protocol):
    """The store calls all but `write`, `entries` and `close` under its lock."""

    outlives: bool  # the process: then blocks go by whole transactions, since a client comes again with a boundary
    problem: str  # why there is no room, when it is not for clients
    wake: Callable[[], None]  # to be called, without any lock, when there is room again by itself

    @property
    def held(self) -> "Blocks": ...

    def has_room(self, waiting: int, blocks: Sequence[Entries]) -> bool:
        """For all of them, when so many entries are not acked yet. An empty shelf has room for anything: waiting would
        be for ever."""
        ...

    def write(self, blocks: Sequence[tuple[Held, Entries]]) -> None:
        """Bring them to where they will lie, all or none. Raises StoreFullError when there is no room for them after
        all. One thread calls it, and `add` after it."""
        ...

    def add(self, held: Held, entries: Entries) -> None:
        """From now on it is there."""
        ...

    def entries(self, held: Held) -> Entries:
        """May read a file, so it is called without the store's lock and with what the lock gave. Raises
        BlockGoneError."""
        ...

    def is_near(self, sequence: int) -> bool:
        """Whether an entry is where most clients are, and not far behind."""
        ...

    def free(self, sequence: int) -> Held | None:
        """Nobody needs the entries up to this one any more. Gives the last block that went."""
        ...

    @property
    def unsafe(self) -> int | None:
        """Sequence of the first entry that would not outlive a crash, of a shelf that writes at once; None for none."""
        ...

    def drop_last(self) -> Entries:
        """Take the last block away again."""
        ...

    @property
    def size_bytes(self) -> int: ...

    def clear(self) -> None:
        """Nothing of what it holds is needed."""
        ...

    def close(self) -> None: ...
