"""Subscriptions, batches and cursors of one destination, in memory; the persistent manager builds on it."""

import threading
from collections.abc import Callable
from typing import Self, TypeVar

from penstock.errors import MetaError
from penstock.meta.cursor import Cursor
from penstock.meta.record import BatchRange, ClientRecord

T = TypeVar("T")


class MetaManager:
    r"""Manages the subscriptions, the outstanding batches and the cursors of one destination. Any thread may call it.

    meta = MetaManager("shop")
    meta.subscribe(1001, r"shop\..*")
    """

    def __init__(self, destination: str) -> None:
        self.destination = destination
        self._lock = threading.RLock()
        self._records: dict[int, ClientRecord] = {}
        self.persists_later = False  # a change takes effect before it is persisted; `on_persisted` is called when it is
        self.on_persisted: Callable[[int, Cursor], None] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Load what was persisted."""

    def stop(self) -> None:
        """Persist what is not persisted yet."""

    def _persist(self, record: ClientRecord) -> None:
        """Persist what a record is about to become; called under the lock. When it raises, the record is unchanged and
        the caller gets the error."""

    def _change(self, client_id: int, action: Callable[[ClientRecord], T], *, must_have_subscribed: bool = False) -> T:
        """Change the record of a client: persist the changed copy, and let it replace the record. Raises MetaError for
        a client that has not subscribed, if it must have."""
        with self._lock:
            record = self._records.get(client_id)
            if must_have_subscribed and (record is None or not record.is_subscribed):
                subscribed = ", ".join(map(str, self.subscriptions())) or "none"
                raise MetaError(f"client {client_id} has not subscribed to {self.destination}; there is {subscribed}")
            after = record.copy() if record is not None else ClientRecord(client_id)
            result = action(after)
            self._persist(after)
            self._records[client_id] = after
            return result

    # -- subscriptions

    def subscribe(self, client_id: int, table_filter: str = "", cursor: Cursor | None = None) -> None:
        """Subscribe a client, or replace its filter. A client that has a cursor already keeps it."""
        self._change(client_id, lambda record: record.subscribe(table_filter, cursor))

    def unsubscribe(self, client_id: int) -> None:
        """End a client's subscription and drop its batches. Its cursor stays: when it subscribes again, it resumes
        there."""
        if self.has_subscribed(client_id):
            self._change(client_id, lambda record: record.unsubscribe())

    def forget(self, client_id: int) -> None:
        """Remove a client with its cursor."""
        with self._lock:
            if client_id in self._records:
                self._change(client_id, lambda record: record.forget())
                del self._records[client_id]

    def subscriptions(self) -> dict[int, str]:
        """Return the filters by client, in the order of the ids."""
        with self._lock:
            records = sorted(self._records.values(), key=lambda record: record.client_id)
            return {record.client_id: record.filter for record in records if record.is_subscribed}

    def has_subscribed(self, client_id: int) -> bool:
        """Return whether a client has subscribed to the destination."""
        return client_id in self.subscriptions()

    # -- batches

    def add_batch(self, client_id: int, batch: BatchRange, batch_id: int | None = None) -> int:
        """Add an outstanding batch of a client and return its id, which follows the client's last one unless `batch_id`
        is given. Raises MetaError when the client has not subscribed."""
        return self._change(client_id, lambda record: record.add_batch(batch, batch_id), must_have_subscribed=True)

    def ack_batch(self, client_id: int, batch_id: int) -> BatchRange:
        """Remove the first outstanding batch, and move the cursor to its ack point, both or none; any other is an
        error that names the first."""
        return self._change(client_id, lambda record: record.ack_oldest_batch(batch_id), must_have_subscribed=True)

    def rollback_batch(self, client_id: int, batch_id: int) -> BatchRange:
        """Remove the first outstanding batch; any other is an error that names the first."""
        return self._change(client_id, lambda record: record.take_first(batch_id), must_have_subscribed=True)

    def clear_batches(self, client_id: int) -> list[BatchRange]:
        """Remove all outstanding batches of a client, and return them in the order of delivery."""
        return self._change(client_id, lambda record: record.clear_batches(), must_have_subscribed=True)

    def batches(self, client_id: int) -> dict[int, BatchRange]:
        """Return the outstanding batches of a client, in the order of delivery."""
        with self._lock:
            record = self._records.get(client_id)
            return dict(record.batches) if record else {}

    def first_batch(self, client_id: int) -> tuple[int, BatchRange] | None:
        """Return the id and the range of a client's oldest outstanding batch; None when there is none."""
        return next(iter(self.batches(client_id).items()), None)

    def latest_batch(self, client_id: int) -> tuple[int, BatchRange] | None:
        """Return the id and the range of a client's newest outstanding batch; None when there is none."""
        return next(reversed(self.batches(client_id).items()), None)

    # -- cursors

    def cursor(self, client_id: int) -> Cursor | None:
        """Return the cursor of a client; None when the client is unknown or has none."""
        with self._lock:
            record = self._records.get(client_id)
            return record.cursor if record else None

    def update_cursor(self, client_id: int, cursor: Cursor, *, backwards: bool = False) -> None:
        """Set a client's cursor. It is moved backwards only if that is asked for."""
        self._change(client_id, lambda record: record.move_cursor(cursor, backwards=backwards))

    def cursors(self) -> dict[int, Cursor]:
        """Return the cursors of the clients that have subscribed."""
        with self._lock:
            records = [self._records[client_id] for client_id in self.subscriptions()]
            return {record.client_id: record.cursor for record in records if record.cursor is not None}

    def lowest_cursor(self) -> Cursor | None:
        """Return the lowest cursor of the clients that have subscribed: capture must begin there."""
        return min(self.cursors().values(), key=lambda cursor: cursor.position, default=None)
