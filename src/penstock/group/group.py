"""Several sources as one destination: each client gets the transactions of all member instances in the order of their
commit times.

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
from penstock.group.timeline import MergePlan, plan_merge
from penstock.instance.instance import Instance
from penstock.model import Position
from penstock.store import Batch, BatchSize, Start

log = logging.getLogger(__name__)

_POLL_S = 0.01  # between two polls of the members
_MAX_TRIES = 20  # to get exactly what was planned
_COMMON_STARTS = {"stored", "latest", "time"}
_WORST_STATE_FIRST = (
    InstanceState.FAILED,
    InstanceState.STOPPED,
    InstanceState.STARTING,
    InstanceState.PAUSED,
    InstanceState.RECONNECTING,
    InstanceState.SWITCHING,
    InstanceState.BLOCKED,
)

MemberBlocks = tuple[str, list[Block]]
"""The name of a member, and blocks of it that are delivered together."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupBatch(Batch):
    """A batch of a group of sources: blocks of several members, with the member that each block comes from."""

    members: tuple[str, ...]  # the member of each block


@dataclass(slots=True, eq=False)
class _Outstanding:
    """A delivered batch of a group of sources that is not acked yet, with the members' batches that it completes."""

    batch_id: int
    parts: deque[tuple[str, int]]
    open_after: str | None


@dataclass(slots=True, eq=False)
class _Session:
    """The state of one client of a group of sources; its lock protects all fields."""

    queues: Mapping[str, MemberQueue]
    lock: threading.Lock = field(default_factory=threading.Lock)
    outstanding: deque[_Outstanding] = field(default_factory=deque["_Outstanding"])
    open: str | None = None  # the member whose transaction was delivered in part
    acked_open: str | None = None  # the same as of the last ack
    last_id: int = 0
    sequence: int = -1


