"""Where a GTID or a time is, in the blocks of a log that come one after the other."""

from collections.abc import Iterable

from penstock.binlog.events.block import Block
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.store import Start
from penstock.store.client import Place
from penstock.store.held import Entries, Held
from penstock.store.start import place_of


def found_place(start: Start, blocks: Iterable[Block], before: Position) -> tuple[Position | None, Position]:
    """The place between two transactions, None when these do not have it; and the last such place that was seen.
    `before` is one, and the blocks follow it."""
    last = before
    for block in blocks:
        entries = Entries.of(block)
        if not len(entries):
            continue
        here, missing = Place(-1, last, 0), Place(-1, last, 0)
        try:
            place = place_of(start, [Held.of(entries, 0, 0)], lambda _, entries=entries: entries, here, missing)
        except PositionLostError:
            place = missing
        if place is here:
            return last, last
        if place is not missing:
            ended = int(entries.events[place.sequence])
            return block.boundary_after(ended), last
        if block.boundaries.size:
            last = block.boundary_after(int(block.boundaries[-1]))
    return None, last
