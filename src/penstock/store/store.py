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
from penstock.disk import WriteWarnings
from penstock.errors import PenstockError, StoreError, StoreFullError
from penstock.model import Position
from penstock.store.catch_up import LogReader, begin
from penstock.store.census import Census, take_census
from penstock.store.client import Client, ClientState, TableFilter
from penstock.store.client_log import ClientLog
from penstock.store.held import Entries
from penstock.store.index import Snapshot
from penstock.store.roster import EvictionPolicy
from penstock.store.shelf import BlockGoneError, Shelf
from penstock.store.start import Start
from penstock.store.stored_log import TRIES

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.5  # for room on the disk
_LOOK_FOR_SILENCE_S = 1.0  # of clients that capture waits for


class EventStore(ClientLog):
    """One thread puts; any thread adds clients, gets, acks and reads."""

    def __init__(
        self,
        shelf: Shelf,
        start: Position,
        *,
        source_log: LogReader | None = None,
        clock: Callable[[], float] = time.monotonic,
        policy: EvictionPolicy | None = None,
    ) -> None:
        super().__init__(shelf, start, source_log=source_log, clock=clock, policy=policy)
        self._warnings = WriteWarnings(log, "puts wait", "puts go on")

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
                self._warnings.succeeded()
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

    def set_connected(self, name: str, *, is_connected: bool) -> None:
        """Note that a client is connected, or that its last connection has ended. Until one of the two is said of it,
        it counts as connected; so does one that calls all the same."""
        with self._gate:
            client = self._roster.clients.get(name)
            if client is not None:
                client.absent_since_s = None if is_connected else self._gate.clock()

    def forget_client(self, name: str) -> None:
        with self._gate:
            self._roster.clients.pop(name, None)
            self._roster.free()
            self._gate.notify()

    def states(self) -> dict[str, ClientState]:
        with self._gate:
            now_s = self._gate.clock()
            return {name: self._roster.state(client, now_s) for name, client in self._roster.clients.items()}

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
            now_s, slowest = self._gate.clock(), [client for client in holding if client.ack.sequence == lowest]
            names = ", ".join(
                sorted(
                    f"{client.name} (not connected)" if self._roster.is_absent(client, now_s) else client.name
                    for client in slowest
                )
            )
            return f"the store is full until {names or 'a client'} acks"

    def census(self) -> Census:
        """What is in it, and for whom."""
        with self._gate:
            return take_census(self._shelf, self._books, self._roster, self._gate.clock())

    @property
    def problem(self) -> str:
        """Why puts wait, when it is not for clients."""
        return self._shelf.problem

    def _wait_for_disk(self, error: StoreFullError, deadline: float | None) -> bool:
        """A moment, or until acks have made room; False when the time is over."""
        with self._gate:
            self._warnings.failed(error)
            while self._roster.make_room():
                pass  # what only absent clients need
            self._roster.free()  # also what was acked while the write failed
            self._roster.is_full = True
            self._gate.notify()  # who waits for a full batch gets what there is
            left = self._gate.left(deadline)
            self._gate.pause(0 if left == 0 else min(_LOOK_AGAIN_S, left or _LOOK_AGAIN_S))
            return left != 0

    # -- inside the gate

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
