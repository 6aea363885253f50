"""Where blocks of a log come from."""

from collections.abc import Iterator
from typing import Protocol

from penstock.binlog.events.block import Block


class BlockSource(Protocol):
    """A log that is read as blocks, in order: iterate over it. `done` of `total` bytes have been read; a total of 0 is
    not known.
    """

    done: int
    total: int

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks of the log in order."""
        ...

    def earlier(self) -> Iterator[Block]:
        """Yield the part of the log before the first block, if it can be read: its DDL counts, its rows do not."""
        ...
