"""Where blocks of a log come from."""

from collections.abc import Iterator
from typing import Protocol

from penstock.binlog.events.block import Block


class Log(Protocol):
    """Iterate for blocks, in order. `done` of `total` bytes have been read; a total of 0 is not known."""

    done: int
    total: int

    def __iter__(self) -> Iterator[Block]: ...

    def earlier(self) -> Iterator[Block]:
        """Yield what is known to be before that, if it can be had: its DDL counts, its rows do not."""
        ...
