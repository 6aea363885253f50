"""One consumer of a store: how far it got, how far it acked, and what it wants to see."""

import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import table_name
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.store.catch_up import CatchUp

TableFilter = Callable[[TableName], bool]


@runtime_checkable
class BatchFilter(Protocol):
    """A TableFilter that decides about many tables at once in less time than about one after the other."""

    def __call__(self, table: TableName) -> bool: ...

    def prepare(self, tables: Collection[TableName]) -> None:
        """Decide about these tables, which it will be asked for."""
        ...


class ClientState(Enum):
    LIVE = "live"
    LAGGING = "lagging"  # the next entries it gets are no longer in memory
    IDLE = "idle"  # it has not asked for a while
    ABSENT = "absent"  # it is not connected, and has not been for longer than a reconnect takes
    LOST = "lost"  # entries that it had not acked were removed


@dataclass(frozen=True, slots=True)
class Place:
    """After an entry of the store."""

    sequence: int
    position: Position
    bytes: int  # of everything put up to there


@dataclass(slots=True, eq=False)
class Client:
    """Changed under the store's lock; `busy` lets one get at a time plan its batch without it."""

    name: str
    get: Place
    ack: Place
    safe: Place  # the last boundary that it has acked
    kept: Place | None = None  # the last boundary that is known to be kept, for a client whose acks are kept later
    filter: TableFilter | None = None
    wants_whole: bool = False  # transactions only
    reads_log: bool = False  # and what has no room in memory it reads from the source's log by itself
    gives_way_s: float | None = None  # silent so long, or while others have nothing left, capture does not wait for it
    seen_s: float = 0
    absent_since_s: float | None = None  # when its last connection ended; None while it is connected
    # What it got from the store and has not acked: the end of each batch, and the last boundary up to there.
    delivered: deque[tuple[Place, Position]] = field(default_factory=deque["tuple[Place, Position]"])
    lost: str = ""  # why
    rewinds: int = 0
    catch_up: "CatchUp | None" = None  # while it gets, or has not acked, what lies before the store
    is_far: bool = False  # nothing is kept for it yet, or any more
    is_reading_log: bool = False  # a batch is read from the source's log for it
    ahead: Position | None = None  # it has acked up to there, and the store has not come there again
    rounds: int = 0  # how often it came to where the store began
    busy: threading.Lock = field(default_factory=threading.Lock)

    def move(self, *, get: Place | None = None, ack: Place | None = None) -> None:
        self.get, self.ack = get or self.get, ack or self.ack
        if self.ack.sequence < self.safe.sequence:
            self.safe = self.ack
        if self.kept is not None and self.ack.sequence < self.kept.sequence:
            self.kept = self.ack
        if self.get.sequence < self.ack.sequence:
            self.get = self.ack
        while self.delivered and self.delivered[0][0].sequence <= self.ack.sequence:
            self.delivered.popleft()
        while self.delivered and self.delivered[-1][0].sequence > self.get.sequence:
            self.delivered.pop()

    def deliver(self, end: Place, boundary: Position | None) -> None:
        """Move behind a batch from the store; `boundary` is the last one in it, if it has one."""
        self.delivered.append((end, boundary or self.last_boundary))
        self.move(get=end)

    def rewind(self) -> None:
        self.get = self.ack
        self.delivered.clear()
        self.rewinds += 1
        if self.catch_up is not None:
            self.catch_up = self.catch_up.rewound()

    @property
    def last_boundary(self) -> Position:
        """The last transaction boundary up to which it got everything from the store."""
        return self.delivered[-1][1] if self.delivered else self.safe.position

    @property
    def done(self) -> Place:
        """Up to there it will not come again, whatever happens."""
        return self.safe if self.kept is None else min(self.safe, self.kept, key=lambda place: place.sequence)

    @property
    def is_behind(self) -> bool:
        """What it gets next lies before the store."""
        return self.catch_up is not None and (self.is_far or self.catch_up.got < self.ack.position)

    @property
    def position(self) -> Position:
        """After what it got."""
        return self.catch_up.got if self.catch_up is not None and self.is_behind else self.get.position

    def settle(self) -> None:
        """Once it is done with what lies before the store, it is a client like others."""
        if self.catch_up is not None and not self.is_behind and self.catch_up.is_all_acked:
            self.catch_up = None

    def shown(self, block: Block) -> Block:
        """The block with the rows of other tables as events that mean nothing; their bytes are shared, not copied."""
        if self.filter is None:
            return block
        entry = block.column("entry")
        are_rows = entry == Entry.ROWS
        # A block may have thousands of tables, and this part of it only a few.
        used = [number for number in distinct(block.column("table_id")[are_rows]) if number in block.tables]
        names = [table_name(block.tables[number]) for number in used]
        if isinstance(self.filter, BatchFilter):
            self.filter.prepare(names)
        visible = {number: block.tables[number] for number, name in zip(used, names, strict=True) if self.filter(name)}
        shown = block
        if len(visible) < len(used):
            hidden = [number for number in used if number not in visible]
            is_hidden = are_rows & np.isin(block.column("table_id"), hidden)
            shown = block.with_columns(entry=np.where(is_hidden, np.uint8(Entry.OTHER), entry))
        return shown if len(visible) == len(block.tables) else shown.with_tables(visible)
