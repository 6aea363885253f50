"""Plans which destinations should move to another server: plain functions over what all servers see alike.

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
    from_server: str
    to_server: str


def count_loads(assignments: Sequence[Assignment]) -> dict[str, int]:
    """Return how many destinations each server runs."""
    owned = Counter(each.owner for each in assignments if each.owner is not None)
    return {server: owned[server] for each in assignments for server in each.members}


def plan_reassignments(assignments: Sequence[Assignment], pinned: Container[str] = ()) -> list[Reassignment]:
    """Return the best reassignment of each server that runs too many destinations, the most loaded server first.

    There is none while a destination is without a server. A paused destination, or one in `pinned`, stays where it is.
    """
    if any(each.members and each.owner is None for each in assignments):
        return []
    load = count_loads(assignments)
    best: dict[str, tuple[int, str, str]] = {}
    for assignment in assignments:
        from_server = assignment.owner
        if from_server not in load or not assignment.is_active or assignment.destination in pinned:
            continue
        to_server = min(assignment.members, key=lambda server: (load[server], server))
        if load[from_server] - load[to_server] >= 2:
            candidate = load[to_server], assignment.destination, to_server
            best[from_server] = min(best.get(from_server, candidate), candidate)
    return [
        Reassignment(destination, from_server, to_server)
        for from_server, (_, destination, to_server) in sorted(best.items(), key=lambda item: (-load[item[0]], item[0]))
    ]


def start_delay_share(assignments: Sequence[Assignment], destination: str, server: str, own_load: int) -> float:
    """Return which share of the longest balancing delay a server waits: 0 for the one that runs least, 1 for one that
    runs a fair share more than that."""
    load = count_loads(assignments)
    members = next((each.members for each in assignments if each.destination == destination), frozenset[str]())
    lowest = min((load[other] for other in members if other != server), default=own_load)
    fair = math.ceil(len(assignments) / max(1, len(load)))
    return min(1.0, max(0, own_load - lowest) / max(1, fair))
