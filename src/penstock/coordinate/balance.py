"""Each server takes its share of the destinations, without anybody who decides for all.

All look at the same nodes. Who runs much lets the others by when a destination has nobody (`head_start`). When nothing
has changed for `settle_s`, the most loaded server releases one destination, if there is another that runs at least two
less and could run it; that changes what all see, and they wait anew. If it does not, the next may after twice the time.
After one that came back, because the other could not run it, a server gives nothing away for a while, each time for
longer; and then another one first.
"""

import logging
import threading
from dataclasses import dataclass

from penstock.coordinate import canal
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.lease import Clock, boot_clock
from penstock.coordinate.link import Links, Nodes
from penstock.coordinate.member import Member
from penstock.coordinate.running import Running
from penstock.coordinate.share import Move, Place, head_start, moves
from penstock.errors import CoordinationError

log = logging.getLogger(__name__)
_JOIN_S = 20.0
_LONGEST = 64  # times settle_s


@dataclass(frozen=True, slots=True)
class BalanceSettings:
    is_on: bool = True  # else nothing is released for the sake of others
    settle_s: float = 10.0
    look_s: float = 2.0
    spread_s: float = 0.5  # the longest that one lets others by


class Balance:
    """Of one server, for all that it runs; it also keeps the node that says that the server is there."""

    def __init__(
        self, session: Links, address: str, *, settings: BalanceSettings | None = None, clock: Clock = boot_clock
    ) -> None:
        self.address, self.settings = address, settings or BalanceSettings()
        self.places: tuple[Place, ...] = ()  # as seen last
        self._session, self._clock = session, clock
        self._member = Member(session, canal.SERVERS, address)
        self._since = clock()  # when that changed
        self._lock = threading.Lock()  # of:
        self._runnings: dict[str, Running] = {}
        # Of the thread alone:
        self._given: Move | None = None  # what we have released last
        self._returned = set[str]()
        self._times, self._rests_until = 1, 0.0  # since one has
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-balance", daemon=True)

    def start(self) -> None:
        self._session.listen(self)
        self._thread.start()

    def close(self) -> None:
        """After what it runs was closed."""
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._session.forget(self)

    def add(self, running: Running) -> None:
        """Before it is started."""
        with self._lock:
            self._runnings[running.destination] = running
        running.extra_delay = lambda: self._extra_delay(running.destination)

    def remove(self, destination: str) -> None:
        with self._lock:
            self._runnings.pop(destination, None)

    def on_lost(self) -> None: ...

    def on_back(self) -> None:
        self._woken.set()

    def _extra_delay(self, destination: str) -> float:
        with self._lock:
            own_load = sum(one.is_held() for one in self._runnings.values())
        return self.settings.spread_s * head_start(self.places, destination, self.address, own_load)

    # -- its thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._woken.clear()
            self.turn()
            self._woken.wait(self.settings.look_s)
        link = self._session.link
        if link is not None and link.lease.is_held():
            try:
                self._member.leave(link)
            except CoordinationError as error:
                log.warning("not left in order address=%s reason=%s", self.address, error)

    def turn(self) -> None:
        link = self._session.link
        if link is None or not link.lease.is_held():
            return
        try:
            self._member.join(link, self._woken.set)
            places = _places(link)
        except CoordinationError as error:
            log.debug("looking again address=%s reason=%s", self.address, error)
            return
        if places != self.places:
            self.places, self._since = places, self._clock()
            self._note_returned()
        elif self.settings.is_on:
            self._give()

    def _note_returned(self) -> None:
        """Who should have taken what we gave away could not."""
        given = self._given
        if given is None:
            return
        owner = next((place.owner for place in self.places if place.destination == given.destination), given.taker)
        if owner is None:
            return
        self._given = None
        if owner != self.address:
            self._times = 1
            return
        self._returned.add(given.destination)
        self._times = min(2 * self._times, _LONGEST)
        self._rests_until = self._clock() + self._times * self.settings.settle_s

    def _give(self) -> None:
        now = self._clock()
        if now < self._rests_until:
            return
        found = moves(self.places, self._returned)
        number = next((number for number, move in enumerate(found) if move.giver == self.address), None)
        if number is None:
            self._returned.clear()
            return
        move = found[number]
        with self._lock:
            running = self._runnings.get(move.destination)
        if running is not None and now - self._since >= (number + 1) * self.settings.settle_s:
            log.info("giving away destination=%s to=%s", move.destination, move.taker)
            self._given, self._since = move, now
            running.release(f"{move.taker} has less to do")


def _places(link: Nodes) -> tuple[Place, ...]:
    """Those that some server could run."""
    found: list[Place] = []
    for destination in link.names(canal.DESTINATIONS):
        members = frozenset(link.names(canal.members_path(destination)))
        node = link.look(canal.running_path(destination)) if members else None
        about = None if node is None else RunningNode.from_bytes(node.value)
        if about is not None:
            found.append(Place(destination, members, about.address, about.is_active))
        elif members:
            found.append(Place(destination, members))
    return tuple(found)
