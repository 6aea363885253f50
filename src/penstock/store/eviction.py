"""Backpressure and eviction: for whom a full store makes capture wait, and what is freed.

All methods of StoreSpace are called while the store's lock is held.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.store.block_info import BlockEntries
from penstock.store.block_storage import BlockStorage
from penstock.store.catch_up import LogReader, evict
from penstock.store.client import StoreClient
from penstock.store.client_registry import ClientRegistry
from penstock.store.store_index import StoreIndex

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """Decides for which clients a full store makes capture wait. A client that has not been connected for
    `absent_after_s` is evicted while others are connected. Of the connected clients the slowest makes capture wait;
    with `evicts_slow` it is evicted while another one has acked everything."""

    absent_after_s: float = 5.0
    evicts_slow: bool = False


class StoreSpace:
    """Makes room in a full store for the next put: frees what all clients have acked, and evicts the clients that may
    be evicted."""

    def __init__(
        self,
        storage: BlockStorage,
        index: StoreIndex,
        registry: ClientRegistry,
        clock: Callable[[], float],
        *,
        destination: str,
        source_log: LogReader | None,
        policy: EvictionPolicy,
    ) -> None:
        """Clients are evicted only where there is a source log that serves them then."""
        self._storage, self._index, self._registry, self._clock = storage, index, registry, clock
        self._destination, self._log, self._policy = destination, source_log, policy

    def has_room(self, entries: Sequence[BlockEntries]) -> bool:
        """Return whether a put has room; evict clients for it if that is allowed."""
        self._registry.is_full = not self._can_take(entries)
        return not self._registry.is_full

    def _can_take(self, entries: Sequence[BlockEntries]) -> bool:
        registry, index = self._registry, self._index
        if self._fits(entries):
            return True
        if self.make_room():
            self.free()
            return self._can_take(entries)
        # A client that wants whole transactions can ack nothing before the first is complete: waiting would never end.
        waiting = [client for client in registry.holding if client.wants_whole]
        stuck = [client for client in waiting if index.boundary.sequence <= client.ack.sequence]
        if not stuck or not all(client.reads_log for client in stuck):
            return bool(stuck)
        for client in stuck:
            client.move(get=index.put, ack=index.put)
        self.free()
        return self._fits(entries)

    def _fits(self, entries: Sequence[BlockEntries]) -> bool:
        waiting = self._index.put.sequence - self._registry.lowest_ack.sequence
        return self._storage.has_room(waiting, entries)

    def make_room(self) -> bool:
        """Evict the slowest clients, if they may be evicted and that helps others; return whether there were any.

        A client with a cursor resumes from the source's binlog automatically; a reader that keeps its own position has
        to join again with it.
        """
        registry, now_s = self._registry, self._clock()
        slowest = registry.slowest
        connected = [
            client for client in registry.holding if client not in slowest and not registry.is_absent(client, now_s)
        ]
        has_drained = any(client.ack.sequence == self._index.put.sequence for client in connected)
        dropped = [client for client in slowest if _may_drop(client, now_s, has_drained=has_drained)]
        for client in dropped:
            client.lose(f"the store was full, and {client.name} was evicted")
            log.info(
                "reader that keeps its own position evicted from full store destination=%s client=%s position=%s: it"
                " has to join again with that position, and is then served from the source's binlog",
                self._destination, client.name, client.position,
            )  # fmt: skip
        remaining = [client for client in slowest if client not in dropped]
        can_wait = self._storage.is_persistent and not self._storage.problem  # the disk makes room by itself
        if can_wait or not connected or not all(self._may_evict(client, now_s, has_drained) for client in remaining):
            return bool(dropped)
        evicted = [client for client in remaining if self._evict(client)]
        return bool(evicted or dropped)

    def _may_evict(self, client: StoreClient, now_s: float, has_drained: bool = True) -> bool:
        """Return whether a client with a cursor may be served from the source's log instead."""
        has_own_position = client.evict_after_s is not None
        if self._log is None or client.wants_whole or has_own_position or client.acked_ahead is not None:
            return False
        return self._registry.is_absent(client, now_s) or (self._policy.evicts_slow and has_drained)

    def _evict(self, client: StoreClient) -> bool:
        if self._log is None or not evict(client, self._log):
            return False
        log.info(
            "client with a cursor evicted from store destination=%s client=%s position=%s: the store no longer holds"
            " its events, it is served from the source's binlog until it has caught up",
            self._destination, client.name, client.position,
        )  # fmt: skip
        return True

    def free(self) -> None:
        """Free what no client needs. A client whose blocks went beyond the limits is evicted, or lost."""
        registry = self._registry
        registry.is_full = False
        is_persistent = self._storage.is_persistent
        ends = [client.done if is_persistent else client.ack for client in registry.holding]
        freed = self._index.free(min((end.sequence for end in ends), default=-1))
        if freed is None:
            return
        now_s = self._clock()
        for client in registry.holding:
            if client.ack.sequence < freed.last:
                if self._may_evict(client, now_s) and self._evict(client):
                    continue
                client.lose(
                    f"entries up to {freed.end} were removed to keep the store within its limits, and it had acked"
                    f" up to {client.ack.position} only; let it subscribe again, and it reads the rest from the"
                    " source's log, or forget it"
                )


def _may_drop(client: StoreClient, now_s: float, *, has_drained: bool) -> bool:
    """Return whether a client that keeps its own position may be dropped, because it is idle or blocks another."""
    if client.evict_after_s is None:
        return False
    return has_drained or now_s - client.seen_s > client.evict_after_s
