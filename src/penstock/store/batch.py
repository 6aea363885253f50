"""The size of a batch that a client asks for, and the batch that it gets."""

from dataclasses import dataclass
from typing import Literal

from penstock.binlog.events.block import Block
from penstock.errors import StoreError
from penstock.model import Position

MEMORY_UNIT = 1024


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The size of a batch: at most this many entries (`items`), or units of memory (`memory`), but at least one entry.
    With `enough_bytes` a batch ends with the block in which it reaches that many bytes, although it might have more.

        size = BatchSize(1000)
    """

    count: int
    unit: Literal["items", "memory"] = "items"
    unit_bytes: int = MEMORY_UNIT
    enough_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise StoreError(f"a batch has at least one of its {self.unit}, not {self.count}")

    @property
    def bytes(self) -> int:
        """The size in bytes when `count` is in units of memory."""
        return self.count * self.unit_bytes

    def is_enough(self, size_bytes: int) -> bool:
        """Return whether a batch of this many bytes ends with its block, because it has reached `enough_bytes`."""
        return self.enough_bytes is not None and size_bytes >= self.enough_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The entries of (start, end] in blocks that are shared, not copied."""

    start: Position
    end: Position
    first_sequence: int
    end_sequence: int
    ack: Position | None  # the last transaction boundary in it; None inside a long transaction
    blocks: tuple[Block, ...]
