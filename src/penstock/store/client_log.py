"""What clients do with a store: get, ack, roll back, each by its own name.

A client that is behind what the store has is served from the source's log until it has caught up.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.catch_up import CatchUp, LogReader
from penstock.store.client import Client
from penstock.store.cut import cut
from penstock.store.gate import Gate
from penstock.store.roster import EvictionPolicy, Roster
from penstock.store.shelf import BlockGoneError, Shelf
from penstock.store.stored_log import TRIES, StoredLog

_ROUNDS = 3  # in which a client may reach the begin of the store and find that it has moved on


class ClientLog(StoredLog):
    """Any thread may ask for any client; one get of a client at a time plans its batch."""

    def __init__(
        self,
        shelf: Shelf,
        start: Position,
        *,
        source_log: LogReader | None = None,
        clock: Callable[[], float] = time.monotonic,
        policy: EvictionPolicy | None = None,
    ) -> None:
        super().__init__(shelf, start, Gate(clock))
        self._log = source_log
        self._roster = Roster(shelf, self._books, clock, source_log, policy)  # as all below protected by the gate

    def get(
        self, name: str, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> Batch | None:
        """The next entries; what is there at the deadline when that comes first, None for nothing.

        Without a timeout it waits for a full batch. With `is_ddl_alone` a statement is a batch of its own.
        """
        client = self._client(name)
        deadline, tries = self._gate.deadline(timeout_s), 0
        with client.busy:
            while True:
                if client.is_behind:
                    batch = self._get_from_log(client, size, is_ddl_alone=is_ddl_alone)
                    if batch is not None:
                        return batch
                    continue
                with self._gate:
                    self._gate.wait(lambda: self._roster.is_ready(client, size), self._gate.left(deadline))
                    self._check_live(client)
                    after, rewinds = client.get, client.rewinds
                    last = self._books.boundary.sequence if client.wants_whole else self._books.put.sequence
                    if client.is_behind:
                        continue
                    if client.ahead is not None or last <= after.sequence:
                        return None
                    parts = self._books.parts(client, size)
                try:
                    found = cut(client, after, parts, self._shelf.entries, size, last, is_ddl_alone=is_ddl_alone)
                except BlockGoneError:
                    # Taken away again, or beyond the limits: the next look says which.
                    tries += 1
                    if tries == TRIES:
                        raise
                    continue
                with self._gate:
                    self._check_live(client)
                    if client.rewinds == rewinds:
                        batch, place = found
                        client.deliver(place, batch.ack)
                        return batch

    def wait(self, name: str, size: BatchSize, timeout_s: float | None) -> bool:
        """Until a get would not wait, or for so long; nothing is got."""
        client = self._client(name)
        with self._gate:
            return self._gate.wait(lambda: self._roster.is_ready(client, size), timeout_s)

    def _get_from_log(self, client: Client, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """The next batch of a client that is behind the store; None when it has caught up, or was rolled back."""
        with self._gate:
            client.is_reading_log = True
        try:
            return self._catch_up(client, size, is_ddl_alone=is_ddl_alone)
        finally:
            with self._gate:
                client.is_reading_log = False

    def _catch_up(self, client: Client, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        with self._gate:
            self._check_live(client)
            catch_up = client.catch_up
            if catch_up is None:
                return None
            is_of_another = catch_up.boundary.epoch != self._books.put.position.epoch
        if is_of_another:
            moved = catch_up.moved()
            # The source was switched. From here on all comes from the new log, up to where the store goes on with it.
            with self._gate:
                if client.catch_up is catch_up:
                    client.catch_up, client.is_far, client.rounds = moved, True, 0
            return None
        with self._gate:
            target = self._books.origin_for(catch_up.got).position if client.is_far else client.ack.position
        batch = catch_up.get(client, target, size, is_ddl_alone=is_ddl_alone)
        with self._gate:
            self._check_live(client)
            if client.catch_up is not catch_up:
                return None  # rolled back: it comes again
            if client.is_far and catch_up.got >= target:
                self._approach(client, catch_up)
            client.settle()
            return batch

    def _approach(self, client: Client, catch_up: CatchUp) -> None:
        """It has reached where the store began. If that has moved on too often, the store waits for it now."""
        place, is_boundary = self._books.origin_for(catch_up.got), not self._books.is_origin_open
        if client.get.position <= catch_up.got and client.get.sequence > place.sequence:
            # As after an eviction: it got this from the store, which still has what follows.
            place, is_boundary = client.get, False
        client.rounds += 1
        if catch_up.got >= place.position or client.rounds == _ROUNDS:
            client.move(get=place, ack=place)
            client.safe = place if is_boundary else replace(place, position=catch_up.last_boundary)
            client.kept = client.safe if client.kept is not None else None
            client.is_far = False

    def ack(self, name: str, end: Position, sequence: int | None = None) -> None:
        """Everything up to the entry that ends at `end` is done. It must be one that was got and is not acked yet."""
        client = self._client(name)
        self._load(end)
        with self._gate:
            self._check_live(client, may_fail=False)
            if client.catch_up is not None:
                if not client.catch_up.ack(end):
                    raise StoreError(
                        f"client {name} cannot ack {end}: no batch that it got and has not acked ends there"
                    )
                client.settle()
                return
            self._roster.move(client, self._books.got(client, end, sequence))
            self._roster.free()
            self._gate.notify()

    def release(self, name: str, end: Position) -> None:
        """Everything up to the last transaction boundary at or before `end` is done; nothing when that is acked."""
        client = self._client(name)
        self._load(end)
        with self._gate:
            boundary = self._books.boundary.position
            if end > boundary:
                raise StoreError(f"cannot ack {end}: the store has transactions up to {boundary} only")
            place = self._books.boundary_at(end)
            if place is not None and place.sequence > client.ack.sequence:
                self._roster.move(client, place)
                self._roster.free()
                self._gate.notify()

    def keep(self, name: str, position: Position) -> None:
        """That the client has acked up to there is known for good, also after a crash."""
        self._load(position)
        with self._gate:
            client = self._roster.clients.get(name)
            if client is None or client.kept is None or client.is_far:
                return
            place = client.safe if position >= client.safe.position else self._books.boundary_at(position)
            if place is not None and place.sequence > client.kept.sequence:
                client.kept = place
                self._roster.free()
                self._gate.notify()

    def rollback(self, name: str) -> None:
        """The next get starts again after the last ack."""
        client = self._client(name)
        with self._gate:
            client.rewind()
            self._gate.notify()

    def sequences(self, name: str) -> tuple[int, int, int]:
        """put, get, ack."""
        client = self._client(name)
        with self._gate:
            return self._books.put.sequence, client.get.sequence, client.ack.sequence

    # -- inside the gate

    def _client(self, name: str) -> Client:
        with self._gate:
            client = self._roster.clients.get(name)
            if client is None:
                if self._gate.failure is not None and self._gate.failure.transient:
                    raise self._gate.failure  # of a store that was stopped all clients are gone, and this is why
                known = ", ".join(sorted(self._roster.clients)) or "none"
                raise StoreError(f"there is no client {name}; there is {known}")
            client.seen_s = self._gate.clock()
            return client

    def _check_live(self, client: Client, *, may_fail: bool = True) -> None:
        if may_fail:
            self._gate.check()
        if client.lost:
            raise StoreError(f"client {client.name} is lost: {client.lost}")
        if self._roster.clients.get(client.name) is not client:
            raise StoreError(f"client {client.name} was forgotten")
