"""Where a new client begins."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.binlog.events.gtid import render_gtids
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.store.client import Place
from penstock.store.held import Entries, Held

EntriesOf = Callable[[Held], Entries]


@dataclass(frozen=True, slots=True)
class Start:
    """Made by one of the class methods."""

    kind: Literal["first", "latest", "position", "cursor", "gtid", "time"]
    position: Position | None = None
    gtid: str = ""
    time_us: int = 0

    @classmethod
    def first(cls) -> "Start":
        """All that the store has."""
        return cls("first")

    @classmethod
    def latest(cls) -> "Start":
        """What comes from now on."""
        return cls("latest")

    @classmethod
    def at(cls, position: Position) -> "Start":
        """What begins there or later. It lies between two transactions, or inside of one that is in the store."""
        return cls("position", position=position)

    @classmethod
    def cursor(cls, position: Position) -> "Start":
        """What it has not acked. If the store, after a crash, ends before that, then once the log comes there again."""
        return cls("cursor", position=position)

    @classmethod
    def after_gtid(cls, gtid: str) -> "Start":
        """What comes after the transaction of that name."""
        return cls("gtid", gtid=gtid)

    @classmethod
    def at_time(cls, time_us: int) -> "Start":
        """The first transaction that was committed then or later."""
        return cls("time", time_us=time_us)

    def __str__(self) -> str:
        if self.position is not None:
            return str(self.position)
        return {"gtid": self.gtid, "time": f"{self.time_us / 1e6:.6f} s"}.get(self.kind, self.kind)


def place_of(start: Start, held: Sequence[Held], entries_of: EntriesOf, origin: Place, boundary: Place) -> Place:
    """The place in the store after which a client begins. Raises PositionLostError for what the store does not have."""
    match start.kind:
        case "first":
            return origin
        case "latest":
            return boundary
        case "cursor" if start.position is not None and start.position > boundary.position:
            return boundary
        case "position" | "cursor" if start.position is not None:
            return _at(start.position, held, entries_of, origin, boundary)
        case "gtid":
            return _after_gtid(start.gtid, held, entries_of, origin)
        case _:
            return _at_time(start.time_us, held, entries_of, origin, boundary)


def _at(position: Position, several: Sequence[Held], entries_of: EntriesOf, origin: Place, boundary: Place) -> Place:
    if position < origin.position:
        raise PositionLostError(f"the store begins at {origin.position}: it does not have {position} any more")
    if position > boundary.position:
        raise PositionLostError(f"the store ends at {boundary.position}: it does not have {position} yet")
    found = origin
    number = bisect_right(several, position, key=lambda one: one.end)
    if number:
        held = several[number - 1]
        found = Place(held.last, held.end, held.base + held.size)
    if number < len(several) and several[number].start < position:
        held = several[number]
        entries = entries_of(held)
        offset = entries.block.column("position")[entries.events]
        before = int(np.searchsorted(offset, position.offset)) if held.start.file_key == position.file_key else 0
        if before:
            found = Place(held.first + before - 1, position, held.base + int(entries.reach[before - 1]))
    return max(found, origin, key=lambda place: place.sequence)


def _after_gtid(gtid: str, several: Sequence[Held], entries_of: EntriesOf, origin: Place) -> Place:
    for held in several:
        entries = entries_of(held)
        ends = entries.events[entries.are_boundaries]
        if not ends.size:
            continue
        texts = render_gtids(entries.block.gtids[ends], entries.block.tags).to_pylist()
        if gtid in texts:
            entry = int(np.flatnonzero(entries.are_boundaries)[texts.index(gtid)])
            return Place(held.first + entry, entries.end_of(entry), held.base + int(entries.reach[entry]))
    raise PositionLostError(f"the store begins at {origin.position} and has no transaction {gtid}")


def _at_time(time_us: int, several: Sequence[Held], entries_of: EntriesOf, origin: Place, boundary: Place) -> Place:
    """Before the first transaction that is late enough; a server's clock may go back."""
    found = origin
    for held in several:
        entries = entries_of(held)
        late = entries.block.column("commit_us")[entries.events] >= time_us
        first = int(np.argmax(late)) if late.any() else len(entries)
        ends = np.flatnonzero(entries.are_boundaries[:first])
        if ends.size:
            entry = int(ends[-1])
            found = Place(held.first + entry, entries.end_of(entry), held.base + int(entries.reach[entry]))
        if late.any():
            return found
    return boundary
