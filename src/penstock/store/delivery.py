"""Delivery to clients: get, ack and roll back, each client by its own name.

A client that is behind what the store has is served from the source's log until it has caught up.
"""

from contextlib import suppress
from dataclasses import replace

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.block_storage import BlockGoneError, BlockStorage
from penstock.store.catch_up import CatchUp
from penstock.store.client import StoreClient
from penstock.store.client_registry import ClientRegistry
from penstock.store.cut import cut_batch
from penstock.store.eviction import StoreSpace
from penstock.store.position_reader import TRIES
from penstock.store.store_index import StoreIndex
from penstock.store.store_lock import StoreLock

_MAX_APPROACHES = 3  # how often a client may reach the store's begin and find that it has moved on


class ClientDelivery:
    """Delivers batches of events from the store to its clients, and takes their acks. Any thread may call it for any
    client; of several concurrent gets of the same client, one runs at a time."""

    def __init__(
        self, lock: StoreLock, storage: BlockStorage, index: StoreIndex, registry: ClientRegistry, space: StoreSpace
    ) -> None:
        self._lock, self._storage = lock, storage
        self._index, self._registry, self._space = index, registry, space  # protected by the lock

    def get(self, name: str, size: BatchSize, timeout_s: float | None, *, is_ddl_alone: bool) -> Batch | None:
        """Return the next batch of a client, from the store or from the source's log; None when there is nothing by the
        deadline. `EventStore.get` explains the arguments."""
        client = self._client(name)
        deadline, tries = self._lock.deadline(timeout_s), 0
        with client.busy:
            while True:
                if client.is_behind:
                    batch = self._get_from_log(client, size, is_ddl_alone=is_ddl_alone)
                    if batch is not None:
                        return batch
                    continue
                with self._lock:
                    self._lock.wait(lambda: self._registry.is_ready(client, size), self._lock.remaining_s(deadline))
                    self._check_live(client)
                    after, rewinds = client.get, client.rewinds
                    last = self._index.boundary.sequence if client.wants_whole else self._index.put.sequence
                    if client.is_behind:
                        continue
                    if client.acked_ahead is not None or last <= after.sequence:
                        return None
                    blocks = self._index.blocks_for_batch(client, size)
                try:
                    batch, end = cut_batch(
                        client, after, blocks, self._storage.entries, size, last, is_ddl_alone=is_ddl_alone
                    )
                except BlockGoneError:
                    # Discarded, or freed beyond the limits: the next look says which.
                    tries += 1
                    if tries == TRIES:
                        raise
                    continue
                with self._lock:
                    self._check_live(client)
                    if client.rewinds == rewinds:
                        client.deliver(end, batch.ack)
                        return batch

    def wait(self, name: str, size: BatchSize, timeout_s: float | None) -> bool:
        """Wait until a get of the client would not wait; return whether that was in time. Nothing is delivered."""
        client = self._client(name)
        with self._lock:
            return self._lock.wait(lambda: self._registry.is_ready(client, size), timeout_s)

    def ack(self, name: str, end: Position, sequence: int | None) -> None:
        """Ack everything up to the entry that ends at `end`, which must be delivered and not acked yet."""
        client = self._client(name)
        self._load(end)
        with self._lock:
            self._check_live(client, may_fail=False)
            if client.catch_up is not None:
                if not client.catch_up.ack(end):
                    raise StoreError(
                        f"client {name} cannot ack {end}: no batch that it got and has not acked ends there"
                    )
                client.leave_catch_up()
                return
            self._registry.ack(client, self._index.find_delivered(client, end, sequence))
            self._space.free()
            self._lock.notify()

    def release(self, name: str, end: Position) -> None:
        """Ack everything up to the last transaction boundary at or before `end`; nothing when that is acked."""
        client = self._client(name)
        self._load(end)
        with self._lock:
            boundary = self._index.boundary.position
            if end > boundary:
                raise StoreError(f"cannot ack {end}: the store has transactions up to {boundary} only")
            acked = self._index.boundary_at(end)
            if acked is not None and acked.sequence > client.ack.sequence:
                self._registry.ack(client, acked)
                self._space.free()
                self._lock.notify()

    def confirm_persisted(self, name: str, position: Position) -> None:
        """Note that the client's ack up to `position` is persisted and survives a crash."""
        self._load(position)
        with self._lock:
            client = self._registry.clients.get(name)
            if client is None or client.persisted is None or client.is_catching_up:
                return
            is_newest = position >= client.acked_boundary.position
            boundary = client.acked_boundary if is_newest else self._index.boundary_at(position)
            if boundary is not None and boundary.sequence > client.persisted.sequence:
                client.persisted = boundary
                self._space.free()
                self._lock.notify()

    def rollback(self, name: str) -> None:
        """Let the next get of a client start after its last ack."""
        client = self._client(name)
        with self._lock:
            client.rewind()
            self._lock.notify()

    def sequences(self, name: str) -> tuple[int, int, int]:
        """Return three sequences: of the last entry that was put, that the client got, and that it has acked."""
        client = self._client(name)
        with self._lock:
            return self._index.put.sequence, client.get.sequence, client.ack.sequence

    # -- from the source's log

    def _get_from_log(self, client: StoreClient, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """Return the next batch of a client that is behind the store; None when it has caught up, or rolled back."""
        with self._lock:
            client.is_reading_log = True
        try:
            return self._catch_up(client, size, is_ddl_alone=is_ddl_alone)
        finally:
            with self._lock:
                client.is_reading_log = False

    def _catch_up(self, client: StoreClient, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        with self._lock:
            self._check_live(client)
            catch_up = client.catch_up
            if catch_up is None:
                return None
            is_other_log = catch_up.boundary.epoch != self._index.put.position.epoch
        if is_other_log:
            translated = catch_up.translate()
            # The source was switched. From here on all comes from the new log, up to where the store continues in it.
            with self._lock:
                if client.catch_up is catch_up:
                    client.start_catch_up(translated)
            return None
        with self._lock:
            is_far = client.is_catching_up
            target = self._index.origin_for(catch_up.got).position if is_far else client.ack.position
        batch = catch_up.get(client, target, size, is_ddl_alone=is_ddl_alone)
        with self._lock:
            self._check_live(client)
            if client.catch_up is not catch_up:
                return None  # rolled back: it is redelivered
            if client.is_catching_up and catch_up.got >= target:
                self._approach(client, catch_up)
            client.leave_catch_up()
            return batch

    def _approach(self, client: StoreClient, catch_up: CatchUp) -> None:
        """Join a client that has reached the store's begin. If that has moved on too often, the store waits for it."""
        begin, is_boundary = self._index.origin_for(catch_up.got), not self._index.is_origin_open
        if client.get.position <= catch_up.got and client.get.sequence > begin.sequence:
            # As after an eviction: it got this from the store, which still has what follows.
            begin, is_boundary = client.get, False
        approaches = client.count_approach()
        if catch_up.got >= begin.position or approaches == _MAX_APPROACHES:
            client.join(begin, begin if is_boundary else replace(begin, position=catch_up.last_boundary))

    # -- looking up

    def _load(self, end: Position) -> None:
        """Read the blocks around the acked position from disk into the cache, before `ack` takes the store's lock:
        while the lock is held, nothing waits for the disk."""
        if not self._storage.is_persistent:
            return
        with self._lock:
            blocks = self._index.blocks_near(end)
        for info in blocks:
            with suppress(BlockGoneError):
                self._storage.entries(info)

    def _client(self, name: str) -> StoreClient:
        with self._lock:
            client = self._registry.clients.get(name)
            if client is None:
                if self._lock.failure is not None and self._lock.failure.transient:
                    raise self._lock.failure  # a stopped store has no clients any more, and this is why
                names = ", ".join(sorted(self._registry.clients)) or "none"
                raise StoreError(f"there is no client {name}; there is {names}")
            client.seen_s = self._lock.clock()
            return client

    def _check_live(self, client: StoreClient, *, may_fail: bool = True) -> None:
        """Raise why a client cannot be served; called with the lock held."""
        if may_fail:
            self._lock.check()
        if client.lost_reason:
            raise StoreError(f"client {client.name} is lost: {client.lost_reason}")
        if self._registry.clients.get(client.name) is not client:
            raise StoreError(f"client {client.name} was forgotten")
