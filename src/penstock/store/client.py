"""One client of a store: how far it got, how far it acked, from where it is served, and what it wants to see.

A client is served in one of five named states, each with the data that belongs to it:

| state | next batch comes from | the store keeps blocks for it | leaves it when |
|---|---|---|---|
| `InStore` | the store | yes | it is evicted, or lost |
| `AheadOfStore` | nowhere: after a crash it has acked more than the store has | yes | capture has read up to its ack |
| `CatchingUp` | the source's log | no | it reaches the position at which the store begins |
| `Joining` | the source's log up to its `ack`, then the store | yes | it has acked all that came from the log |
| `Lost` | nowhere: the store removed entries that it had not acked | no | it subscribes again |
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from penstock.binlog.events.block import Block
from penstock.model import Position
from penstock.store.block_info import EntryPosition
from penstock.store.rows_filter import RowsFilter, TableFilter

if TYPE_CHECKING:
    from penstock.store.catch_up import CatchUp


class ClientState(Enum):
    """A summary of a client for operators."""

    LIVE = "live"
    LAGGING = "lagging"  # the next entries it gets are no longer in memory
    IDLE = "idle"  # it has not called for a while
    ABSENT = "absent"  # it is not connected, and has not been for longer than a reconnect takes
    LOST = "lost"  # entries that it had not acked were removed


@dataclass(frozen=True, slots=True)
class InStore:
    """The state of a client that is served from the store."""


@dataclass(frozen=True, slots=True)
class AheadOfStore:
    """The state of a client that has acked up to `acked`, while capture, after a crash, has not read the binlog up to
    there again."""

    acked: Position


@dataclass(frozen=True, slots=True, eq=False)
class CatchingUp:
    """The state of a client that is served from the source's log, and for which the store holds nothing."""

    catch_up: "CatchUp"
    rounds: int = 0  # how often it reached the store's begin and found that it had moved on


@dataclass(frozen=True, slots=True, eq=False)
class Joining:
    """The state of a client for which the store holds what follows its `ack`, while it gets what lies before from the
    source's log."""

    catch_up: "CatchUp"


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """The state of a client whose entries were removed from the store before it acked them."""

    reason: str
    catch_up: "CatchUp | None" = None  # what it had not acked of the source's log when it was lost


Serving = InStore | AheadOfStore | CatchingUp | Joining | Lost


