"""How destinations are spread over servers: plain functions over what all servers see alike.

Invariant: a move goes from a server to one that runs at least two less, so the sum of squares falls with each, and no
destination ever goes back and forth.
"""

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A destination, the servers that could run it, and the one that does."""

    destination: str
    members: frozenset[str]
    owner: str | None = None
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    destination: str
    giver: str
    taker: str


def loads(places: Sequence[Place]) -> dict[str, int]:
    """How many destinations each server runs."""
    found = Counter(place.owner for place in places if place.owner is not None)
    return {server: found[server] for place in places for server in place.members}


def moves(places: Sequence[Place], kept: Container[str] = ()) -> list[Move]:
    """The best one of each server that runs too many, the most loaded first. None while something is on its way
    already; what is paused, or `kept`, stays where it is."""
    if any(place.members and place.owner is None for place in places):
        return []
    load = loads(places)
    best: dict[str, tuple[int, str, str]] = {}
    for place in places:
        giver = place.owner
        if giver not in load or not place.is_active or place.destination in kept:
            continue
        taker = min(place.members, key=lambda server: (load[server], server))
        if load[giver] - load[taker] >= 2:
            found = load[taker], place.destination, taker
            best[giver] = min(best.get(giver, found), found)
    return [
        Move(destination, giver, taker)
        for giver, (_, destination, taker) in sorted(best.items(), key=lambda one: (-load[one[0]], one[0]))
    ]


def head_start(places: Sequence[Place], destination: str, server: str, own_load: int) -> float:
    """For how much of the longest wait this server lets others by: 0 for the one that runs least, 1 for one that runs
    a fair share more than that."""
    load = loads(places)
    members = next((place.members for place in places if place.destination == destination), frozenset[str]())
    lowest = min((load[other] for other in members if other != server), default=own_load)
    fair = math.ceil(len(places) / max(1, len(load)))
    return min(1.0, max(0, own_load - lowest) / max(1, fair))
