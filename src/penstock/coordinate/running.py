"""The election of the server that runs one destination, as canal does it, without its holes; state.py has the states.

When the node vanishes, the server that had it tries at once if it did not release it; and so do all after a clean
release, which is written down as the node is removed (handover.py). Else it was a crash, and the others wait for
`delay_s`; or an operator has removed the node, and they leave it to the one that had it. On top of that who runs much
waits for who runs little (balance.py).

Invariant: what rests on an election asks its fence whether it `is_held()`. That ends by the clock, before anybody else
can be elected, and no later than `on_stopped` is called; only with a release, when all is in order, after it.
"""

import logging
import math
import threading
from collections.abc import Callable

from penstock.coordinate import canal
from penstock.coordinate.callbacks import Callbacks, OnRunning, OnStopped
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.fence import Fence, claim
from penstock.coordinate.handover import Term, announced, give_up, is_alive, last_term, waive
from penstock.coordinate.lease import Clock, Hold, boot_clock
from penstock.coordinate.link import Links, Node, Nodes
from penstock.coordinate.member import Member
from penstock.coordinate.patience import Patience, RunningSettings
from penstock.coordinate.state import State, Steps
from penstock.errors import CoordinationError, FencedError

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.2  # after an error
_JOIN_S = 15.0


class Running:
    """`on_running` may raise: then the node is given up, for others, and we try again later. `on_stopped` is never
    called while `on_running` is: what takes long in there looks at the fence."""

    def __init__(
        self,
        session: Links,
        destination: str,
        address: str,
        on_running: OnRunning,
        on_stopped: OnStopped,
        *,
        settings: RunningSettings | None = None,
        extra_delay: Callable[[], float] = lambda: 0.0,
        clock: Clock = boot_clock,
    ) -> None:
        self.destination, self.address = destination, address
        self.settings = settings or RunningSettings()
        self.extra_delay = extra_delay
        self._session, self._clock = session, clock
        self._path = canal.running_path(destination)
        self._member = Member(session, canal.members_path(destination), address)
        self._callbacks = Callbacks(destination, on_running, on_stopped, self._failed)
        self._lock = threading.RLock()  # of these:
        self._steps = Steps(destination, address)
        self._fence: Fence | None = None
        self._hold: Hold | None = None
        self._epoch = 0  # of the election that we have won last
        self._asked = ""  # why it is to be given up
        self._patience = Patience(address, self.settings)
        self._given_up = threading.Event()
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-election-{destination}", daemon=True)

    # -- for the server

    def start(self) -> None:
        self._callbacks.start()
        self._session.listen(self)
        self._thread.start()

    def close(self) -> None:
        """Give it up, and leave."""
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._session.forget(self)
        self._end("it is being stopped", State.STOPPED)
        self._callbacks.close()

    @property
    def state(self) -> State:
        return self._steps.present

    @property
    def fence(self) -> Fence | None:
        """Of the election that we have won."""
        return self._fence

    @property
    def owner(self) -> str | None:
        """The address of who runs it, as far as we have seen."""
        return self._patience.owner

    def is_held(self) -> bool:
        """Whether this server may serve and write now: one look at the clock."""
        fence = self._fence
        return fence is not None and fence.is_held()

    def release(self, reason: str = "by hand", timeout_s: float = 15.0) -> bool:
        """Stop, and leave it to the others; for `grace_s` we do not take it back while there are any. False: it is not
        given up yet, or was not ours."""
        with self._lock:
            if self.state not in {State.RUNNING, State.PAUSED}:
                return False
            self._asked = reason
            self._given_up.clear()
        self._woken.set()
        return self._given_up.wait(timeout_s)

    def fail(self, error: Exception) -> None:
        """What was started has ended by itself: it is given up, and we try again later."""
        with self._lock:
            if self._fence is not None:
                self._patience.back_off(self._clock())
                self._asked = f"it failed: {error}"
        self._woken.set()

    def on_lost(self) -> None:  # in the session's thread
        self._end("the session with ZooKeeper was lost", State.LOST)
        self._woken.set()

    def on_back(self) -> None:
        self._woken.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            self._woken.wait(self.turn())
        self._leave()

    def turn(self) -> float:
        """Look, decide, act; says after how many seconds to come back if nothing happens before."""
        link = self._session.link
        if link is None or not link.lease.is_held():
            self._end("there is no session with ZooKeeper", State.LOST)
            return self.settings.look_s
        try:
            self._member.join(link, self._woken.set)
            node = link.look(self._path, self._woken.set)
            found = None if node is None else RunningNode.from_bytes(node.value)
            if node is not None and found is not None and node.owner == link.session_id:
                return self._have(link, node, found)
            return self._have_not(link, node, found)
        except (CoordinationError, FencedError) as error:
            log.debug("looking again destination=%s reason=%s", self.destination, error)
            return _LOOK_AGAIN_S

    # -- the node is ours

    def _have(self, link: Nodes, node: Node, found: RunningNode) -> float:
        with self._lock:
            self._patience.see(self.address)
            asked, fence = self._asked, self._fence
        if asked:
            self._give_up(link, node, asked)
            return 0.0
        if not found.is_active:
            if self.state is not State.PAUSED:
                self._stop("active=false was written into the running node", State.PAUSED)
            return self.settings.look_s
        newest = None if fence is None else link.look(fence.path, self._woken.set)
        if fence is not None and (newest is None or newest.version != fence.version):
            self._patience.rest(self._clock())
            self._end("somebody else has claimed the epoch", State.TRYING)
            fence = None
        if fence is None:
            return self._patience.resting_s(self._clock()) or self._take(link, node)
        return self.settings.look_s

    def _take(self, link: Nodes, node: Node) -> float:
        if not self._callbacks.is_idle():
            return _LOOK_AGAIN_S / 4
        hold = Hold(link.lease)
        try:
            note = announced(link, self.destination, self.address)
            fence = claim(link, canal.epoch_path(self.destination), hold, note)
        except CoordinationError as error:
            self._patience.back_off(self._clock())
            self._give_up(link, node, f"no epoch: {error}")
            raise
        with self._lock:
            if not hold.is_held():
                return _LOOK_AGAIN_S
            self._fence, self._hold, self._epoch = fence, hold, fence.epoch
            self._steps.enter(State.RUNNING, f"epoch={fence.epoch}")
            self._callbacks.begin(fence)
        return self.settings.look_s

    def _give_up(self, link: Nodes, node: Node, reason: str) -> None:
        """First all stops, then others may begin."""
        self._stop(reason, State.RELEASING)
        give_up(link, self.destination, self.address, node, self._epoch)
        with self._lock:
            self._asked = ""
            self._patience.leave(self._clock())
            self._steps.enter(State.STANDBY, reason)
        self._given_up.set()

    def _stop(self, reason: str, state: State) -> None:
        """In order: while it is stopped, it may still write."""
        with self._lock:
            self._steps.enter(state, reason)
            hold, self._hold = self._hold, None
            if hold is None:
                return
            self._callbacks.end(reason)
        if not self._callbacks.wait(self.settings.stop_limit_s):
            log.error("it takes too long to stop, and is fenced off destination=%s", self.destination)
        with self._lock:
            hold.end()
            self._fence = None

    def _end(self, reason: str, state: State) -> None:
        """At once: it may not write any more."""
        with self._lock:
            hold, self._hold, self._fence = self._hold, None, None
            if hold is not None:
                hold.end()
                self._callbacks.end(reason)
            self._steps.enter(state, reason)

    def _have_not(self, link: Nodes, node: Node | None, found: RunningNode | None) -> float:
        with self._lock:
            if self._fence is not None:
                who = "the running node was removed" if found is None else f"{found.address} runs it"
                self._end(who, State.STANDBY)
            if self._asked:  # and it is
                self._asked = ""
                self._patience.leave(self._clock())
                self._given_up.set()
        if node is not None and node.owner in self._session.past:
            link.remove(self._path, node.version)  # we have stopped long since
            return 0.0
        if found is not None:
            self._patience.see(found.address)
            paused = "" if found.is_active else ", which is paused"
            self._steps.enter(State.STANDBY, f"running={found.address}{paused}")
            return self.settings.look_s
        return self._try(link)

    def _try(self, link: Nodes) -> float:
        now = self._clock()
        term = last_term(link, self.destination, self._woken.set)
        delay_s = self._delay_s(link, term)
        due = self._patience.due(now, delay_s, lambda: self._is_for_others(link, term))
        if now < due:
            self._steps.enter(State.STANDBY, "nobody runs it, and it is not our turn yet")
            return self.settings.look_s if due == math.inf else due - now
        if not self._callbacks.is_idle():
            if term and not term.is_released and delay_s == 0 and now > due + self.settings.delay_s:
                waive(link, self.destination, term)
            return _LOOK_AGAIN_S / 4
        self._steps.enter(State.TRYING)
        link.make(self._path, RunningNode(self.address).to_bytes())
        return 0.0

    def _delay_s(self, link: Nodes, term: Term | None) -> float:
        """Since it has gone. Who had it has stopped when he comes here."""
        if term is None or term.is_released:
            return self.extra_delay()
        if term.session_id in {link.session_id, *self._session.past}:
            return 0.0
        if is_alive(link, self.destination, term, self._woken.set):
            return math.inf
        return 0.0 if term.address == self.address else self.settings.delay_s + self.extra_delay()

    def _is_for_others(self, link: Nodes, term: Term | None) -> bool:
        """There are some, and none has had it since we released it."""
        names = link.names(canal.members_path(self.destination), self._woken.set)
        return term is not None and term.epoch == self._epoch and any(name != self.address for name in names)

    def _failed(self, fence: Fence, error: Exception) -> None:  # called by the callbacks' thread
        log.error("it cannot start destination=%s epoch=%s reason=%s", self.destination, fence.epoch, error)
        with self._lock:
            self._patience.back_off(self._clock())
            if self._fence is fence:
                self._asked = f"it cannot start: {error}"
        self._woken.set()

    def _leave(self) -> None:
        link = self._session.link
        if link is None or not link.lease.is_held():
            return
        try:
            node = link.look(self._path)
            if node is not None and node.owner == link.session_id:
                self._give_up(link, node, "it is being stopped")
            self._member.leave(link)
        except (CoordinationError, FencedError) as error:
            log.warning("not given up in order destination=%s reason=%s", self.destination, error)
