"""Who may try to become the running server of a destination, and when: the whole decision, from plain data.

A server may try when the running node is absent. Why it is absent, and whose it was, decides when:

| the last winner             | this server                   | earliest attempt                                  |
|-----------------------------|-------------------------------|---------------------------------------------------|
| nobody yet                  | any                           | balancing delay after the node was seen absent    |
| released the destination    | any                           | balancing delay after the node was seen absent    |
| did not release it          | had it, in this process       | at once: it has stopped                           |
| lives: an operator removed  | any other                     | never, while that session lives: the winner takes |
| the node                    |                               | it back, or waives it                             |
| crashed                     | has its address (a restart)   | at once                                           |
| crashed                     | any other                     | `delay_s` and the balancing delay after that      |

Two more rules can only make it later. A server on which the destination failed waits until its own back-off is over.
A server that released the destination leaves it to the others for its grace time, while there are others and none of
them has won since.

The balancing delay lets servers that run less go first (rebalance.py). Times are of one monotonic clock.
"""

import math
from dataclasses import dataclass
from enum import Enum

from penstock.coordinate.term import Term


class Vacancy(Enum):
    """The reason why a destination has no running server, as one server sees it."""

    FREE = "nobody has had it, or it was released"
    OWN = "this process had it and did not release it"
    REMOVED = "its running node was removed while the server that made it lives"
    RESTARTED = "the server with this address crashed, and this is the next one with that address"
    CRASHED = "another server crashed"


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a server knows when it decides whether to try for a destination that has no running node."""

    address: str
    own_sessions: frozenset[int]  # the present ZooKeeper session of this process, and those that it has lost
    vacant_since: float  # when this server first saw that the node is absent
    last_term: Term | None = None  # of the last election that anybody won
    is_winner_alive: bool = False  # whether the session of that winner lives
    own_epoch: int = 0  # of the last election that this process won
    has_rivals: bool = False  # whether other servers could run the destination
    balancing_delay_s: float = 0.0
    backoff_until: float = 0.0
    grace_until: float = 0.0


def judge_vacancy(candidacy: Candidacy) -> Vacancy:
    """Return why the destination has no running server."""
    term = candidacy.last_term
    if term is None or term.is_released:
        return Vacancy.FREE
    if term.session_id in candidacy.own_sessions:
        return Vacancy.OWN
    if candidacy.is_winner_alive:
        return Vacancy.REMOVED
    return Vacancy.RESTARTED if term.address == candidacy.address else Vacancy.CRASHED


def takeover_delay_s(candidacy: Candidacy, crash_delay_s: float) -> float:
    """Return how long after the node vanished this server may try, by the table above; infinite means never."""
    match judge_vacancy(candidacy):
        case Vacancy.FREE:
            return candidacy.balancing_delay_s
        case Vacancy.OWN | Vacancy.RESTARTED:
            return 0.0
        case Vacancy.REMOVED:
            return math.inf
        case Vacancy.CRASHED:
            return crash_delay_s + candidacy.balancing_delay_s


def earliest_attempt(candidacy: Candidacy, crash_delay_s: float) -> float:
    """Return the time from which on this server may try to make the running node; infinite means not yet known.

    if earliest_attempt(candidacy, settings.delay_s) <= now: ...
    """
    due = max(candidacy.vacant_since + takeover_delay_s(candidacy, crash_delay_s), candidacy.backoff_until)
    return max(due, candidacy.grace_until) if _yields_to_rivals(candidacy) else due


def _yields_to_rivals(candidacy: Candidacy) -> bool:
    term = candidacy.last_term
    return candidacy.has_rivals and term is not None and term.epoch == candidacy.own_epoch
