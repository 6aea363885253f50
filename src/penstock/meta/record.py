"""The record of one client: its subscription, its cursor and its outstanding batches."""

from dataclasses import dataclass, field, replace

from penstock.errors import MetaError
from penstock.meta.cursor import Cursor
from penstock.model import Position

_IDS_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class BatchRange:
    """The range of a batch: the entries of (start, end], and the cursor after its ack, which is the last transaction
    boundary in it, if any."""

    start: Position
    end: Position
    end_sequence: int
    ack: Cursor | None = None


@dataclass(slots=True)
class ClientRecord:
    r"""What is remembered of one client: its subscription, its cursor and its outstanding batches.

    record = ClientRecord(1001, filter=r"shop\..*", is_subscribed=True)
    """

    client_id: int
    filter: str = ""
    is_subscribed: bool = False
    cursor: Cursor | None = None
    batches: dict[int, BatchRange] = field(default_factory=dict[int, BatchRange])  # outstanding, by rising id
    last_id: int = 0
    ids_until: int = 0  # up to there ids may have been given out: after a restart the next one is larger

    def copy(self) -> "ClientRecord":
        """Return a copy that can be changed without changing this record."""
        return replace(self, batches=dict(self.batches))

    def subscribe(self, table_filter: str, cursor: Cursor | None = None) -> None:
        """Mark the client as subscribed with this filter. A client that has a cursor already keeps it."""
        self.is_subscribed, self.filter = True, table_filter
        self.cursor = self.cursor or cursor
        if not self.ids_until:
            self.reserve_ids()

    def unsubscribe(self) -> None:
        """Mark the client as not subscribed and drop its outstanding batches; its cursor stays."""
        self.is_subscribed = False
        self.batches.clear()

    def forget(self) -> None:
        """End the subscription, and drop the outstanding batches and the cursor."""
        self.unsubscribe()
        self.cursor = None

    @property
    def is_forgotten(self) -> bool:
        """Return whether the client is not subscribed and has no cursor, so that nothing of it needs to be
        persisted."""
        return not self.is_subscribed and self.cursor is None

    def reserve_ids(self) -> None:
        """Begin the batch ids after all that a previous process may have given out, so that a late ack of one of those
        acks nothing."""
        self.last_id = max(self.last_id, self.ids_until)
        self.ids_until = self.last_id + _IDS_AT_ONCE

    def clear_batches(self) -> list[BatchRange]:
        """Remove all outstanding batches, and return them in the order of delivery."""
        batches = list(self.batches.values())
        self.batches.clear()
        return batches

    def add_batch(self, batch: BatchRange, batch_id: int | None = None) -> int:
        """Add a batch and return its id; an id that is given moves the counter."""
        if batch_id is not None and batch_id <= self.last_id:
            raise MetaError(f"batch {batch_id} of client {self.client_id} cannot come after batch {self.last_id}")
        self.last_id = batch_id if batch_id is not None else self.last_id + 1
        if self.last_id > self.ids_until:
            self.ids_until = self.last_id + _IDS_AT_ONCE
        self.batches[self.last_id] = batch
        return self.last_id

    def take_first(self, batch_id: int) -> BatchRange:
        """Remove the first outstanding batch, if it has this id: batches are acked and rolled back in their order."""
        first = next(iter(self.batches), None)
        if first is None:
            raise MetaError(f"client {self.client_id} has no batch {batch_id}: none is outstanding")
        if batch_id not in self.batches:
            raise MetaError(f"client {self.client_id} has no batch {batch_id}: the first outstanding one is {first}")
        if batch_id != first:
            raise MetaError(f"batch {batch_id} of client {self.client_id} is not the first outstanding one: {first} is")
        return self.batches.pop(batch_id)

    def ack_oldest_batch(self, batch_id: int) -> BatchRange:
        """Remove the first outstanding batch, if it has this id, and move the cursor to its ack point, if it has one.
        Raises MetaError when another batch is the first."""
        batch = self.take_first(batch_id)
        if batch.ack is not None:
            self.move_cursor(batch.ack)
        return batch

    def move_cursor(self, cursor: Cursor, *, backwards: bool = False) -> None:
        """Set the cursor. Raises MetaError when that would move it back, unless `backwards` is true."""
        if self.cursor is not None and cursor.position < self.cursor.position and not backwards:
            raise MetaError(
                f"the cursor of client {self.client_id} is at {self.cursor} and does not go back to {cursor} by itself:"
                " use `penstock position set`"
            )
        self.cursor = cursor
