"""Where a new client starts to read, and which entry of the store that is."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.binlog.events.gtid import render_gtids
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.store.block_info import BlockEntries, BlockInfo, EntryPosition

EntriesOf = Callable[[BlockInfo], BlockEntries]


@dataclass(frozen=True, slots=True)
class Start:
    """The point at which a new client starts; made by one of the class methods.

    store.add_client("1001", Start.latest())
    store.add_client("1002", Start.at(Position("binlog.000007", 2507)))
    """

    kind: Literal["stored", "latest", "position", "cursor", "gtid", "time"]
    position: Position | None = None
    gtid: str = ""
    time_us: int = 0

    @classmethod
    def stored(cls) -> "Start":
        """Start with the oldest entry that the store has."""
        return cls("stored")

    @classmethod
    def latest(cls) -> "Start":
        """Start with what is captured from now on."""
        return cls("latest")

    @classmethod
    def at(cls, position: Position) -> "Start":
        """Start with what begins at `position`: a transaction boundary, or inside a transaction that the store has."""
        return cls("position", position=position)

    @classmethod
    def cursor(cls, position: Position) -> "Start":
        """Resume after the cursor `position`. If the store ends before it, which happens after a crash, the client
        waits until capture has read up to it again."""
        return cls("cursor", position=position)

    @classmethod
    def after_gtid(cls, gtid: str) -> "Start":
        """Start after the transaction with this GTID."""
        return cls("gtid", gtid=gtid)

    @classmethod
    def at_time(cls, time_us: int) -> "Start":
        """Start with the first transaction that was committed at this time or later."""
        return cls("time", time_us=time_us)

    def __str__(self) -> str:
        if self.position is not None:
            return str(self.position)
        return {"gtid": self.gtid, "time": f"{self.time_us / 1e6:.6f} s"}.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class StoreView:
    """The blocks of the store at one moment and the positions around them, in which the start of a client is
    searched."""

    blocks: Sequence[BlockInfo]
    entries_of: EntriesOf
    origin: EntryPosition
    boundary: EntryPosition


def find_start(start: Start, view: StoreView) -> EntryPosition:
    """Return the entry after which a client starts. Raises PositionLostError for what the store does not have."""
    match start.kind:
        case "stored":
            return view.origin
        case "latest":
            return view.boundary
        case "cursor" if start.position is not None and start.position > view.boundary.position:
            return view.boundary
        case "position" | "cursor" if start.position is not None:
            return _find_position(start.position, view)
        case "gtid":
            return _find_gtid(start.gtid, view)
        case _:
            return _find_time(start.time_us, view)


def _find_position(position: Position, view: StoreView) -> EntryPosition:
    origin, boundary, blocks = view.origin, view.boundary, view.blocks
    if position < origin.position:
        raise PositionLostError(f"the store begins at {origin.position}: it does not have {position} any more")
    if position > boundary.position:
        raise PositionLostError(f"the store ends at {boundary.position}: it does not have {position} yet")
    result = origin
    number = bisect_right(blocks, position, key=lambda block: block.end)
    if number:
        info = blocks[number - 1]
        result = EntryPosition(info.last, info.end, info.base + info.size)
    if number < len(blocks) and blocks[number].start < position:
        info = blocks[number]
        entries = view.entries_of(info)
        offset = entries.block.column("position")[entries.events]
        before = int(np.searchsorted(offset, position.offset)) if info.start.file_key == position.file_key else 0
        if before:
            result = EntryPosition(info.first + before - 1, position, info.base + int(entries.reach[before - 1]))
    return max(result, origin, key=lambda entry: entry.sequence)


def _find_gtid(gtid: str, view: StoreView) -> EntryPosition:
    for info in view.blocks:
        entries = view.entries_of(info)
        ends = entries.events[entries.are_boundaries]
        if not ends.size:
            continue
        texts = render_gtids(entries.block.gtids[ends], entries.block.tags).to_pylist()
        if gtid in texts:
            return _end_of(info, entries, int(np.flatnonzero(entries.are_boundaries)[texts.index(gtid)]))
    raise PositionLostError(f"the store begins at {view.origin.position} and has no transaction {gtid}")


def _find_time(time_us: int, view: StoreView) -> EntryPosition:
    """Return the boundary before the first transaction that is late enough; a server's clock may go back."""
    result = view.origin
    for info in view.blocks:
        entries = view.entries_of(info)
        are_late = entries.block.column("commit_us")[entries.events] >= time_us
        first = int(np.argmax(are_late)) if are_late.any() else len(entries)
        ends = np.flatnonzero(entries.are_boundaries[:first])
        if ends.size:
            result = _end_of(info, entries, int(ends[-1]))
        if are_late.any():
            return result
    return view.boundary


def _end_of(info: BlockInfo, entries: BlockEntries, entry: int) -> EntryPosition:
    return EntryPosition(info.first + entry, entries.end_of(entry), info.base + int(entries.reach[entry]))
