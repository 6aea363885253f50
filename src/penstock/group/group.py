"""Several sources as one: whole instances, of which each client gets the transactions in the order of their time.

Each member has its own store, positions and cursors; what a client has acked is known of each member by itself. A
transaction waits while another member that is connected might still bring an earlier one, but never longer than
`hold_s`. The order within a member is its log's, and nothing comes between two pieces of one transaction.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.capture.state import InstanceState
from penstock.config import GroupSettings
from penstock.errors import ConfigurationError, MetaError, NotRunningError, PenstockError
from penstock.group.member_queue import Member, MemberQueue
from penstock.group.timeline import Plan, plan
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.store import Batch, BatchSize, Start

log = logging.getLogger(__name__)

_TURN_S = 0.01  # between two looks at the members
_TRIES = 20  # to get what was looked at
_OF_ALL = {"first", "latest", "time"}
_FROM_THE_WORST = (
    InstanceState.FAILED,
    InstanceState.STOPPED,
    InstanceState.STARTING,
    InstanceState.PAUSED,
    InstanceState.RECONNECTING,
    InstanceState.SWITCHING,
    InstanceState.BLOCKED,
)

Part = tuple[str, list[Block]]
"""Of one member."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBatch(Batch):
    members: tuple[str, ...]  # of each block, the one that it is of


@dataclass(slots=True, eq=False)
class _Outstanding:
    """A batch that is not acked, and the batches of members that are done with it."""

    batch_id: int
    parts: deque[tuple[str, int]]
    open_after: str | None


@dataclass(slots=True, eq=False)
class _Session:
    """Of one client; all under its lock."""

    lanes: Mapping[str, MemberQueue]
    lock: threading.Lock = field(default_factory=threading.Lock)
    outstanding: deque[_Outstanding] = field(default_factory=deque["_Outstanding"])
    open: str | None = None  # the member of whose transaction a piece has gone out, and not the last
    acked_open: str | None = None  # the same after what was acked
    last_id: int = 0
    sequence: int = -1


