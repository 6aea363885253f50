"""The clients of a store, and what is kept for them. Everything here is called inside the store's gate."""

from collections.abc import Callable, Sequence

from penstock.store.batch import BatchSize
from penstock.store.books import Books
from penstock.store.client import Client, ClientState, Place
from penstock.store.held import Entries
from penstock.store.shelf import Shelf

IDLE_S = 300.0


class Roster:
    """By name."""

    def __init__(self, shelf: Shelf, books: Books, clock: Callable[[], float]) -> None:
        self._shelf, self._books, self._clock = shelf, books, clock
        self.clients: dict[str, Client] = {}
        self.is_full = False  # the last put found no room

    def state(self, client: Client, now_s: float) -> ClientState:
        if client.lost:
            return ClientState.LOST
        if now_s - client.seen_s > IDLE_S:
            return ClientState.IDLE
        is_near = not client.is_behind and self._shelf.is_near(client.get.sequence + 1)
        return ClientState.LIVE if is_near else ClientState.LAGGING

    @property
    def holding(self) -> list[Client]:
        """Clients for which something is kept."""
        return [client for client in self.clients.values() if not client.lost and not client.is_far]

    @property
    def _acked(self) -> Place:
        """By all of them."""
        places = [client.ack for client in self.holding]
        return min(places, key=lambda place: place.sequence, default=self._books.origin)

    def has_room(self, entries: Sequence[Entries]) -> bool:
        self.is_full = not self._can_take(entries)
        return not self.is_full

    def _can_take(self, entries: Sequence[Entries]) -> bool:
        if self._shelf.has_room(self._books.put.sequence - self._acked.sequence, entries):
            return True
        if self._put_out():
            self.free()
            return self._can_take(entries)
        # One that wants whole transactions can ack nothing before the first is here: waiting would be for ever.
        waiting = [client for client in self.holding if client.wants_whole]
        stuck = [client for client in waiting if self._books.boundary.sequence <= client.ack.sequence]
        if not stuck or not all(client.reads_log for client in stuck):
            return bool(stuck)
        for client in stuck:
            client.move(get=self._books.put, ack=self._books.put)
        self.free()
        return self._shelf.has_room(self._books.put.sequence - self._acked.sequence, entries)

    def _put_out(self) -> bool:
        """The slowest clients, if they give way, and others wait for what has no room, or they themselves are silent.
        What they miss they read from the source's log."""
        holding, now_s = self.holding, self._clock()
        lowest = min((client.ack.sequence for client in holding), default=0)
        has_hungry = any(client.ack.sequence == self._books.put.sequence > lowest for client in holding)
        slowest = [client for client in holding if client.ack.sequence == lowest and client.gives_way_s is not None]
        out = [one for one in slowest if has_hungry or now_s - one.seen_s > (one.gives_way_s or 0)]
        for client in out:
            client.lost = f"the store was full, and {client.name} gave way"
        return bool(out)

    def is_ready(self, client: Client, size: BatchSize) -> bool:
        books = self._books
        if client.lost or client.is_behind or self.clients.get(client.name) is not client:
            return True
        if client.ahead is not None:
            return False
        if client.wants_whole:
            return books.boundary.sequence > client.get.sequence
        if self.is_full and books.put.sequence > client.get.sequence:
            return True  # a batch larger than the ring would never come
        if size.unit == "items":
            return books.put.sequence - client.get.sequence >= size.count
        return books.put.bytes - client.get.bytes >= size.bytes

    def pass_by(self) -> None:
        """Clients that have acked what comes again do not get it again."""
        for client in self.clients.values():
            if client.ahead is None:
                continue
            place = self._books.boundary_at(client.ahead)
            if place is not None and place.sequence > client.ack.sequence:
                client.move(get=place, ack=place)
                client.safe = place
                client.kept = place if client.kept is not None else None
            if self._books.boundary.position >= client.ahead:
                client.ahead = None

    def move(self, client: Client, ack: Place) -> None:
        client.move(ack=ack)
        client.safe = self._books.last_boundary(client.safe, ack.sequence)

    def free(self) -> None:
        self.is_full = False
        places = [client.done if self._shelf.outlives else client.ack for client in self.holding]
        dropped = self._books.free(min((place.sequence for place in places), default=-1))
        if dropped is None:
            return
        for client in self.holding:
            if client.ack.sequence < dropped.last:
                client.lost = (
                    f"entries up to {dropped.end} were removed to keep the store within its limits, and it had acked"
                    f" up to {client.ack.position} only; let it subscribe again, and it reads the rest from the"
                    " source's log, or forget it"
                )