@dataclass(slots=True, eq=False)
class StoreClient:
    """One client of a store. The store's lock protects every field but `busy`.

    `busy` is held by one `get` of the client at a time, while it plans its batch without the store's lock.
    """

    name: str
    get: EntryPosition
    ack: EntryPosition
    acked_boundary: EntryPosition  # the last transaction boundary that it has acked
    persisted: EntryPosition | None = None  # the last boundary whose ack is persisted, if acks are persisted later
    filter: TableFilter | None = None
    wants_whole: bool = False  # it gets whole transactions only
    reads_log: bool = False  # what does not fit into memory it reads from the source's log by itself
    # Evict it instead of blocking capture: after this many idle seconds, or at once when another has drained the store.
    evict_after_s: float | None = None
    seen_s: float = 0
    renewed_s: float = 0  # when it said last that it needs what it has not acked, although it asks for nothing
    absent_since_s: float | None = None  # when its last connection ended; None while it is connected
    # What it got from the store and has not acked: the end of each batch, and the last boundary up to there.
    delivered: deque[tuple[EntryPosition, Position]] = field(default_factory=deque["tuple[EntryPosition, Position]"])
    serving: Serving = field(default_factory=InStore)
    rewinds: int = 0  # a batch that is planned while this changes must not be delivered
    is_reading_log: bool = False  # a thread reads a batch from the source's log for it
    busy: threading.Lock = field(default_factory=threading.Lock)
    _rows_filter: RowsFilter | None = None  # of `filter`; for whoever holds `busy`

    # -- what the states say

    @property
    def catch_up(self) -> "CatchUp | None":
        """The reader of the source's log, while the client reads it or has batches of it outstanding."""
        serving = self.serving
        return serving.catch_up if isinstance(serving, CatchingUp | Joining | Lost) else None

    @property
    def is_catching_up(self) -> bool:
        """Return whether the store holds nothing for the client: it reads the source's log."""
        return isinstance(self.serving, CatchingUp)

    @property
    def is_holding(self) -> bool:
        """Return whether the store holds blocks for the client."""
        return not isinstance(self.serving, CatchingUp | Lost)

    @property
    def acked_ahead(self) -> Position | None:
        """Return the position up to which the client has acked, while the store does not have that again."""
        return self.serving.acked if isinstance(self.serving, AheadOfStore) else None

    @property
    def lost_reason(self) -> str:
        """Return why the client is lost, that is why the store no longer has the blocks that it needs; empty when it
        has."""
        return self.serving.reason if isinstance(self.serving, Lost) else ""

    @property
    def is_behind(self) -> bool:
        """Return whether the next entries of the client were evicted from the store, and come from the source's log."""
        catch_up = self.catch_up
        return catch_up is not None and (self.is_catching_up or catch_up.got < self.ack.position)

    @property
    def position(self) -> Position:
        """The position after the last entry that the client got."""
        catch_up = self.catch_up
        return catch_up.got if catch_up is not None and self.is_behind else self.get.position

    @property
    def last_boundary(self) -> Position:
        """The last transaction boundary up to which it got everything from the store."""
        return self.delivered[-1][1] if self.delivered else self.acked_boundary.position

    @property
    def done(self) -> EntryPosition:
        """The boundary up to which nothing is redelivered to it, whatever happens."""
        if self.persisted is None:
            return self.acked_boundary
        return min(self.acked_boundary, self.persisted, key=lambda end: end.sequence)

    # -- how the states change

    def wait_for_store(self, acked: Position | None) -> None:
        """Wait until the store has what the client has acked, or be served from the store with None."""
        self.serving = AheadOfStore(acked) if acked is not None else InStore()

    def start_catch_up(self, catch_up: "CatchUp") -> None:
        """Serve the client from the source's log, and keep nothing in the store for it."""
        self.serving = CatchingUp(catch_up)

    def count_approach(self) -> int:
        """Count that the client has reached what was the store's begin; return how often it has."""
        if not isinstance(self.serving, CatchingUp):
            return 0
        self.serving = CatchingUp(self.serving.catch_up, self.serving.rounds + 1)
        return self.serving.rounds

    def join(self, at: EntryPosition, boundary: EntryPosition) -> None:
        """Let the store keep everything after `at` for the client, which gets what lies before from the log."""
        catch_up = self.catch_up
        self.move(get=at, ack=at)
        self.set_acked_boundary(boundary)
        self.serving = Joining(catch_up) if catch_up is not None else InStore()

    def leave_catch_up(self) -> None:
        """Serve the client from the store once it is done with the source's log."""
        serving = self.serving
        if isinstance(serving, Joining) and not self.is_behind and serving.catch_up.is_all_acked:
            self.serving = InStore()

    def lose(self, reason: str) -> None:
        """Serve nothing any more: entries that the client had not acked are gone."""
        self.serving = Lost(reason, self.catch_up)

    # -- how it moves

    def move(self, *, get: EntryPosition | None = None, ack: EntryPosition | None = None) -> None:
        """Set how far the client got or acked, and adjust what depends on it: the acked boundary, and the batches that
        are outstanding."""
        self.get, self.ack = get or self.get, ack or self.ack
        if self.ack.sequence < self.acked_boundary.sequence:
            self.acked_boundary = self.ack
        if self.persisted is not None and self.ack.sequence < self.persisted.sequence:
            self.persisted = self.ack
        if self.get.sequence < self.ack.sequence:
            self.get = self.ack
        while self.delivered and self.delivered[0][0].sequence <= self.ack.sequence:
            self.delivered.popleft()
        while self.delivered and self.delivered[-1][0].sequence > self.get.sequence:
            self.delivered.pop()

    def set_acked_boundary(self, boundary: EntryPosition) -> None:
        """Set the boundary up to which the client has acked, and whose ack is persisted already."""
        self.acked_boundary = boundary
        self.persisted = boundary if self.persisted is not None else None

    def deliver(self, end: EntryPosition, boundary: Position | None) -> None:
        """Advance the get position past a batch; `boundary` is the last transaction boundary in it, if it has one."""
        self.delivered.append((end, boundary or self.last_boundary))
        self.move(get=end)

    def rewind(self) -> None:
        """Let the next get start after the last ack."""
        self.get = self.ack
        self.delivered.clear()
        self.rewinds += 1
        serving = self.serving
        if isinstance(serving, CatchingUp):
            self.serving = CatchingUp(serving.catch_up.rewind(), serving.rounds)
        elif isinstance(serving, Joining):
            self.serving = Joining(serving.catch_up.rewind())

    def filter_block(self, block: Block) -> Block:
        """Return the block with rows of tables that the filter hides as events without a meaning.

        The bytes are shared, not copied.
        """
        if self.filter is None:
            return block
        if self._rows_filter is None or self._rows_filter.passes is not self.filter:
            self._rows_filter = RowsFilter(self.filter)
        return self._rows_filter.apply(block)