class Group:
    """Any thread may call it. For clients it is what `Clients` is, but that it does not wait for a full batch."""

    def __init__(
        self,
        name: str,
        members: Mapping[str, Member],
        *,
        hold_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not members:
            raise ConfigurationError(f"group '{name}' has no members")
        self.name, self.members = name, dict(members)
        self._hold_s, self._clock = hold_s, clock
        self._stopping = threading.Event()
        self._has_given_way = False
        self._sessions: dict[int, _Session] = {}
        self._lock = threading.Lock()  # of _sessions

    @classmethod
    def of(cls, settings: GroupSettings) -> "Group":
        members = {name: Instance(one) for name, one in settings.named_members().items()}
        return cls(settings.destination, members, hold_s=settings.hold_s)

    # -- life

    @property
    def state(self) -> InstanceState:
        """That of the member which is worst off."""
        states = {member.state for member in self.members.values()}
        return next((state for state in _FROM_THE_WORST if state in states), InstanceState.FOLLOWING)

    @property
    def failure(self) -> PenstockError | None:
        """Of the first member that has one, with its name."""
        found = ((name, member.failure) for name, member in self.members.items())
        return next((self._named(name, error) for name, error in found if error is not None), None)

    def start(self) -> None:
        """All of them; when one cannot, none runs."""
        self._stopping.clear()
        for name, member in self.members.items():
            try:
                member.start()
            except PenstockError as error:
                self.stop()
                raise self._named(name, error) from error

    def stop(self) -> None:
        self._stopping.set()
        for member in self.members.values():
            member.stop()

    def _named(self, name: str, error: PenstockError) -> PenstockError:
        return type(error)(f"member '{name}' of group '{self.name}': {error}")

    # -- for clients

    def subscribe(self, client_id: int, text: str = "", start: Start | None = None) -> dict[str, Position]:
        """Gives where it goes on in each member."""
        if start is not None and start.kind not in _OF_ALL:
            raise ConfigurationError(
                f"{start} is a place in one log, and '{self.name}' has {len(self.members)}: begin with the first, the"
                " latest, or a time"
            )
        known = [one.clients for one in self.members.values() if client_id in one.clients.subscriptions()]
        if len(known) < len(self.members):
            # It is new, or a member has forgotten it: what it was given before does not count.
            for clients in known:
                clients.rollback(client_id)
            self._forget_session(client_id)
        with self._session(client_id).lock:
            return {name: member.clients.subscribe(client_id, text, start) for name, member in self.members.items()}

    def unsubscribe(self, client_id: int) -> None:
        """It goes on from its cursors when it comes again."""
        for member in self.members.values():
            member.clients.unsubscribe(client_id)
        self._forget_session(client_id)

    def forget(self, client_id: int) -> None:
        """Its cursors, too."""
        for member in self.members.values():
            member.clients.forget(client_id)
        self._forget_session(client_id)

    def connect(self, client_id: int, address: str) -> Callable[[], None]:
        """Note in each member that a client is connected, until the function that it returns is called."""
        closings = [member.clients.connect(client_id, address) for member in self.members.values()]

        def close() -> None:
            for closing in closings:
                closing()

        return close

    def get(
        self, client_id: int, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> tuple[int, GroupBatch] | None:
        """The next batch and its id, as soon as there is something; None when there is nothing in time."""
        deadline = None if timeout_s is None else self._clock() + timeout_s
        session = self._session(client_id)
        while True:
            if self.failure is not None:
                raise self.failure
            with session.lock:
                self._check_present()
                parts, open_after = self._next(session, size, is_ddl_alone=is_ddl_alone)
                if parts:
                    return self._noted(session, parts, open_after)
            left = _TURN_S if deadline is None else deadline - self._clock()
            if left <= 0 or self._stopping.wait(min(left, _TURN_S)):
                return None

    def wait(self, client_id: int, size: BatchSize, timeout_s: float) -> bool:
        """Until a get of that size gives something, however small; whether it does."""
        deadline = self._clock() + timeout_s
        session = self._session(client_id)
        while True:
            if self.failure is not None:
                raise self.failure
            with session.lock:
                self._check_present()
                if self._has_next(session, size):
                    return True
            left = deadline - self._clock()
            if left <= 0 or self._stopping.wait(min(left, _TURN_S)):
                return False

    def _has_next(self, session: _Session, size: BatchSize) -> bool:
        if session.open is not None:
            return session.lanes[session.open].has_more
        return not plan([lane.pending(size) for lane in session.lanes.values()], size, is_ddl_alone=False).is_empty

    def outstanding(self, client_id: int) -> list[int]:
        """Ids of batches that were got and not acked, in their order."""
        session = self._session(client_id)
        with session.lock:
            return [one.batch_id for one in session.outstanding]

    def subscriptions(self) -> dict[int, str]:
        """Filters of those that have subscribed to all members."""
        first, *others = [member.clients.subscriptions() for member in self.members.values()]
        return {client_id: text for client_id, text in first.items() if all(client_id in one for one in others)}

    def hand_over(self, staying: Iterable[str]) -> None:
        """Another group goes on, with these members of this one, that run on: there, what is outstanding comes again.
        Those that were started anew begin at their cursors anyway, and have others to keep them."""
        names, self._has_given_way = list(staying), True
        self._stopping.set()
        with self._lock:
            sessions = dict(self._sessions)
        for client_id, session in sessions.items():
            with session.lock:
                for name in names:
                    with suppress(PenstockError):  # it has just stopped
                        self.members[name].clients.rollback(client_id)

    def _check_present(self) -> None:
        if self._has_given_way:
            raise NotRunningError(f"a member of group '{self.name}' was started anew: connect again")

    def _next(self, session: _Session, size: BatchSize, *, is_ddl_alone: bool) -> tuple[list[Part], str | None]:
        """What goes out, and the member that is in the middle of a transaction then."""
        for _ in range(_TRIES):
            if session.open is not None:
                return self._piece(session, session.open, size)
            names = list(session.lanes)
            found = plan([lane.pending(size) for lane in session.lanes.values()], size, is_ddl_alone=is_ddl_alone)
            if found.is_empty:
                return [], None
            if found.is_piece:
                return self._piece(session, names[int(found.order[0])], size)
            counts = np.bincount(found.order, minlength=len(names)).tolist()
            if all(lane.get_ahead(count) for lane, count in zip(session.lanes.values(), counts, strict=True)):
                return self._woven(session, names, found), None
        return [], None

    def _piece(self, session: _Session, name: str, size: BatchSize) -> tuple[list[Part], str | None]:
        blocks, is_end = session.lanes[name].take_piece(size)
        return [(name, blocks)] if blocks else [], None if is_end else name

    def _woven(self, session: _Session, names: list[str], found: Plan) -> list[Part]:
        """All of it was got already: nothing can go wrong in between."""
        ends = np.append(np.flatnonzero(np.diff(found.order)), found.order.size - 1)
        runs = zip(found.order[ends].tolist(), np.diff(ends, prepend=-1).tolist(), strict=True)
        return [(names[which], session.lanes[names[which]].take(count)) for which, count in runs]

    def _noted(self, session: _Session, parts: list[Part], open_after: str | None) -> tuple[int, GroupBatch]:
        done = deque((name, batch_id) for name, lane in session.lanes.items() for batch_id in lane.finished())
        session.last_id, session.open = session.last_id + 1, open_after
        session.outstanding.append(_Outstanding(session.last_id, done, open_after))
        blocks = tuple(block for _, several in parts for block in several)
        members = tuple(name for name, several in parts for _ in several)
        first = session.sequence + 1
        session.sequence += sum(map(_entries_in, blocks))
        ended = next((block for block in reversed(blocks) if block.boundaries.size), None)
        ack = ended.boundary_after(int(ended.boundaries[-1])) if ended is not None else None
        return session.last_id, GroupBatch(
            blocks[0].start, blocks[-1].end, first, session.sequence, ack, blocks, members
        )

    def ack(self, client_id: int, batch_id: int) -> None:
        """Only of the first outstanding batch. What one member has kept stays kept when another cannot: then the same
        ack may be tried again."""
        session = self._session(client_id)
        with session.lock:
            self._check_present()
            first = self._first(client_id, session, batch_id)
            while first.parts:
                name, part = first.parts[0]
                self.members[name].clients.ack(client_id, part)
                first.parts.popleft()
            session.outstanding.popleft()
            session.acked_open = first.open_after

    def rollback(self, client_id: int, batch_id: int | None = None) -> None:
        """Everything that is outstanding comes again, also what was got after the batch that is rolled back."""
        session = self._session(client_id)
        with session.lock:
            if batch_id is not None:
                self._first(client_id, session, batch_id)
            for name, member in self.members.items():
                member.clients.rollback(client_id)
                session.lanes[name].begin_again()
            session.outstanding.clear()
            session.open = session.acked_open

    def _first(self, client_id: int, session: _Session, batch_id: int) -> _Outstanding:
        first = session.outstanding[0] if session.outstanding else None
        if first is None or first.batch_id != batch_id:
            there = "none is outstanding" if first is None else f"{first.batch_id} is"
            raise MetaError(
                f"batch {batch_id} of client {client_id} is not the first outstanding one of '{self.name}': {there}"
            )
        return first

    def _session(self, client_id: int) -> _Session:
        with self._lock:
            if client_id not in self._sessions:
                several = self.members.items()
                lanes = {name: MemberQueue(member, client_id, self._hold_s, self._clock) for name, member in several}
                self._sessions[client_id] = _Session(lanes)
            return self._sessions[client_id]

    def _forget_session(self, client_id: int) -> None:
        with self._lock:
            self._sessions.pop(client_id, None)


def _entries_in(block: Block) -> int:
    return int(np.count_nonzero((block.column("entry") != Entry.OTHER) | (block.column("boundary") != 0)))