class Group:
    """A group of sources: serves several instances (its members) as one destination, with their transactions merged by
    commit time. It has the calls of `Clients`, but never waits for a full batch. Any thread may call it.

        group = Group("shops", {"north": Instance(north_settings), "south": Instance(south_settings)})
        group.start()
    """

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
        self._is_replaced = False
        self._sessions: dict[int, _Session] = {}
        self._lock = threading.Lock()  # of _sessions

    @classmethod
    def from_settings(cls, settings: GroupSettings) -> "Group":
        """Return the group of sources that the settings describe, with an instance for each member."""
        members = {name: Instance(member) for name, member in settings.named_members().items()}
        return cls(settings.destination, members, hold_s=settings.hold_s)

    # -- life

    @property
    def state(self) -> InstanceState:
        """Return the state of the group of sources: that of the instance in it that is worst off."""
        states = {member.state for member in self.members.values()}
        return next((state for state in _WORST_STATE_FIRST if state in states), InstanceState.FOLLOWING)

    @property
    def failure(self) -> PenstockError | None:
        """Return the failure of the first instance in the group of sources that has failed, with its name; None when
        none has."""
        failures = ((name, member.failure) for name, member in self.members.items())
        return next((self._name_member(name, error) for name, error in failures if error is not None), None)

    def start(self) -> None:
        """Start the instances of all sources in the group; if one cannot start, all are stopped."""
        self._stopping.clear()
        for name, member in self.members.items():
            try:
                member.start()
            except PenstockError as error:
                self.stop()
                raise self._name_member(name, error) from error

    def stop(self) -> None:
        """Stop the instances of all sources in the group."""
        self._stopping.set()
        for member in self.members.values():
            member.stop()

    def _name_member(self, name: str, error: PenstockError) -> PenstockError:
        """Return an error of a member with the names of the member and the group."""
        return type(error)(f"member '{name}' of group '{self.name}': {error}")

    # -- for clients

    def subscribe(self, client_id: int, text: str = "", start: Start | None = None) -> dict[str, Position]:
        """Subscribe a client to all sources of the group, and return the position at which it resumes in the log of
        each."""
        if start is not None and start.kind not in _COMMON_STARTS:
            raise ConfigurationError(
                f"{start} is a position in one log, and '{self.name}' has {len(self.members)}: start with what is"
                " stored, with the latest, or at a time"
            )
        known = [member.clients for member in self.members.values() if client_id in member.clients.subscriptions()]
        if len(known) < len(self.members):
            # It is new, or a member has forgotten it: what it was given before does not count.
            for clients in known:
                clients.rollback(client_id)
            self._forget_session(client_id)
        with self._get_session(client_id).lock:
            return {name: member.clients.subscribe(client_id, text, start) for name, member in self.members.items()}

    def unsubscribe(self, client_id: int) -> None:
        """End a client's subscription to all sources of the group; its cursors stay, and it resumes there when it
        subscribes again."""
        for member in self.members.values():
            member.clients.unsubscribe(client_id)
        self._forget_session(client_id)

    def forget(self, client_id: int) -> None:
        """Remove a client with its cursors from all sources of the group."""
        for member in self.members.values():
            member.clients.forget(client_id)
        self._forget_session(client_id)

    def connect(self, client_id: int, address: str) -> Callable[[], None]:
        """Note for each source of the group that a client is connected, until the returned function is called."""
        closings = [member.clients.connect(client_id, address) for member in self.members.values()]

        def close() -> None:
            for closing in closings:
                closing()

        return close

    def get(
        self, client_id: int, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> tuple[int, GroupBatch] | None:
        """Return the next batch and its id as soon as there is anything to deliver; None when nothing came in time."""
        deadline = None if timeout_s is None else self._clock() + timeout_s
        session = self._get_session(client_id)
        while True:
            if self.failure is not None:
                raise self.failure
            with session.lock:
                self._check_not_replaced()
                parts, open_after = self._choose_blocks(session, size, is_ddl_alone=is_ddl_alone)
                if parts:
                    return self._make_batch(session, parts, open_after)
            left = _POLL_S if deadline is None else deadline - self._clock()
            if left <= 0 or self._stopping.wait(min(left, _POLL_S)):
                return None

    def wait(self, client_id: int, size: BatchSize, timeout_s: float) -> bool:
        """Wait until a get of this size would return a batch, however small; return whether it would."""
        deadline = self._clock() + timeout_s
        session = self._get_session(client_id)
        while True:
            if self.failure is not None:
                raise self.failure
            with session.lock:
                self._check_not_replaced()
                if self._has_batch(session, size):
                    return True
            left = deadline - self._clock()
            if left <= 0 or self._stopping.wait(min(left, _POLL_S)):
                return False

    def _has_batch(self, session: _Session, size: BatchSize) -> bool:
        """Return whether something can be delivered now."""
        if session.open is not None:
            return session.queues[session.open].has_more
        return not plan_merge(
            [queue.collect_pending(size) for queue in session.queues.values()], size, is_ddl_alone=False
        ).is_empty

    def outstanding(self, client_id: int) -> list[int]:
        """Return the ids of the batches that were delivered and not acked, in the order of delivery."""
        session = self._get_session(client_id)
        with session.lock:
            return [batch.batch_id for batch in session.outstanding]

    def subscriptions(self) -> dict[int, str]:
        """Return the filters of the clients that have subscribed to all members."""
        first, *others = [member.clients.subscriptions() for member in self.members.values()]
        return {
            client_id: text
            for client_id, text in first.items()
            if all(client_id in subscribed for subscribed in others)
        }

    def retire(self, staying: Iterable[str]) -> None:
        """Let this group be replaced by a new one, because a member was restarted. The outstanding batches of the
        members in `staying` are rolled back, so that the new group redelivers them; restarted members resume at their
        cursors anyway."""
        names, self._is_replaced = list(staying), True
        self._stopping.set()
        with self._lock:
            sessions = dict(self._sessions)
        for client_id, session in sessions.items():
            with session.lock:
                for name in names:
                    with suppress(PenstockError):  # it has just stopped
                        self.members[name].clients.rollback(client_id)

    def _check_not_replaced(self) -> None:
        """Raise NotRunningError after this group was replaced by a new one."""
        if self._is_replaced:
            raise NotRunningError(f"a member of group '{self.name}' was restarted: connect again")

    def _choose_blocks(
        self, session: _Session, size: BatchSize, *, is_ddl_alone: bool
    ) -> tuple[list[MemberBlocks], str | None]:
        """Return the blocks to deliver next, and the member whose transaction they leave incomplete."""
        for _ in range(_MAX_TRIES):
            if session.open is not None:
                return self._take_part(session, session.open, size)
            names = list(session.queues)
            merge = plan_merge(
                [queue.collect_pending(size) for queue in session.queues.values()], size, is_ddl_alone=is_ddl_alone
            )
            if merge.is_empty:
                return [], None
            if merge.is_part:
                return self._take_part(session, names[int(merge.order[0])], size)
            counts = np.bincount(merge.order, minlength=len(names)).tolist()
            if all(queue.get_planned(count) for queue, count in zip(session.queues.values(), counts, strict=True)):
                return self._take_planned(session, names, merge), None
        return [], None

    def _take_part(self, session: _Session, name: str, size: BatchSize) -> tuple[list[MemberBlocks], str | None]:
        """Take as much of a member's next transaction as a batch has room for."""
        blocks, is_end = session.queues[name].take_part(size)
        return [(name, blocks)] if blocks else [], None if is_end else name

    def _take_planned(self, session: _Session, names: list[str], merge: MergePlan) -> list[MemberBlocks]:
        """Take the transactions of a merge plan, in its order. All of them were got already, so nothing can fail in
        between."""
        ends = np.append(np.flatnonzero(np.diff(merge.order)), merge.order.size - 1)
        runs = zip(merge.order[ends].tolist(), np.diff(ends, prepend=-1).tolist(), strict=True)
        return [(names[which], session.queues[names[which]].take_transactions(count)) for which, count in runs]

    def _make_batch(
        self, session: _Session, parts: list[MemberBlocks], open_after: str | None
    ) -> tuple[int, GroupBatch]:
        """Record blocks as an outstanding batch, and return its id and the batch."""
        done = deque((name, batch_id) for name, queue in session.queues.items() for batch_id in queue.take_finished())
        session.last_id, session.open = session.last_id + 1, open_after
        session.outstanding.append(_Outstanding(session.last_id, done, open_after))
        blocks = tuple(block for _, member_blocks in parts for block in member_blocks)
        members = tuple(name for name, member_blocks in parts for _ in member_blocks)
        first = session.sequence + 1
        session.sequence += sum(map(_count_entries, blocks))
        last = next((block for block in reversed(blocks) if block.boundaries.size), None)
        ack = last.boundary_after(int(last.boundaries[-1])) if last is not None else None
        return session.last_id, GroupBatch(
            blocks[0].start, blocks[-1].end, first, session.sequence, ack, blocks, members
        )

    def ack(self, client_id: int, batch_id: int) -> None:
        """Ack the first outstanding batch, in each member. If a member fails, what the others have persisted stays, and
        the same ack may be tried again."""
        session = self._get_session(client_id)
        with session.lock:
            self._check_not_replaced()
            first = self._require_first_outstanding(client_id, session, batch_id)
            while first.parts:
                name, part = first.parts[0]
                self.members[name].clients.ack(client_id, part)
                first.parts.popleft()
            session.outstanding.popleft()
            session.acked_open = first.open_after

    def rollback(self, client_id: int, batch_id: int | None = None) -> None:
        """Redeliver all outstanding batches of a client, also those after `batch_id`, which must be the first
        outstanding one."""
        session = self._get_session(client_id)
        with session.lock:
            if batch_id is not None:
                self._require_first_outstanding(client_id, session, batch_id)
            for name, member in self.members.items():
                member.clients.rollback(client_id)
                session.queues[name].reset()
            session.outstanding.clear()
            session.open = session.acked_open

    def _require_first_outstanding(self, client_id: int, session: _Session, batch_id: int) -> _Outstanding:
        """Return the first outstanding batch; raise MetaError if it has another id."""
        first = session.outstanding[0] if session.outstanding else None
        if first is None or first.batch_id != batch_id:
            remedy = "none is outstanding" if first is None else f"{first.batch_id} is"
            raise MetaError(
                f"batch {batch_id} of client {client_id} is not the first outstanding one of '{self.name}': {remedy}"
            )
        return first

    def _get_session(self, client_id: int) -> _Session:
        """Return the session of a client: its queue for each member. It is created when the client calls for the first
        time."""
        with self._lock:
            if client_id not in self._sessions:
                members = self.members.items()
                queues = {name: MemberQueue(member, client_id, self._hold_s, self._clock) for name, member in members}
                self._sessions[client_id] = _Session(queues)
            return self._sessions[client_id]

    def _forget_session(self, client_id: int) -> None:
        """Drop the state of a client."""
        with self._lock:
            self._sessions.pop(client_id, None)


def _count_entries(block: Block) -> int:
    """Return how many entries of a batch a block counts as."""
    return int(np.count_nonzero((block.column("entry") != Entry.OTHER) | (block.column("boundary") != 0)))
