"""The election of the server that runs one destination, or of the driver that runs one pipeline.

Who may try for a destination without a running server, and when, is decided in candidacy.py; election_state.py lists
the states; handover.py reads and writes what the winner of the last election left behind. They are written for servers
and their destinations; for the drivers of a pipeline, in other nodes, all of it is the same.

Invariant: whatever depends on an election asks its fence whether it `is_held()`. That turns false by this server's own
clock, before any other server can be elected, and no later than `on_stopped` is called. Only an orderly release calls
`on_stopped` first, so that what stops can still write.
"""

import logging
import math
import threading
from collections.abc import Callable

from penstock.coordinate.callbacks import Callbacks, OnRunning, OnStopped
from penstock.coordinate.canal import MemberNode, RunningNode
from penstock.coordinate.candidacy import Candidacy, Vacancy, earliest_attempt, judge_vacancy
from penstock.coordinate.candidacy_backoff import CandidacyBackoff, ElectionSettings
from penstock.coordinate.election_nodes import ElectionNodes
from penstock.coordinate.election_state import ElectionLog, ElectionState
from penstock.coordinate.fence import Fence, claim
from penstock.coordinate.handover import (
    is_winner_alive,
    read_last_term,
    release_term,
    remove_ended,
    term_writer,
    waive_term,
)
from penstock.coordinate.lease import Clock, LeaseGuard, boot_clock
from penstock.coordinate.membership import Membership
from penstock.coordinate.tree import ZkNode
from penstock.coordinate.zk_session import ZkNodes, ZkSessions
from penstock.errors import CoordinationError, FencedError

log = logging.getLogger(__name__)

_RETRY_S = 0.2  # after an error
_JOIN_S = 15.0


