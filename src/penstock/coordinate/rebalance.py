"""Which destinations should go to another server: plain functions over what all servers see alike.

Invariant: a reassignment goes to a server that runs at least two destinations less. The sum of squared loads falls with
each, so no destination ever goes back and forth.
"""

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assignment:
    """A destination, the servers that could run it (`members`), and the one that does (`owner`)."""

    destination: str
    members: frozenset[str]
    owner: str | None = None
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A destination that one server should release for another one."""

    destination: str
    giver: str
    taker: str


def count_loads(assignments: Sequence[Assignment]) -> dict[str, int]:
    """Return how many destinations each server runs."""
    found = Counter(one.owner for one in assignments if one.owner is not None)
    return {server: found[server] for one in assignments for server in one.members}


def plan_reassignments(assignments: Sequence[Assignment], kept: Container[str] = ()) -> list[Reassignment]:
    """Return the best reassignment of each server that runs too many destinations, the most loaded server first.

    There is none while a destination is without a server. A paused destination, or one in `kept`, stays where it is.
    """
    if any(one.members and one.owner is None for one in assignments):
        return []
    load = count_loads(assignments)
    best: dict[str, tuple[int, str, str]] = {}
    for one in assignments:
        giver = one.owner
        if giver not in load or not one.is_active or one.destination in kept:
            continue
        taker = min(one.members, key=lambda server: (load[server], server))
        if load[giver] - load[taker] >= 2:
            found = load[taker], one.destination, taker
            best[giver] = min(best.get(giver, found), found)
    return [
        Reassignment(destination, giver, taker)
        for giver, (_, destination, taker) in sorted(best.items(), key=lambda one: (-load[one[0]], one[0]))
    ]


def start_delay_share(assignments: Sequence[Assignment], destination: str, server: str, own_load: int) -> float:
    """Return which share of the longest balancing delay a server waits: 0 for the one that runs least, 1 for one that
    runs a fair share more than that."""
    load = count_loads(assignments)
    members = next((one.members for one in assignments if one.destination == destination), frozenset[str]())
    lowest = min((load[other] for other in members if other != server), default=own_load)
    fair = math.ceil(len(assignments) / max(1, len(load)))
    return min(1.0, max(0, own_load - lowest) / max(1, fair))
