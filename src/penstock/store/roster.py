"""The clients of a store, and what is kept for them. Everything here is called inside the store's gate."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.store.batch import BatchSize
from penstock.store.books import Books
from penstock.store.catch_up import LogReader, evict
from penstock.store.client import Client, ClientState, Place
from penstock.store.held import Entries
from penstock.store.shelf import Shelf

log = logging.getLogger(__name__)

IDLE_S = 300.0


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """For whom a full store makes capture wait.

    A client that has not been connected for `absent_after_s` does not count while others are connected. Of those that
    are connected the slowest counts, but with `evicts_slow` not while another one has acked everything.
    """

    absent_after_s: float = 5.0
    evicts_slow: bool = False


class Roster:
    """By name."""

    def __init__(
        self,
        shelf: Shelf,
        books: Books,
        clock: Callable[[], float],
        log: LogReader | None = None,
        policy: EvictionPolicy | None = None,
    ) -> None:
        """Clients are evicted only where there is a log that serves them then."""
        self._shelf, self._books, self._clock = shelf, books, clock
        self._log, self._policy = log, policy or EvictionPolicy()
        self.clients: dict[str, Client] = {}
        self.is_full = False  # the last put found no room

    def state(self, client: Client, now_s: float) -> ClientState:
        if client.lost:
            return ClientState.LOST
        if self.is_absent(client, now_s):
            return ClientState.ABSENT
        if now_s - client.seen_s > IDLE_S:
            return ClientState.IDLE
        is_near = not client.is_behind and self._shelf.is_near(client.get.sequence + 1)
        return ClientState.LIVE if is_near else ClientState.LAGGING

    def is_absent(self, client: Client, now_s: float) -> bool:
        """Whether it is not connected, and has not called for longer than a reconnect takes."""
        if client.absent_since_s is None:
            return False
        return now_s - max(client.absent_since_s, client.seen_s) > self._policy.absent_after_s

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
        if self.make_room():
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

    def make_room(self) -> bool:
        """Evict the slowest clients, if they may be evicted and that helps others; return whether there were any.

        A client with a cursor resumes from the source's log by itself; who keeps his position himself has to join again
        with it.
        """
        holding, now_s = self.holding, self._clock()
        lowest = min((client.ack.sequence for client in holding), default=0)
        slowest = [client for client in holding if client.ack.sequence == lowest]
        others = [one for one in holding if one.ack.sequence > lowest and not self.is_absent(one, now_s)]
        has_hungry = any(client.ack.sequence == self._books.put.sequence for client in others)
        out = [one for one in slowest if one.gives_way_s is not None]
        out = [one for one in out if has_hungry or now_s - one.seen_s > (one.gives_way_s or 0)]
        for client in out:
            client.lost = f"the store was full, and {client.name} gave way"
        stay = [client for client in slowest if client not in out]
        can_wait = self._shelf.outlives and not self._shelf.problem  # it makes room by itself, on the disk
        if can_wait or not others or not all(self._may_evict(one, now_s, has_hungry=has_hungry) for one in stay):
            return bool(out)
        evicted = [client for client in stay if self._evict(client)]
        return bool(evicted or out)

    def _may_evict(self, client: Client, now_s: float, *, has_hungry: bool = True) -> bool:
        """Whether a client with a cursor may be served from the source's log instead."""
        if self._log is None or client.wants_whole or client.gives_way_s is not None or client.ahead is not None:
            return False
        return self.is_absent(client, now_s) or (self._policy.evicts_slow and has_hungry)

    def _evict(self, client: Client) -> bool:
        if self._log is None or not evict(client, self._log):
            return False
        log.info("client evicted client=%s position=%s: the source's log serves it", client.name, client.position)
        return True

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
        now_s = self._clock()
        for client in self.holding:
            if client.ack.sequence < dropped.last:
                if self._may_evict(client, now_s) and self._evict(client):
                    continue
                client.lost = (
                    f"entries up to {dropped.end} were removed to keep the store within its limits, and it had acked"
                    f" up to {client.ack.position} only; let it subscribe again, and it reads the rest from the"
                    " source's log, or forget it"
                )