class Election:
    """Takes part in the election of one destination, from `start` to `close`, in a thread of its own.

        election = Election(sessions, canal.election_nodes("shop"), "10.0.0.1:11111", on_running, on_stopped)
        election.start()

    `on_running` is called with the fence of an election that was won. It may raise: then the node is given up for
    other servers, and this one tries again later. `on_stopped` is never called while `on_running` runs: a long start
    looks at the fence by itself. `flight_url` is published for clients that look up the running server.
    """

    def __init__(
        self,
        sessions: ZkSessions,
        nodes: ElectionNodes,
        address: str,
        on_running: OnRunning,
        on_stopped: OnStopped,
        *,
        settings: ElectionSettings | None = None,
        flight_url: str = "",
        balancing_delay: Callable[[], float] = lambda: 0.0,
        clock: Clock = boot_clock,
    ) -> None:
        self.nodes, self.address = nodes, address
        self.settings = settings or ElectionSettings()
        self.balancing_delay = balancing_delay
        self._sessions, self._clock = sessions, clock
        member = MemberNode(flight_url)
        self._membership = Membership(sessions, nodes.members, address, member.to_bytes())
        self._callbacks = Callbacks(nodes, on_running, on_stopped, self._note_failed_start)
        self._lock = threading.RLock()  # protects these:
        self._states = ElectionLog(nodes, address)
        self._fence: Fence | None = None
        self._guard: LeaseGuard | None = None
        self._epoch = 0  # of the election that this server has won last
        self._release_reason = ""  # why it is to be given up
        self._ended_epoch = 0  # of another server, whose process is known to have ended
        self._backoff = CandidacyBackoff(address, self.settings)
        self._is_released = threading.Event()
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-election-{nodes.name}", daemon=True)

    # -- for the server

    def start(self) -> None:
        """Join the election: start the threads that take part in it and make its calls, and listen for sessions."""
        self._callbacks.start()
        self._sessions.listen(self)
        self._thread.start()

    def close(self) -> None:
        """Give the destination up, and leave the election."""
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._sessions.forget(self)
        self._end_term("it is being stopped", ElectionState.STOPPED)
        self._callbacks.close()

    @property
    def state(self) -> ElectionState:
        """The state of this server in the election."""
        return self._states.present

    @property
    def fence(self) -> Fence | None:
        """The fence of the election that this server has won; None while it has not won."""
        return self._fence

    @property
    def owner(self) -> str | None:
        """The address of the running server, as seen last; None when there was none."""
        return self._backoff.owner

    def is_held(self) -> bool:
        """Return whether this server may serve and write now; it asks only the clock."""
        fence = self._fence
        return fence is not None and fence.is_held()

    def release(self, reason: str = "by hand", timeout_s: float = 15.0) -> bool:
        """Stop running the destination, and leave it to the other servers: while there are any, this server does not
        try again for `grace_s`. False when this server does not have it, or has not released it
        within the timeout."""
        with self._lock:
            if self.state not in {ElectionState.RUNNING, ElectionState.PAUSED}:
                return False
            self._release_reason = reason
            self._is_released.clear()
        self._woken.set()
        return self._is_released.wait(timeout_s)

    def fail(self, error: Exception) -> None:
        """Report that the destination failed after it was started: it is released, and this server tries again
        later."""
        with self._lock:
            if self._fence is not None:
                self._backoff.note_failure(self._clock())
                self._release_reason = f"it failed: {error}"
        self._woken.set()

    def expel(self, epoch: int) -> None:
        """Report that the process which won this election has ended for certain: others need not wait for the end of
        its session with ZooKeeper."""
        if epoch != self._ended_epoch:
            self._ended_epoch = epoch
            self._woken.set()

    def on_lost(self) -> None:  # in the session's thread
        """End the term at once, because the session with ZooKeeper was lost: nothing may be written any more."""
        self._end_term("the session with ZooKeeper was lost", ElectionState.LOST)
        self._woken.set()

    def on_back(self) -> None:
        """Take part in the election again at once, because a new session with ZooKeeper has begun."""
        self._woken.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            self._woken.wait(self.step())
        self._leave_election()

    def step(self) -> float:
        """Take one step of the election: read ZooKeeper, decide, act. Return the seconds until the next step, unless a
        watch fires before."""
        session = self._sessions.current
        if session is None or not session.lease.is_held():
            self._end_term("there is no session with ZooKeeper", ElectionState.LOST)
            return self.settings.poll_s
        try:
            self._membership.join(session, self._woken.set)
            node = session.get_node(self.nodes.running, self._woken.set)
            running = None if node is None else RunningNode.from_bytes(node.value)
            if node is not None and running is not None and node.owner == session.session_id:
                return self._step_as_owner(session, node, running)
            return self._step_as_candidate(session, node, running)
        except (CoordinationError, FencedError) as error:
            log.debug("nodes of the election not read or written, retrying %s reason=%s", self.nodes.label, error)
            return _RETRY_S

    # -- the node is ours

    def _step_as_owner(self, session: ZkNodes, node: ZkNode, running: RunningNode) -> float:
        with self._lock:
            self._backoff.note_owner(self.address)
            reason, fence = self._release_reason, self._fence
        if reason:
            self._release(session, node, reason)
            return 0.0
        if not running.is_active:
            if self.state is not ElectionState.PAUSED:
                self._stop_in_order("active=false was written into the running node", ElectionState.PAUSED)
            return self.settings.poll_s
        newest = None if fence is None else session.get_node(fence.path, self._woken.set)
        if fence is not None and (newest is None or newest.version != fence.version):
            self._backoff.pause(self._clock())
            self._end_term("somebody else has claimed the epoch", ElectionState.TRYING)
            fence = None
        if fence is None:
            return self._backoff.left_s(self._clock()) or self._claim_term(session, node)
        return self.settings.poll_s

    def _claim_term(self, session: ZkNodes, node: ZkNode) -> float:
        if not self._callbacks.is_idle():
            return _RETRY_S / 4
        guard = LeaseGuard(session.lease)
        try:
            write_term = term_writer(session, self.nodes, self.address)
            fence = claim(session, self.nodes.epoch, guard, write_term)
        except CoordinationError as error:
            self._backoff.note_failure(self._clock())
            self._release(session, node, f"no epoch: {error}")
            raise
        with self._lock:
            if not guard.is_held():
                return _RETRY_S
            self._fence, self._guard, self._epoch = fence, guard, fence.epoch
            self._states.enter(ElectionState.RUNNING, f"epoch={fence.epoch}")
            self._callbacks.begin(fence)
        return self.settings.poll_s

    def _release(self, session: ZkNodes, node: ZkNode, reason: str) -> None:
        """Stop the destination, and only then remove the running node, so that another server can start."""
        self._stop_in_order(reason, ElectionState.RELEASING)
        release_term(session, self.nodes, self.address, node, self._epoch)
        with self._lock:
            self._release_reason = ""
            self._backoff.note_release(self._clock())
            self._states.enter(ElectionState.STANDBY, reason)
        self._is_released.set()

    def _stop_in_order(self, reason: str, state: ElectionState) -> None:
        """Stop the destination while its fence is still held, so that what is being stopped can still write."""
        with self._lock:
            self._states.enter(state, reason)
            guard, self._guard = self._guard, None
            if guard is None:
                return
            self._callbacks.end(reason)
        if not self._callbacks.wait(self.settings.stop_limit_s):
            log.error(
                "still running after the end of its election term, later writes by this process are refused %s"
                " limit_s=%g",
                *(self.nodes.label, self.settings.stop_limit_s),
            )
        with self._lock:
            guard.end()
            self._fence = None

    def _end_term(self, reason: str, state: ElectionState) -> None:
        """End the term at once: nothing may be written any more."""
        with self._lock:
            guard, self._guard, self._fence = self._guard, None, None
            if guard is not None:
                guard.end()
                self._callbacks.end(reason)
            self._states.enter(state, reason)

    def _step_as_candidate(self, session: ZkNodes, node: ZkNode | None, running: RunningNode | None) -> float:
        with self._lock:
            if self._fence is not None:
                reason = "the running node was removed" if running is None else f"{running.address} runs it"
                self._end_term(reason, ElectionState.STANDBY)
            if self._release_reason:  # it is released already
                self._release_reason = ""
                self._backoff.note_release(self._clock())
                self._is_released.set()
        if node is not None and node.owner in self._sessions.past:
            session.delete(self.nodes.running, node.version)  # we have stopped long since
            return 0.0
        if node is not None and self._ended_epoch and remove_ended(session, self.nodes, node, self._ended_epoch):
            log.info(
                "ZooKeeper nodes of the last election's winner removed because its process has ended %s term=%d",
                *(self.nodes.label, self._ended_epoch),
            )
            return 0.0
        if running is not None:
            self._backoff.note_owner(running.address)
            paused = "" if running.is_active else ", which is paused"
            self._states.enter(ElectionState.STANDBY, f"running={running.address}{paused}")
            return self.settings.poll_s
        return self._attempt(session)

    def _attempt(self, session: ZkNodes) -> float:
        """Try to create the running node, if the rules in candidacy.py let this server try now; return the seconds
        until the next step."""
        now = self._clock()
        candidacy = self._gather_candidacy(session, now)
        due = earliest_attempt(candidacy, self.settings.delay_s)
        if now < due:
            self._states.enter(ElectionState.STANDBY, "nobody runs it, and it is not our turn yet")
            return self.settings.poll_s if due == math.inf else due - now
        if not self._callbacks.is_idle():
            term, vacancy = candidacy.last_term, judge_vacancy(candidacy)
            is_ours = vacancy in {Vacancy.OWN, Vacancy.RESTARTED}
            if term is not None and is_ours and now > due + self.settings.delay_s:
                waive_term(session, self.nodes, term)
            return _RETRY_S / 4
        self._states.enter(ElectionState.TRYING)
        session.create_ephemeral(self.nodes.running, RunningNode(self.address).to_bytes())
        return 0.0

    def _gather_candidacy(self, session: ZkNodes, now: float) -> Candidacy:
        """Read from ZooKeeper what decides whether this server may try. All of it is watched."""
        term = read_last_term(session, self.nodes, self._woken.set)
        own_sessions = frozenset({session.session_id, *self._sessions.past})
        is_foreign = term is not None and not term.is_released and term.session_id not in own_sessions
        rivals: list[str] = []
        if self._backoff.grace_until:
            rivals = session.child_names(self.nodes.members, self._woken.set)
        return Candidacy(
            self.address,
            own_sessions,
            vacant_since=self._backoff.note_vacancy(now),
            last_term=term,
            is_winner_alive=is_foreign and is_winner_alive(session, self.nodes, term, self._woken.set),
            own_epoch=self._epoch,
            has_rivals=any(name != self.address for name in rivals),
            balancing_delay_s=self.balancing_delay(),
            backoff_until=self._backoff.until,
            grace_until=self._backoff.grace_until,
        )

    def _note_failed_start(self, fence: Fence, error: Exception) -> None:  # called by the callbacks' thread
        log.error(
            "start after winning the election failed %s term=%s reason=%s",
            self.nodes.label,
            fence.epoch,
            error,
        )
        with self._lock:
            self._backoff.note_failure(self._clock())
            if self._fence is fence:
                self._release_reason = f"it cannot start: {error}"
        self._woken.set()

    def _leave_election(self) -> None:
        session = self._sessions.current
        if session is None or not session.lease.is_held():
            return
        try:
            node = session.get_node(self.nodes.running)
            if node is not None and node.owner == session.session_id:
                self._release(session, node, "it is being stopped")
            self._membership.leave(session)
        except (CoordinationError, FencedError) as error:
            log.warning(
                "error while leaving the election %s reason=%s: its ZooKeeper nodes are removed when the session"
                " expires",
                self.nodes.label,
                error,
            )
