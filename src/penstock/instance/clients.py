"""The calls of an instance's clients: subscribe, get, ack, roll back.

The meta manager knows the cursor of each client, the store has the entries that follow it. An ack is persisted first
and freed then: after a crash between the two a client gets again what it has acked, and never misses anything.
Outstanding batches are redelivered after a restart.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError, StoreError
from penstock.instance.connections import Connections
from penstock.instance.filter import parse_client_filter
from penstock.instance.row_counts import RowCounts
from penstock.meta import BatchRange, Cursor, MetaManager
from penstock.model import Position
from penstock.store import Batch, BatchSize, ClientState, EventStore, Start

log = logging.getLogger(__name__)


class Clients:
    """The clients of one instance: subscribe, get, ack, roll back. Any thread may call it, and a client that waits does
    not block another one."""

    def __init__(
        self,
        store: EventStore,
        meta: MetaManager,
        *,
        source: Callable[[], tuple[str, int]] = lambda: ("", 0),
        check_cursor: Callable[[int, Position], None] | None = None,
    ) -> None:
        """`source` returns host and port of the source, for cursors; `check_cursor` raises for a position that the
        source's log cannot have."""
        self._store, self._meta, self._check_cursor = store, meta, check_cursor
        self._source = source
        meta.on_persisted = lambda client_id, cursor: store.confirm_persisted(str(client_id), cursor.position)
        self._connections = Connections(self._note_connected)
        self.rows = RowCounts()
        self._client_locks: dict[
            int, threading.Lock
        ] = {}  # each client makes one call at a time, but may wait beside it
        self._lock = threading.Lock()  # of _client_locks

    def start(self) -> None:
        """Let every client that has subscribed resume at its cursor."""
        for client_id, text in self._meta.subscriptions().items():
            self._join_store(client_id, self._usable_filter(client_id, text), None)
            self.mark_absent(client_id)
            if self._meta.batches(client_id):
                self._meta.clear_batches(client_id)

    # -- who is connected

    def connect(self, client_id: int, address: str) -> Callable[[], None]:
        """Note that a client is connected, until the returned function is called. What a client that is not connected
        has not acked may be evicted from a full store; the client is served from the source's log then."""
        return self._connections.open(client_id, address)

    def mark_absent(self, client_id: int) -> None:
        """Note that a client is not connected although it is subscribed, unless it has a connection."""
        if not self._connections.is_connected(client_id):
            self._note_connected(client_id, False)

    def addresses(self) -> dict[int, list[str]]:
        """Return the network addresses of the connected clients, by client id."""
        return self._connections.addresses()

    def _note_connected(self, client_id: int, is_connected: bool) -> None:
        """Tell the store whether a client is connected."""
        self._store.set_connected(str(client_id), is_connected=is_connected)

    def subscribe(self, client_id: int, text: str = "", start: Start | None = None) -> Position:
        """Subscribe a client, and return the position at which it resumes: its cursor, or `start` for a new client, by
        default the oldest entry of the store. Subscribing again replaces the filter. A lost client is served from the
        source's log, from its cursor on."""
        parse_client_filter(text)  # refuses before anything has changed
        with self._lock_client(client_id):
            state = self._store.states().get(str(client_id))
            if state is ClientState.LOST:
                self._store.forget_client(str(client_id))
                self._meta.clear_batches(client_id)
                self.rows.forget(client_id)
            position = self._join_store(client_id, text, start)
            try:
                self._meta.subscribe(client_id, text, self._make_cursor(position))
            except PenstockError:
                if state is None:
                    self._store.forget_client(str(client_id))
                raise
            self._note_connected(client_id, True)
            return position

    def _join_store(self, client_id: int, text: str, start: Start | None) -> Position:
        """Add a client to the store at its cursor, or at `start` without one, and return that position."""
        cursor = self._meta.cursor(client_id)
        if cursor is None:
            return self._add_to_store(client_id, text, start)
        if self._check_cursor is not None:
            self._check_cursor(client_id, cursor.position)
        self._add_to_store(client_id, text, Start.cursor(cursor.position))
        return cursor.position

    def _add_to_store(self, client_id: int, text: str, start: Start | None) -> Position:
        """Add a client to the store at `start`, with its filter, and return its position."""
        predicate, later = parse_client_filter(text), self._meta.persists_later
        return self._store.add_client(str(client_id), start, table_filter=predicate, persists_later=later)

    def unsubscribe(self, client_id: int) -> None:
        """End a subscription. Nothing is stored for the client any more; when it subscribes again, it resumes at its
        cursor."""
        with self._lock_client(client_id):
            self._meta.unsubscribe(client_id)
            self._store.forget_client(str(client_id))
            self.rows.forget(client_id)

    def forget(self, client_id: int) -> None:
        """Remove a client with its cursor."""
        with self._lock_client(client_id):
            self._meta.forget(client_id)
            self._store.forget_client(str(client_id))
            self.rows.forget(client_id)

    def is_known(self, client_id: int) -> bool:
        """Return whether a client has subscribed, or has left a cursor."""
        return self._meta.has_subscribed(client_id) or self._meta.cursor(client_id) is not None

    def seek(self, client_id: int, position: Position) -> None:
        """Move a client's cursor to a position, before or after the present one, and drop its outstanding batches. A
        client that has not subscribed yet will start there."""
        if self._check_cursor is not None:
            self._check_cursor(client_id, position)
        with self._lock_client(client_id):
            text = self._meta.subscriptions().get(client_id)
            if text is not None:
                self._meta.clear_batches(client_id)
            self._meta.update_cursor(client_id, self._make_cursor(position), backwards=True)
            if text is None:
                return
            self._store.forget_client(str(client_id))
            self._join_store(client_id, self._usable_filter(client_id, text), None)
            self.mark_absent(client_id)

    def get(
        self, client_id: int, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> tuple[int, Batch] | None:
        """Return the next batch of a client and its id, or None when there was none in time. Several batches may be
        outstanding."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._check_subscribed(client_id)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._store.wait(str(client_id), size, left)  # without the lock: a rollback need not wait
            with self._lock_client(client_id):
                batch = self._get_from_store(client_id, size, is_ddl_alone=is_ddl_alone)
                if batch is not None:
                    batch_id = self._record_batch(client_id, batch)
                    self.rows.add_batch(client_id, batch_id, batch.blocks)
                    return batch_id, batch
            if left == 0:
                return None

    def _get_from_store(self, client_id: int, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """Return the next batch of a client from the store; a lost position is an error that says what to do."""
        try:
            return self._store.get(str(client_id), size, is_ddl_alone=is_ddl_alone)
        except PositionLostError as error:
            raise PositionLostError(
                f"client {client_id} cannot resume: {error}; say with `penstock position set` where it does"
            ) from None

    def ack(self, client_id: int, batch_id: int) -> None:
        """Ack the first outstanding batch of a client: the cursor is persisted, then the store frees what no client
        needs. Any other batch id is an error."""
        with self._lock_client(client_id):
            batch = self._meta.ack_batch(client_id, batch_id)
            self.rows.ack(client_id, batch_id)
            name, sequence = str(client_id), batch.end_sequence
            try:
                self._store.ack(name, batch.end, sequence if sequence >= 0 else None)
            except StoreError:
                _, got, _ = self._store.sequences(name)
                if sequence <= got:
                    raise
                # The source's connection broke inside of the batch's last transaction, which is redelivered.
                if batch.ack is not None:
                    self._store.release(name, batch.ack.position)

    def wait(self, client_id: int, size: BatchSize, timeout_s: float) -> bool:
        """Wait until a batch of this size is available, and return whether it is."""
        self._check_subscribed(client_id)
        return self._store.wait(str(client_id), size, timeout_s)

    def outstanding(self, client_id: int) -> list[int]:
        """Return the ids of the batches that were delivered and not acked, in the order of delivery."""
        return list(self._meta.batches(client_id))

    def batches(self, client_id: int) -> dict[int, BatchRange]:
        """Return the outstanding batches of a client by id, in the order of delivery."""
        return self._meta.batches(client_id)

    def cursors(self) -> dict[int, Position]:
        """Return the cursors of all clients that have one."""
        return {client_id: cursor.position for client_id, cursor in self._meta.cursors().items()}

    def subscriptions(self) -> dict[int, str]:
        """Return the filters of the subscribed clients, by client id."""
        return self._meta.subscriptions()

    def rollback(self, client_id: int, batch_id: int | None = None) -> None:
        """Redeliver all outstanding batches of a client, also those after `batch_id`, which must be the first
        outstanding one."""
        with self._lock_client(client_id):
            if batch_id is not None:
                self._meta.rollback_batch(client_id, batch_id)
            self._meta.clear_batches(client_id)
            self._store.rollback(str(client_id))
            self.rows.forget(client_id)

    def _record_batch(self, client_id: int, batch: Batch) -> int:
        """Record a delivered batch as outstanding, and return its id. If that fails, the batch is rolled back."""
        try:
            return self._meta.add_batch(client_id, self._make_range(batch))
        except PenstockError:
            # What was delivered and is not recorded as outstanding would never be redelivered.
            self._store.rollback(str(client_id))
            with suppress(PenstockError):
                self._meta.clear_batches(client_id)
            raise

    def _make_range(self, batch: Batch) -> BatchRange:
        """Return the range of a batch as the meta manager persists it, with the cursor after its ack."""
        ack = None
        if batch.ack is not None:
            last = next(block for block in reversed(batch.blocks) if block.boundaries.size)
            server_id = int(last.column("server_id")[last.boundaries[-1]])
            ack = self._make_cursor(batch.ack, server_id)
        return BatchRange(batch.start, batch.end, batch.end_sequence, ack)

    def _make_cursor(self, position: Position, server_id: int = 0) -> Cursor:
        """Return a cursor at a position, with the source's address."""
        return Cursor(position, server_id=server_id, source=self._source())

    def _lock_client(self, client_id: int) -> threading.Lock:
        """Return the lock that lets a client make one call at a time."""
        with self._lock:
            return self._client_locks.setdefault(client_id, threading.Lock())

    def _check_subscribed(self, client_id: int) -> None:
        """Raise MetaError for a client that has not subscribed."""
        if not self._meta.has_subscribed(client_id):
            known = ", ".join(map(str, self._meta.subscriptions())) or "none"
            raise MetaError(
                f"client {client_id} has not subscribed to {self._meta.destination}; those that have: {known}"
            )

    def _usable_filter(self, client_id: int, text: str) -> str:
        """Return the filter of a client; an empty one, which matches all tables, if it is not valid any more.

        A filter that canal or an earlier version persisted may be invalid now. It must not keep other clients from
        starting; this client gets the error when it subscribes.
        """
        try:
            parse_client_filter(text)
        except ConfigurationError as error:
            destination = self._meta.destination
            log.warning(
                "client filter invalid, no longer applied destination=%s client=%d reason=%s: the client must"
                " subscribe again",
                *(destination, client_id, error),
            )
            return ""
        return text
