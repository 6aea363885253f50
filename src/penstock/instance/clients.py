"""What clients do at an instance: subscribe, get, ack, roll back.

The meta manager knows how far each has come, the store has what comes next. An ack is kept first and freed then: a
crash between the two makes a client get again what it has acked, and never miss anything. What a client has got and
not acked, it gets again after a restart.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError, StoreError
from penstock.instance.connections import Connections
from penstock.instance.filter import table_filter
from penstock.instance.row_counts import RowCounts
from penstock.meta import BatchRange, Cursor, MetaManager
from penstock.model import Position
from penstock.store import Batch, BatchSize, ClientState, EventStore, Start

log = logging.getLogger(__name__)


class Clients:
    """Of one instance; any thread may call it. A client that waits keeps no other waiting."""

    def __init__(
        self,
        store: EventStore,
        meta: MetaManager,
        *,
        source: Callable[[], tuple[str, int]] = lambda: ("", 0),
        check_cursor: Callable[[int, Position], None] | None = None,
    ) -> None:
        """`check_cursor` raises what is wrong with a place to go on from, if it is none in the source's log."""
        self._store, self._meta, self._check_cursor = store, meta, check_cursor
        self._source = source
        meta.on_persisted = lambda client_id, cursor: store.confirm_persisted(str(client_id), cursor.position)
        self._connections = Connections(self._note_connected)
        self.rows = RowCounts()
        self._sessions: dict[int, threading.Lock] = {}  # one call of a client at a time, but for its waiting
        self._lock = threading.Lock()  # of _sessions

    def start(self) -> None:
        """Every client that has subscribed goes on from its cursor."""
        for client_id, text in self._meta.subscriptions().items():
            self._join(client_id, self._usable_filter(client_id, text), None)
            self.mark_absent(client_id)
            if self._meta.batches(client_id):
                self._meta.clear_batches(client_id)

    # -- who is connected

    def connect(self, client_id: int, address: str) -> Callable[[], None]:
        """Note that a client is connected, until the function that it returns is called. What a client that is not
        connected has not acked may be evicted from a full store; it is served from the source's log then."""
        return self._connections.open(client_id, address)

    def mark_absent(self, client_id: int) -> None:
        """Note that a client that was subscribed for is not there itself, unless it is connected."""
        if not self._connections.is_connected(client_id):
            self._note_connected(client_id, False)

    def addresses(self) -> dict[int, list[str]]:
        """Where the clients that are connected now are connected from."""
        return self._connections.addresses()

    def _note_connected(self, client_id: int, is_connected: bool) -> None:
        self._store.set_connected(str(client_id), is_connected=is_connected)

    def subscribe(self, client_id: int, text: str = "", start: Start | None = None) -> Position:
        """Gives where it goes on: at its cursor, and for a new client where it wants, by default with all that the
        store has. Again is no error; a client that was lost reads the source's log from its cursor on."""
        table_filter(text)  # refuses before anything has changed
        with self._session(client_id):
            state = self._store.states().get(str(client_id))
            if state is ClientState.LOST:
                self._store.forget_client(str(client_id))
                self._meta.clear_batches(client_id)
                self.rows.forget(client_id)
            place = self._join(client_id, text, start)
            try:
                self._meta.subscribe(client_id, text, self._cursor(place))
            except PenstockError:
                if state is None:
                    self._store.forget_client(str(client_id))
                raise
            self._note_connected(client_id, True)
            return place

    def _join(self, client_id: int, text: str, start: Start | None) -> Position:
        """In the store."""
        cursor = self._meta.cursor(client_id)
        if cursor is None:
            return self._add(client_id, text, start)
        if self._check_cursor is not None:
            self._check_cursor(client_id, cursor.position)
        self._add(client_id, text, Start.cursor(cursor.position))
        return cursor.position

    def _add(self, client_id: int, text: str, start: Start | None) -> Position:
        wanted, later = table_filter(text), self._meta.persists_later
        return self._store.add_client(str(client_id), start, table_filter=wanted, persists_later=later)

    def unsubscribe(self, client_id: int) -> None:
        """Nothing is kept for it; it goes on from its cursor when it comes again."""
        with self._session(client_id):
            self._meta.unsubscribe(client_id)
            self._store.forget_client(str(client_id))
            self.rows.forget(client_id)

    def forget(self, client_id: int) -> None:
        """Its cursor, too."""
        with self._session(client_id):
            self._meta.forget(client_id)
            self._store.forget_client(str(client_id))
            self.rows.forget(client_id)

    def is_known(self, client_id: int) -> bool:
        """Whether it has subscribed, or has left a cursor."""
        return self._meta.has_subscribed(client_id) or self._meta.cursor(client_id) is not None

    def seek(self, client_id: int, position: Position) -> None:
        """Let a client resume at a position, before or after its cursor; what it got and has not acked does not count
        any more. One that has not subscribed yet will begin there."""
        if self._check_cursor is not None:
            self._check_cursor(client_id, position)
        with self._session(client_id):
            text = self._meta.subscriptions().get(client_id)
            if text is not None:
                self._meta.clear_batches(client_id)
            self._meta.update_cursor(client_id, self._cursor(position), backwards=True)
            if text is None:
                return
            self._store.forget_client(str(client_id))
            self._join(client_id, self._usable_filter(client_id, text), None)
            self.mark_absent(client_id)

    def get(
        self, client_id: int, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> tuple[int, Batch] | None:
        """The next batch and its id; None when there is nothing, or nothing in time. Several may be outstanding."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._check_subscribed(client_id)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._store.wait(str(client_id), size, left)  # without the lock: a rollback need not wait
            with self._session(client_id):
                batch = self._next(client_id, size, is_ddl_alone=is_ddl_alone)
                if batch is not None:
                    batch_id = self._noted(client_id, batch)
                    self.rows.add_batch(client_id, batch_id, batch.blocks)
                    return batch_id, batch
            if left == 0:
                return None

    def _next(self, client_id: int, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        try:
            return self._store.get(str(client_id), size, is_ddl_alone=is_ddl_alone)
        except PositionLostError as error:
            raise PositionLostError(
                f"client {client_id} cannot go on: {error}; say with `penstock position set` where it does"
            ) from None

    def ack(self, client_id: int, batch_id: int) -> None:
        """Only of the first outstanding batch."""
        with self._session(client_id):
            batch = self._meta.ack_batch(client_id, batch_id)
            self.rows.ack(client_id, batch_id)
            name, sequence = str(client_id), batch.end_sequence
            try:
                self._store.ack(name, batch.end, sequence if sequence >= 0 else None)
            except StoreError:
                _, got, _ = self._store.sequences(name)
                if sequence <= got:
                    raise
                # The source's connection broke inside of the batch's last transaction, which comes again.
                if batch.ack is not None:
                    self._store.release(name, batch.ack.position)

    def wait(self, client_id: int, size: BatchSize, timeout_s: float) -> bool:
        """Until there is a batch of that size; whether there is."""
        self._check_subscribed(client_id)
        return self._store.wait(str(client_id), size, timeout_s)

    def outstanding(self, client_id: int) -> list[int]:
        """Ids of batches that were got and not acked, in their order."""
        return list(self._meta.batches(client_id))

    def batches(self, client_id: int) -> dict[int, BatchRange]:
        """The same, with what each holds."""
        return self._meta.batches(client_id)

    def cursors(self) -> dict[int, Position]:
        """Of all that have one."""
        return {client_id: cursor.position for client_id, cursor in self._meta.cursors().items()}

    def subscriptions(self) -> dict[int, str]:
        """Filters by client."""
        return self._meta.subscriptions()

    def rollback(self, client_id: int, batch_id: int | None = None) -> None:
        """Everything that is outstanding comes again, also what was got after the batch that is rolled back."""
        with self._session(client_id):
            if batch_id is not None:
                self._meta.rollback_batch(client_id, batch_id)
            self._meta.clear_batches(client_id)
            self._store.rollback(str(client_id))
            self.rows.forget(client_id)

    def _noted(self, client_id: int, batch: Batch) -> int:
        try:
            return self._meta.add_batch(client_id, self._range(batch))
        except PenstockError:
            # What was got and is not known to be outstanding would never come again.
            self._store.rollback(str(client_id))
            with suppress(PenstockError):
                self._meta.clear_batches(client_id)
            raise

    def _range(self, batch: Batch) -> BatchRange:
        ack = None
        if batch.ack is not None:
            ended = next(block for block in reversed(batch.blocks) if block.boundaries.size)
            server_id = int(ended.column("server_id")[ended.boundaries[-1]])
            ack = self._cursor(batch.ack, server_id)
        return BatchRange(batch.start, batch.end, batch.end_sequence, ack)

    def _cursor(self, position: Position, server_id: int = 0) -> Cursor:
        return Cursor(position, server_id=server_id, source=self._source())

    def _session(self, client_id: int) -> threading.Lock:
        with self._lock:
            return self._sessions.setdefault(client_id, threading.Lock())

    def _check_subscribed(self, client_id: int) -> None:
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
            table_filter(text)
        except ConfigurationError as error:
            destination = self._meta.destination
            log.warning("client filter invalid destination=%s client=%d reason=%s", destination, client_id, error)
            return ""
        return text
