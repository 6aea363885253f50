"""Spreads destinations evenly over the servers, without a coordinator: every server decides for itself.

All servers read the same nodes. A server that runs many destinations lets the others go first when a destination has no
server (`start_delay_share`). When nothing has changed for `settle_s`, the most loaded server releases one destination,
if another one that could run it has at least two less. That changes what all see, and the time starts again. If that
server does not act, the next one may after twice the time. When a released destination comes back, because the other
server could not run it, a server releases nothing for a while, twice as long each time, and then another one first.
"""

import logging
import threading
from dataclasses import dataclass

from penstock.coordinate import canal
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.election import Election
from penstock.coordinate.lease import Clock, boot_clock
from penstock.coordinate.membership import Membership
from penstock.coordinate.rebalance import Assignment, Reassignment, plan_reassignments, start_delay_share
from penstock.coordinate.zk_session import ZkNodes, ZkSessions
from penstock.errors import CoordinationError

log = logging.getLogger(__name__)
_JOIN_S = 20.0
_LONGEST = 64  # times settle_s


@dataclass(frozen=True, slots=True)
class BalancerSettings:
    """The conditions under which a server releases destinations for the sake of balance.

    settings = BalancerSettings(settle_s=5.0)
    """

    is_on: bool = True  # without it no destination is released for balance
    settle_s: float = 10.0  # nothing may change for this long before a destination is released
    poll_s: float = 2.0  # between two reads of ZooKeeper
    spread_s: float = 0.5  # the longest that a loaded server lets the others go first


class Balancer:
    """Spreads the destinations evenly over the servers with one ZooKeeper, on behalf of one of them: it releases
    destinations when this server runs too many, and keeps the ZooKeeper node that says that the server is alive.

    balancer = Balancer(sessions, "10.0.0.1:11111")
    balancer.add(election)
    balancer.start()
    """

    def __init__(
        self, sessions: ZkSessions, address: str, *, settings: BalancerSettings | None = None, clock: Clock = boot_clock
    ) -> None:
        self.address, self.settings = address, settings or BalancerSettings()
        self.assignments: tuple[Assignment, ...] = ()  # as seen last
        self._sessions, self._clock = sessions, clock
        self._membership = Membership(sessions, canal.SERVERS, address)
        self._changed_at = clock()  # when the assignments changed last
        self._lock = threading.Lock()  # protects:
        self._elections: dict[str, Election] = {}
        # Used by the thread alone:
        self._released: Reassignment | None = None  # what this server has released last
        self._returned = set[str]()  # destinations that came back
        self._settle_factor, self._idle_until = 1, 0.0  # after a destination came back
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-balance", daemon=True)

    def start(self) -> None:
        """Start the thread that balances, and listen for new sessions with ZooKeeper."""
        self._sessions.listen(self)
        self._thread.start()

    def close(self) -> None:
        """Stop balancing, and remove the node that says that this server is alive; call it after the elections of this
        server were closed."""
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._sessions.forget(self)

    def add(self, election: Election) -> None:
        """Include the destination of this election in those that are spread over the servers; call it before the
        election is started."""
        with self._lock:
            self._elections[election.nodes.name] = election
        election.balancing_delay = lambda: self._balancing_delay(election.nodes.name)

    def remove(self, destination: str) -> None:
        """Exclude a destination from those that are spread over the servers: it is no longer released to another
        one."""
        with self._lock:
            self._elections.pop(destination, None)

    def on_lost(self) -> None:
        """Do nothing when the session is lost: each election ends its own term."""

    def on_back(self) -> None:
        """Look at the destinations at once, because a new session with ZooKeeper has begun."""
        self._woken.set()

    def _balancing_delay(self, destination: str) -> float:
        with self._lock:
            own_load = sum(election.is_held() for election in self._elections.values())
        return self.settings.spread_s * start_delay_share(self.assignments, destination, self.address, own_load)

    # -- its thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            self.step()
            self._woken.wait(self.settings.poll_s)
        session = self._sessions.current
        if session is not None and session.lease.is_held():
            try:
                self._membership.leave(session)
            except CoordinationError as error:
                log.warning("server's ZooKeeper node not removed address=%s reason=%s", self.address, error)

    def step(self) -> None:
        """Read ZooKeeper once: say that this server is alive, read which server runs what, and release one
        destination if balance asks for it. Without a session nothing is done."""
        session = self._sessions.current
        if session is None or not session.lease.is_held():
            return
        try:
            self._membership.join(session, self._woken.set)
            assignments = _read_assignments(session)
        except CoordinationError as error:
            log.debug("rebalancing of destinations failed, retrying address=%s reason=%s", self.address, error)
            return
        if assignments != self.assignments:
            self.assignments, self._changed_at = assignments, self._clock()
            self._note_returned()
        elif self.settings.is_on:
            self._release_one()

    def _note_returned(self) -> None:
        """Notice a destination that came back after this server released it: the other server could not run it."""
        released = self._released
        if released is None:
            return
        owner = next(
            (each.owner for each in self.assignments if each.destination == released.destination), released.to_server
        )
        if owner is None:
            return
        self._released = None
        if owner != self.address:
            self._settle_factor = 1
            return
        self._returned.add(released.destination)
        self._settle_factor = min(2 * self._settle_factor, _LONGEST)
        self._idle_until = self._clock() + self._settle_factor * self.settings.settle_s

    def _release_one(self) -> None:
        now = self._clock()
        if now < self._idle_until:
            return
        planned = plan_reassignments(self.assignments, self._returned)
        rank = next((rank for rank, move in enumerate(planned) if move.from_server == self.address), None)
        if rank is None:
            self._returned.clear()
            return
        move = planned[rank]
        with self._lock:
            election = self._elections.get(move.destination)
        if election is not None and now - self._changed_at >= (rank + 1) * self.settings.settle_s:
            log.info("destination released to balance the load destination=%s to=%s", move.destination, move.to_server)
            self._released, self._changed_at = move, now
            election.release(f"{move.to_server} has less to do")


def _read_assignments(session: ZkNodes) -> tuple[Assignment, ...]:
    """Return all destinations that some server could run."""
    assignments: list[Assignment] = []
    for destination in session.child_names(canal.DESTINATIONS):
        members = frozenset(session.child_names(canal.members_path(destination)))
        node = session.get_node(canal.running_path(destination)) if members else None
        running = None if node is None else RunningNode.from_bytes(node.value)
        if running is not None:
            assignments.append(Assignment(destination, members, running.address, running.is_active))
        elif members:
            assignments.append(Assignment(destination, members))
    return tuple(assignments)
