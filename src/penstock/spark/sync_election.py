"""The terms in which this process drives a pipeline, one after another, and what it says while it stands by.

Invariant: the work of a term is over before the election is told so. A term that was lost stops by this process's own
clock, before another process can be elected; one that is given up is released only when its work has ended.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.coordinate import Election, ElectionNodes, ElectionSettings, ElectionState, Fence, SessionManager
from penstock.errors import FencedError, PenstockError
from penstock.spark.sync_output import DriverStatus, SyncOutput

log = logging.getLogger(__name__)

Work = Callable[[Fence, threading.Event], None]
SESSION_S = 6.0
_LOOK_S = 0.2
# A driver that has crashed is not waited for, as a server is whose clients know its address. What it takes to stop
# Spark in order is waited for.
_RULES = ElectionSettings(delay_s=0.0, grace_s=5.0, stop_limit_s=60.0)


@dataclass(frozen=True, slots=True)
class DriverCandidate:
    """A process that may be elected to drive a pipeline, and the ZooKeeper in which it is."""

    zookeeper: str  # HOST:PORT, or several divided by commas
    pipeline: str
    address: str  # of this process, for people
    session_s: float = SESSION_S  # without an answer from ZooKeeper, after which another process takes over


class SyncElection:
    """Does the work of a pipeline in each term in which this process is elected, until it is told to stop.

        election = SyncElection(candidate, output, find_ended)
        election.run(lambda fence, stopped: ...)

    The work ends when its event is set. `find_ended` returns the number of a term whose process is known to have ended,
    or None.
    """

    def __init__(
        self,
        candidate: DriverCandidate,
        output: SyncOutput,
        find_ended: Callable[[], int | None] = lambda: None,
        sessions: SessionManager | None = None,
    ) -> None:
        self._candidate, self._output, self._find_ended = candidate, output, find_ended
        self._sessions = sessions or SessionManager(candidate.zookeeper, session_s=candidate.session_s)
        nodes = ElectionNodes.of_pipeline(candidate.pipeline)
        self._election = Election(
            self._sessions, nodes, candidate.address, self._on_running, self._on_stopped, settings=_RULES
        )
        self._stopped = threading.Event()
        self._said: DriverStatus | None = None  # last
        self._lock = threading.Lock()  # protects these:
        self._term: _Term | None = None  # that this process has now
        self._has_begun = False  # whether its work has

    def stop(self) -> None:
        """End the present term, if there is one, and let `run` return. It may be called by a signal handler."""
        self._stopped.set()
        if (term := self._term) is not None:
            term.stopped.set()

    def run(self, work: Work) -> None:
        """Stand by, and do the work whenever this process is elected. What it raises ends all of this, unless the term
        has ended meanwhile: then that is why."""
        self._sessions.start()
        self._election.start()
        try:
            while (term := self._wait_for_term()) is not None:
                self._do_work(term, work)
                if not term.stopped.is_set():
                    return
        finally:
            self._election.close()
            self._sessions.close()

    def _wait_for_term(self) -> "_Term | None":
        """Wait until this process is elected; None when it is told to stop."""
        while not self._stopped.wait(_LOOK_S):
            with self._lock:
                if self._term is not None and not self._has_begun:
                    self._has_begun = True
                    return self._term
            if (ended := self._find_ended()) is not None:
                self._election.expel(ended)
            self._say(describe_standby(self._candidate, self._election, self._sessions.problem))
        return None

    def _do_work(self, term: "_Term", work: Work) -> None:
        if self._stopped.is_set():
            term.stopped.set()
        candidate, number = self._candidate, term.fence.epoch
        self._say(DriverStatus("running", candidate.pipeline, candidate.address, number, candidate.address))
        try:
            work(term.fence, term.stopped)
        except PenstockError as error:
            if isinstance(error, FencedError):
                # A machine that was suspended learns from ZooKeeper a moment later that its session is gone.
                term.stopped.wait(candidate.session_s)
            if term.fence.is_held():
                raise
            term.stopped.set()  # the election is about to
            log.warning("work of an ended term ended pipeline=%s term=%d reason=%s", candidate.pipeline, number, error)
        finally:
            term.is_over.set()

    def _say(self, status: DriverStatus | None) -> None:
        if status is not None and status != self._said:
            self._said = status
            self._output.enter(status)

    # -- for the election, in its thread

    def _on_running(self, fence: Fence) -> None:
        with self._lock:
            self._term, self._has_begun = _Term(fence), False

    def _on_stopped(self, reason: str) -> None:
        log.info(
            "election term of this process ended, its pipeline stops here pipeline=%s address=%s reason=%s",
            *(self._candidate.pipeline, self._candidate.address, reason),
        )
        with self._lock:
            term, self._term = self._term, None
            has_begun = self._has_begun
        if term is not None:
            term.stopped.set()
            if has_begun:
                term.is_over.wait()


class _Term:
    """A term of this process, with what ends its work and what says that it has ended."""

    def __init__(self, fence: Fence) -> None:
        self.fence = fence
        self.stopped, self.is_over = threading.Event(), threading.Event()


def describe_standby(candidate: DriverCandidate, election: Election, problem: str) -> DriverStatus | None:
    """Return what a process says that does not run; None while the next process is being elected."""
    owner, reason = election.owner, ""
    if problem:
        owner, reason = None, f"there is no session with ZooKeeper at {candidate.zookeeper}: {problem}"
    elif election.state is ElectionState.PAUSED:
        reason = f"the pipeline '{candidate.pipeline}' was paused by active=false in {election.nodes.running}"
    elif election.state is not ElectionState.STANDBY or owner in {None, candidate.address}:
        return None
    return DriverStatus("standby", candidate.pipeline, candidate.address, running=owner, reason=reason)
