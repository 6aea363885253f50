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
        """Add the next events of the transaction."""
        ...

    def blocks(self) -> tuple[Block, ...] | None:
        """Return all of them, or None when they are too many to be held in memory."""
        ...

    @property
    def rows(self) -> int | None:
        """Return how many rows were counted on the way, if they were."""
        ...

    def discard(self) -> None:
        """Let go of them: the transaction is not a prepared one."""
        ...


class PreparedRegistry(Protocol):
    """Remembers prepared transactions for one reader of the log, and finds those prepared before it began."""

    def collect(self, begin: Position) -> EventCollector:
        """Begin to collect the events of a transaction that begins there."""
        ...

    def add(self, transaction: PreparedTransaction) -> None:
        """Remember a transaction that was prepared. One that was seen before is replaced."""
        ...

    def find(self, xid: str, outcome: Position) -> PreparedTransaction | None:
        """Return the transaction that is committed by the statement which ends at `outcome`; None when its rows are not
        to be delivered."""
        ...

    def close(self, xid: str, outcome: Position) -> None:
        """Note that a transaction was committed, or rolled back, by the statement which ends at `outcome`."""
        ...

    def read_events(self, transaction: PreparedTransaction) -> Iterator[Block]:
        """Return the events of a transaction, from wherever they are."""
        ...

    def read_log(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read a part of the log again, with both ends between two transactions."""
        ...
