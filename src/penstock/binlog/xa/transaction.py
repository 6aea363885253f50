"""A prepared XA transaction, and the registry that remembers it until its outcome is known."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.model import Position


@dataclass(slots=True, eq=False)
class PreparedTransaction:
    """The events of an XA transaction up to its XA_PREPARE, and what is known of it."""

    xid: str
    begin: Position  # of its first event: the log can be read again from there
    first: Position  # of its first event that is delivered
    end: Position  # of its XA_PREPARE
    since: int  # when it was prepared, in seconds
    row_bytes: int  # of its rows events, without checksums
    blocks: tuple[Block, ...] | None  # its events; None when they are not in memory
    rows: int | None = None  # None while they were not counted
    outcome: Position | None = None  # where the statement ends that committed it or rolled it back


class EventCollector(Protocol):
    """Collects the events of one XA transaction while the log is read."""

    def add(self, block: Block) -> None:
        """Add the next binlog events of the XA transaction."""
        ...

    def blocks(self) -> tuple[Block, ...] | None:
        """Return all events of the XA transaction; None when they are too many to be held in memory."""
        ...

    @property
    def rows(self) -> int | None:
        """Return how many rows the XA transaction changes; None when they were not counted."""
        ...

    def discard(self) -> None:
        """Free the collected events, because the XA transaction was not prepared."""
        ...


class PreparedRegistry(Protocol):
    """Remembers prepared XA transactions for one reader of the log, and finds those prepared before it began."""

    def collect(self, begin: Position) -> EventCollector:
        """Begin to collect the events of the XA transaction that begins at `begin`."""
        ...

    def add(self, transaction: PreparedTransaction) -> None:
        """Remember an XA transaction that was prepared. One with the same XA id is replaced."""
        ...

    def find(self, xid: str, outcome: Position) -> PreparedTransaction | None:
        """Return the XA transaction that is committed by the statement which ends at `outcome`; None when its rows are
        not to be delivered."""
        ...

    def close(self, xid: str, outcome: Position) -> None:
        """Note that an XA transaction was committed, or rolled back, by the statement which ends at `outcome`."""
        ...

    def read_events(self, transaction: PreparedTransaction) -> Iterator[Block]:
        """Return the events of a prepared XA transaction, from memory, a file or the log."""
        ...

    def read_log(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read a part of the log again, with both ends between two transactions."""
        ...
