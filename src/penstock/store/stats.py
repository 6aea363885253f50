"""What a store holds at one moment, for which clients, and which client blocks it."""

from dataclasses import dataclass

from penstock.model import Position
from penstock.store.block_storage import BlockStorage
from penstock.store.client import ClientState, StoreClient
from penstock.store.client_registry import ClientRegistry
from penstock.store.store_index import StoreIndex


@dataclass(frozen=True, slots=True)
class ClientStats:
    """The progress of one client of a store, and what the store holds for it."""

    name: str
    state: ClientState
    got: Position
    acked: Position
    waiting_entries: int  # put, and not acked by it
    waiting_bytes: int
    is_holding: bool  # no other has acked less: the store holds the oldest entries for it
    from_log: bool  # it gets what lies before the store, from the source's log
    idle_s: float  # since it asked last
    lost: str  # why
    is_connected: bool = True


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds at one moment, and how far its clients are."""

    first: Position
    latest: Position
    put: int  # sequence of the last entry
    acked: int  # by all
    put_bytes: int  # of all that ever came
    acked_bytes: int
    stored_bytes: int
    is_full: bool
    problem: str  # why there is no room, when it is not for clients
    clients: tuple[ClientStats, ...]

    @property
    def holders(self) -> list[str]:
        """The names of the clients for which the oldest entries are held; none when all have acked
        everything."""
        return [client.name for client in self.clients if client.is_holding]


def collect_stats(storage: BlockStorage, index: StoreIndex, registry: ClientRegistry, now_s: float) -> StoreStats:
    """Return the statistics of a store; called under the store's lock."""
    put, holding = index.put, registry.holding
    lowest = min((client.ack for client in holding), key=lambda ack: ack.sequence, default=put)

    def summarize(client: StoreClient) -> ClientStats:
        is_holding = client in holding and client.ack.sequence == lowest.sequence < put.sequence
        catch_up = client.catch_up
        return ClientStats(
            client.name,
            registry.state(client, now_s),
            client.position,
            client.ack.position if catch_up is None else catch_up.acked,
            put.sequence - client.ack.sequence,
            put.bytes - client.ack.bytes,
            is_holding,
            client.is_behind,
            now_s - client.seen_s,
            client.lost_reason,
            client.absent_since_s is None,
        )

    clients = tuple(summarize(client) for client in registry.clients.values())
    return StoreStats(
        index.origin.position,
        index.boundary.position,
        put.sequence,
        lowest.sequence,
        put.bytes,
        lowest.bytes,
        storage.size_bytes,
        registry.is_full,
        storage.problem,
        clients,
    )
