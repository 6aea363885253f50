"""Admission of clients: a client joins at its start in the store, or in the source's log before the store begins."""

from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.block_index import IndexSnapshot
from penstock.store.block_info import EntryPosition
from penstock.store.block_storage import BlockGoneError, BlockStorage
from penstock.store.catch_up import LogReader, begin_client
from penstock.store.client import StoreClient
from penstock.store.client_registry import ClientRegistry
from penstock.store.position_reader import TRIES
from penstock.store.rows_filter import TableFilter
from penstock.store.start import Start, StoreView
from penstock.store.store_index import StoreIndex
from penstock.store.store_lock import StoreLock


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The options of a client; the fields are explained at `EventStore.add_client`."""

    table_filter: TableFilter | None = None
    wants_whole: bool = False
    reads_log: bool = False
    evict_after_s: float | None = None
    persists_later: bool = False


class ClientAdmission:
    """Adds clients to a store. Finding the start of one may read the source's log or many files; others do not wait."""

    def __init__(
        self,
        lock: StoreLock,
        storage: BlockStorage,
        index: StoreIndex,
        registry: ClientRegistry,
        source_log: LogReader | None,
    ) -> None:
        self._lock, self._storage, self._log = lock, storage, source_log
        self._index, self._registry = index, registry  # protected by the lock

    def add(self, name: str, start: Start | None, options: ClientOptions) -> Position:
        """Add a client and return its position. One that is known stays where it is, with the new options."""
        for _ in range(TRIES):
            with self._lock:
                known = self._registry.clients.get(name)
                if known is not None and known.lost_reason and known.evict_after_s is not None:
                    del self._registry.clients[name]
                elif known is not None:
                    return self._register(known, options)
            start = self._translate(start)
            with self._lock:
                index, blocks = self._index, IndexSnapshot(self._storage.blocks, self._lock)
                wanted = start.position if start is not None else None
                origin, boundary = index.origin_for(wanted) if wanted else index.origin, index.boundary
            with suppress(BlockGoneError):
                view = StoreView(blocks, self._storage.entries, origin, boundary)
                client = begin_client(name, start or Start.stored(), view, self._log, self._origin_for)
                with self._lock:
                    known = self._registry.clients.get(name)
                    is_stored = self._index.origin.sequence <= client.get.sequence <= self._index.put.sequence
                    if known is not None or is_stored or client.is_catching_up:
                        return self._register(known or client, options)
        raise StoreError(
            f"client {name} cannot join: what it would begin with went {TRIES} times while it was looked for"
        )

    def _register(self, client: StoreClient, options: ClientOptions) -> Position:
        """Register a client; called with the lock held."""
        self._registry.clients[client.name] = client
        client.filter, client.wants_whole = options.table_filter, options.wants_whole
        client.seen_s = self._lock.clock()
        client.reads_log, client.evict_after_s = options.reads_log, options.evict_after_s
        client.persisted = (client.persisted or client.acked_boundary) if options.persists_later else None
        return client.position

    def _translate(self, start: Start | None) -> Start | None:
        """Translate a position of an earlier log, which the store does not have any more, to the present log."""
        if self._log is None or start is None or start.position is None:
            return start
        with self._lock:
            # The store's own epoch counts: the log may be ahead of it for a moment, while the source is switched.
            if start.position.epoch >= self._index.put.position.epoch or self._index.covers(start.position):
                return start
        return replace(start, position=self._log.translate(start.position))

    def _origin_for(self, position: Position) -> EntryPosition:
        with self._lock:
            return self._index.origin_for(position)
