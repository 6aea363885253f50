"""The event store: put → get → ack, for one reader of the log and many clients.

Sequences count entries from -1. Every client has its own: `ack ≤ get ≤ put`. What all clients have acked is freed. A
put waits while the shelf is full; all of its blocks go in or none. A get cuts a batch by entries or by memory and may
end inside a transaction, but for clients that want whole ones. Rollback makes a client get again what it has not acked.
A client that begins before the store does is served from the source's log until it has caught up.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.errors import PenstockError, StoreError, StoreFullError
from penstock.model import Position
from penstock.store.batch import Batch, BatchSize
from penstock.store.catch_up import CatchUp, LogReader, begin
from penstock.store.census import Census, take_census
from penstock.store.client import Client, ClientState, TableFilter
from penstock.store.cut import cut
from penstock.store.gate import Gate
from penstock.store.held import Entries
from penstock.store.index import Snapshot
from penstock.store.roster import Roster
from penstock.store.shelf import BlockGoneError, Shelf
from penstock.store.start import Start
from penstock.store.stored_log import TRIES, StoredLog

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.5  # for room on the disk
_LOOK_FOR_SILENCE_S = 1.0  # of clients that capture waits for
_ROUNDS = 3  # in which a client may reach the begin of the store and find that it has moved on


class EventStore(StoredLog):
    """One thread puts; any thread adds clients, gets, acks and reads."""

    def __init__(
        self,
        shelf: Shelf,
        start: Position,
        *,
        source_log: LogReader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(shelf, start, Gate(clock))
        self._log = source_log
        self._roster = Roster(shelf, self._books, clock)  # as all below protected by the gate
        self._is_disk_full = False

    # -- capture's side

    def put(self, blocks: Block | Sequence[Block], timeout_s: float | None = None) -> bool:
        """Add all blocks; False when there was no room in time. Waits for ever without a timeout."""
        several = [blocks] if isinstance(blocks, Block) else blocks
        entries = [one for one in map(Entries.of, several) if len(one)]
        deadline = self._gate.deadline(timeout_s)
        while True:
            with self._gate:
                while not self._gate.wait(lambda: not entries or self._has_room(entries), self._slice(deadline)):
                    if self._gate.left(deadline) == 0:
                        return False
                numbered = self._books.number(entries)
            try:
                self._shelf.write(numbered)
            except StoreFullError as error:
                if not self._wait_for_disk(error, deadline):
                    return False
                continue
            with self._gate:
                if self._is_disk_full:
                    log.warning("puts go on")
                    self._is_disk_full = False
                for held, one in numbered:
                    self._books.add(held, one)
                self._roster.pass_by()
                self._roster.free()
                self._gate.notify()
                return True

    def _slice(self, deadline: float | None) -> float:
        """Of the time that a put may wait."""
        left = self._gate.left(deadline)
        return _LOOK_FOR_SILENCE_S if left is None else min(left, _LOOK_FOR_SILENCE_S)

    def wait_until_safe(self, timeout_s: float) -> Position | None:
        """The last transaction boundary, once all up to there would outlive a crash; None when not in time. For stores
        that write at once, or need not outlive anything."""
        with self._gate:
            boundary = self._books.boundary

            def is_safe() -> bool:
                unsafe = self._shelf.unsafe
                return unsafe is None or unsafe > boundary.sequence

            return boundary.position if self._gate.wait(is_safe, timeout_s) else None

    def discard_incomplete(self) -> Position:
        """Drop entries after the last transaction boundary; gives that boundary, where capture goes on.

        A client that was beyond it gets the same entries again when they come again.
        """
        with self._gate:
            before = self._books.boundary
            self._books.discard_incomplete()
            end = self._books.put
            for client in self._roster.clients.values():
                client.rewinds += 1  # what it is just getting may be gone
                if end.sequence < client.safe.sequence <= before.sequence and client.catch_up is None:
                    client.ahead = client.safe.position  # whole transactions that it has acked come again
                if client.get.sequence > end.sequence:
                    client.move(get=end, ack=min(client.ack, end, key=lambda place: place.sequence))
            return end.position

    def restart_at(self, position: Position) -> None:
        """Forget what it holds, and begin there; without clients only."""
        with self._gate:
            if self._roster.clients:
                raise StoreError(f"the store cannot begin at {position} while it has clients")
            self._shelf.clear()
            self._books.begin(position)

    def go_on_at(self, position: Position, translated: Callable[[Position], Position] | None = None) -> None:
        """The source's log goes on there: it is another one, of a later epoch, or a part of it is missing.

        A client that has acked more than the store has, in the log before, is looked for in the new one.
        """
        with self._gate:
            aheads = {name: one.ahead for name, one in self._roster.clients.items() if one.ahead is not None}
        if translated is not None:
            aheads = {name: translated(ahead) for name, ahead in aheads.items()}
        with self._gate:
            put = self._books.put
            if put.sequence != self._books.boundary.sequence or position <= put.position:
                raise StoreError(f"the store cannot go on at {position}: it is at {put.position}")
            self._books.go_on_at(position)
            for name, ahead in aheads.items():
                if name in self._roster.clients:
                    self._roster.clients[name].ahead = ahead if ahead > position else None
            self._gate.notify()

    def fail(self, error: PenstockError) -> None:
        """Every waiting or later put, get and read raises this error; what was read can still be acked."""
        self._gate.fail(error)

    def stop(self) -> None:
        """Forget everything; what waits ends."""
        self.fail(StoreError("the store was stopped"))
        with self._gate:
            end = self._books.boundary.position
            self._roster.clients.clear()  # nobody gets, acks or frees any more
        # Outside: a thread of the shelf may be about to wake who waits here.
        try:
            self._shelf.close()
        finally:
            with self._gate:
                self._books.begin(end)

    # -- clients

    def add_client(
        self,
        name: str,
        start: Start | None = None,
        *,
        table_filter: TableFilter | None = None,
        wants_whole: bool = False,
        reads_log: bool = False,
        gives_way_s: float | None = None,
        is_kept_later: bool = False,
    ) -> Position:
        """Begin to serve a client; gives where it starts. One that is there goes on where it is, with a new filter.

        One that wants whole transactions makes the store hold each as a whole, unless it can also read the log. What a
        client acks that is kept later is freed, from a store that outlives the process, when `keep` says so. One that
        gives way is lost when it keeps from others what they wait for, or has been silent so long, and may come again.
        """

        def joined(client: Client) -> Position:
            """Inside the gate."""
            self._roster.clients[name] = client
            client.filter, client.wants_whole, client.seen_s = table_filter, wants_whole, self._gate.clock()
            client.reads_log, client.gives_way_s = reads_log, gives_way_s
            client.kept = (client.kept or client.safe) if is_kept_later else None
            return client.position

        for _ in range(TRIES):
            with self._gate:
                known = self._roster.clients.get(name)
                if known is not None and known.lost and known.gives_way_s is not None:
                    del self._roster.clients[name]
                elif known is not None:
                    return joined(known)
            start = self._in_this_log(start)
            with self._gate:
                books, held = self._books, Snapshot(self._shelf.held, self._gate)
                wanted = start.position if start is not None else None
                origin, boundary = books.origin_for(wanted) if wanted else books.origin, books.boundary
            with suppress(BlockGoneError):
                # The log, or many files, may have to be looked through: others do not wait for that.
                several, wish = (held, self._shelf.entries), start or Start.first()
                found = begin(name, wish, *several, origin, boundary, self._log, self._origin_for)
                with self._gate:
                    known = self._roster.clients.get(name)
                    is_there = self._books.origin.sequence <= found.get.sequence <= self._books.put.sequence
                    if known is not None or is_there or found.is_far:
                        return joined(known or found)
        raise StoreError(
            f"client {name} cannot join: what it would begin with went {TRIES} times while it was looked for"
        )

    def _in_this_log(self, start: Start | None) -> Start | None:
        """A place of a log before, that the store does not have, is looked for in the log that there is now."""
        if self._log is None or start is None or start.position is None:
            return start
        with self._gate:
            # The store's own epoch counts: the log may be ahead of it for a moment, while the source is switched.
            if start.position.epoch >= self._books.put.position.epoch or self._books.covers(start.position):
                return start
        return replace(start, position=self._log.translated(start.position))

    def forget_client(self, name: str) -> None:
        with self._gate:
            self._roster.clients.pop(name, None)
            self._roster.free()
            self._gate.notify()

    def states(self) -> dict[str, ClientState]:
        with self._gate:
            now_s = self._gate.clock()
            return {name: self._roster.state(client, now_s) for name, client in self._roster.clients.items()}

    # -- a client's side

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
                        client.move(get=place)
                        return batch

    def wait(self, name: str, size: BatchSize, timeout_s: float | None) -> bool:
        """Until a get would not wait, or for so long; nothing is got."""
        client = self._client(name)
        with self._gate:
            return self._gate.wait(lambda: self._roster.is_ready(client, size), timeout_s)

    def _get_from_log(self, client: Client, size: BatchSize, *, is_ddl_alone: bool) -> Batch | None:
        """The next batch of a client that is behind the store; None when it has caught up, or was rolled back."""
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
        origin = self._books.origin_for(catch_up.got)
        client.rounds += 1
        if catch_up.got >= origin.position or client.rounds == _ROUNDS:
            client.move(get=origin, ack=origin)
            client.is_far, client.safe = False, origin

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

    # -- about it

    @property
    def acked(self) -> Position:
        """The last place between two transactions before which no client needs anything."""
        with self._gate:
            several = [client.catch_up for client in self._roster.clients.values()]
            behind = [catch_up.boundary for catch_up in several if catch_up is not None]
            safe = [client.safe.position for client in self._roster.holding]
            return min([*behind, *safe], default=self._books.origin.position)

    @property
    def why_full(self) -> str:
        """For whom capture waits, while it does."""
        with self._gate:
            if self._shelf.problem:
                return self._shelf.problem
            holding = self._roster.holding
            lowest = min((client.ack.sequence for client in holding), default=0)
            names = ", ".join(sorted(client.name for client in holding if client.ack.sequence == lowest))
            return f"the store is full until {names or 'a client'} acks"

    def census(self) -> Census:
        """What is in it, and for whom."""
        with self._gate:
            return take_census(self._shelf, self._books, self._roster, self._gate.clock())

    @property
    def problem(self) -> str:
        """Why puts wait, when it is not for clients."""
        return self._shelf.problem

    def sequences(self, name: str) -> tuple[int, int, int]:
        """put, get, ack."""
        client = self._client(name)
        with self._gate:
            return self._books.put.sequence, client.get.sequence, client.ack.sequence

    def _wait_for_disk(self, error: StoreFullError, deadline: float | None) -> bool:
        """A moment, or until acks have made room; False when the time is over."""
        with self._gate:
            if not self._is_disk_full:
                log.warning("puts wait reason=%s", error)
            self._is_disk_full = True
            self._roster.free()  # also what was acked while the write failed
            self._roster.is_full = True
            self._gate.notify()  # who waits for a full batch gets what there is
            left = self._gate.left(deadline)
            self._gate.pause(0 if left == 0 else min(_LOOK_AGAIN_S, left or _LOOK_AGAIN_S))
            return left != 0

    # -- inside the gate

    def _client(self, name: str) -> Client:
        with self._gate:
            client = self._roster.clients.get(name)
            if client is None:
                known = ", ".join(sorted(self._roster.clients)) or "none"
                raise StoreError(f"there is no client {name}; there is {known}")
            client.seen_s = self._gate.clock()
            return client

    def _has_room(self, entries: Sequence[Entries]) -> bool:
        was_full = self._roster.is_full
        if self._roster.has_room(entries):
            return True
        self._roster.free()
        if self._roster.has_room(entries):
            return True
        if not was_full:
            self._gate.notify()  # who waits for a full batch gets what there is
        return False

    def _check_live(self, client: Client, *, may_fail: bool = True) -> None:
        if may_fail:
            self._gate.check()
        if client.lost:
            raise StoreError(f"client {client.name} is lost: {client.lost}")
        if self._roster.clients.get(client.name) is not client:
            raise StoreError(f"client {client.name} was forgotten")
