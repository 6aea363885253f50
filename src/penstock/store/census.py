"""What a store holds at one moment, for whom, and who keeps it from going on."""

from dataclasses import dataclass

from penstock.model import Position
from penstock.store.books import Books
from penstock.store.client import Client, ClientState
from penstock.store.roster import Roster
from penstock.store.shelf import Shelf


@dataclass(frozen=True, slots=True)
class CountedClient:
    name: str
    state: ClientState
    got: Position
    acked: Position
    waiting_entries: int  # put, and not acked by it
    waiting_bytes: int
    is_holding: bool  # no other has acked less: the oldest entries are kept for it
    from_log: bool  # it gets what lies before the store, from the source's log
    idle_s: float  # since it asked last
    lost: str  # why
    is_connected: bool = True


@dataclass(frozen=True, slots=True)
class Census:
    first: Position
    latest: Position
    put: int  # sequence of the last entry
    acked: int  # by all
    put_bytes: int  # of all that ever came
    acked_bytes: int
    held_bytes: int
    is_full: bool
    problem: str  # why there is no room, when it is not for clients
    clients: tuple[CountedClient, ...]

    @property
    def holders(self) -> list[str]:
        """Names of the clients for which the oldest entries are kept; none when all have acked all."""
        return [client.name for client in self.clients if client.is_holding]


def take_census(shelf: Shelf, books: Books, roster: Roster, now_s: float) -> Census:
    """Inside the store's gate."""
    put, holding = books.put, roster.holding
    lowest = min((client.ack for client in holding), key=lambda place: place.sequence, default=put)

    def counted(client: Client) -> CountedClient:
        is_holding = client in holding and client.ack.sequence == lowest.sequence < put.sequence
        catch_up = client.catch_up
        return CountedClient(
            client.name,
            roster.state(client, now_s),
            client.position,
            client.ack.position if catch_up is None else catch_up.acked,
            put.sequence - client.ack.sequence,
            put.bytes - client.ack.bytes,
            is_holding,
            client.is_behind,
            now_s - client.seen_s,
            client.lost,
            client.absent_since_s is None,
        )

    clients = tuple(counted(client) for client in roster.clients.values())
    return Census(
        books.origin.position,
        books.boundary.position,
        put.sequence,
        lowest.sequence,
        put.bytes,
        lowest.bytes,
        shelf.size_bytes,
        roster.is_full,
        shelf.problem,
        clients,
    )
