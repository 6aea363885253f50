"""The clients of a store, by name. Its methods are called while the store's lock is held."""

from collections.abc import Callable

from penstock.store.batch import BatchSize
from penstock.store.block_info import EntryPosition
from penstock.store.block_storage import BlockStorage
from penstock.store.client import ClientState, StoreClient
from penstock.store.store_index import StoreIndex

IDLE_S = 300.0


class ClientRegistry:
    """Knows every client, and answers what the store needs to know about all of them."""

    def __init__(
        self, storage: BlockStorage, index: StoreIndex, clock: Callable[[], float], *, absent_after_s: float
    ) -> None:
        self._storage, self._index, self._clock = storage, index, clock
        self._absent_after_s = absent_after_s
        self.clients: dict[str, StoreClient] = {}
        self.is_full = False  # the last put found no room

    def state(self, client: StoreClient, now_s: float) -> ClientState:
        """Return the state of a client, as operators see it."""
        if client.lost_reason:
            return ClientState.LOST
        if self.is_absent(client, now_s):
            return ClientState.ABSENT
        if now_s - client.seen_s > IDLE_S:
            return ClientState.IDLE
        is_near = not client.is_behind and self._storage.is_near(client.get.sequence + 1)
        return ClientState.LIVE if is_near else ClientState.LAGGING

    def is_absent(self, client: StoreClient, now_s: float) -> bool:
        """Return whether a client is not connected, and has not called for longer than a reconnect takes."""
        if client.absent_since_s is None:
            return False
        return now_s - max(client.absent_since_s, client.seen_s) > self._absent_after_s

    @property
    def holding(self) -> list[StoreClient]:
        """The clients for which the store holds blocks."""
        return [client for client in self.clients.values() if client.is_holding]

    @property
    def lowest_ack(self) -> EntryPosition:
        """The entry up to which all clients have acked for which the store holds blocks; the store's origin when there
        is no such client."""
        acks = [client.ack for client in self.holding]
        return min(acks, key=lambda ack: ack.sequence, default=self._index.origin)

    @property
    def slowest(self) -> list[StoreClient]:
        """The clients that have acked least, of those for which the store holds blocks."""
        holding = self.holding
        lowest = min((client.ack.sequence for client in holding), default=0)
        return [client for client in holding if client.ack.sequence == lowest]

    def is_ready(self, client: StoreClient, size: BatchSize) -> bool:
        """Return whether a get of this client would not have to wait."""
        index = self._index
        if client.lost_reason or client.is_behind or self.clients.get(client.name) is not client:
            return True
        if client.acked_ahead is not None:
            return False
        if client.wants_whole:
            return index.boundary.sequence > client.get.sequence
        if self.is_full and index.put.sequence > client.get.sequence:
            return True  # a batch larger than the store would never become full
        if size.unit == "items":
            return index.put.sequence - client.get.sequence >= size.count
        return index.put.bytes - client.get.bytes >= size.bytes

    def skip_acked(self) -> None:
        """Move clients over entries that they have acked already and that capture has read again."""
        for client in self.clients.values():
            acked_ahead = client.acked_ahead
            if acked_ahead is None:
                continue
            boundary = self._index.boundary_at(acked_ahead)
            if boundary is not None and boundary.sequence > client.ack.sequence:
                client.move(get=boundary, ack=boundary)
                client.set_acked_boundary(boundary)
            if self._index.boundary.position >= acked_ahead:
                client.wait_for_store(None)

    def ack(self, client: StoreClient, end: EntryPosition) -> None:
        """Note that a client has acked up to `end`."""
        client.move(ack=end)
        client.acked_boundary = self._index.last_boundary(client.acked_boundary, end.sequence)
