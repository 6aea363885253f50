"""The store in plain lists: what every store must do."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.model import Position
from penstock.store import BatchSize
from penstock.store.block_info import memory_bytes


@dataclass(frozen=True, slots=True)
class Item:
    start: Position
    end: Position
    entry: int
    size: int  # bytes of memory, with those of the events that belong to it

    @property
    def is_boundary(self) -> bool:
        return self.entry in {Entry.DDL, Entry.END}


@dataclass(frozen=True, slots=True)
class ModelBlock:
    last: int  # sequence
    items: list[Item]
    memory: "weakref.ref[Any]"

    @property
    def size(self) -> int:
        return memory_bytes(sum(item.size for item in self.items), len(self.items))


@dataclass(slots=True)
class Model:
    start: Position
    slots: int
    limit_bytes: int
    log: list[Item] = field(default_factory=list[Item])  # all that was put
    blocks: list[ModelBlock] = field(default_factory=list[ModelBlock])
    left: int = -1  # all up to here is gone
    clients: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # get, ack
    by_transactions: bool = False  # blocks go when whole transactions are acked
    starts: dict[str, int] = field(default_factory=dict[str, int])
    whole: set[str] = field(default_factory=set[str])  # those that want whole transactions
    ahead: dict[str, Position] = field(default_factory=dict[str, Position])  # those that have acked what is not here

    def position_of(self, sequence: int) -> Position:
        return self.log[sequence].end if sequence >= 0 else self.start

    @property
    def put(self) -> int:
        return len(self.log) - 1

    @property
    def boundary(self) -> int:
        return max((i for i, item in enumerate(self.log) if item.is_boundary), default=-1)

    @property
    def acked(self) -> int | None:
        return min((ack for _, ack in self.clients.values()), default=None)

    def free(self) -> None:
        acked = self.acked
        if acked is not None and self.by_transactions:
            acked = min(map(self.safe, self.clients))
        gone = [block.last for block in self.blocks if acked is not None and block.last <= acked]
        if gone:
            self.blocks = self.blocks[len(gone) :]
            self.left = gone[-1]

    def safe(self, name: str) -> int:
        """The last boundary that a client has acked."""
        return self.last_boundary(self.starts[name], self.clients[name][1])

    def skip_acked(self) -> None:
        """Clients that are ahead do not get what they have acked."""
        for name, position in list(self.ahead.items()):
            passed = [i for i, item in enumerate(self.log) if item.is_boundary and item.end <= position]
            if passed and passed[-1] > self.clients[name][1]:
                self.clients[name] = [passed[-1], passed[-1]]
                self.starts[name] = passed[-1]
            if self.position_of(self.boundary) >= position:
                del self.ahead[name]

    def last_boundary(self, start: int, sequence: int) -> int:
        return max((i for i in range(start + 1, sequence + 1) if self.log[i].is_boundary), default=min(start, sequence))

    @property
    def origin(self) -> int:
        """The first boundary after what is gone, or the end while there is none."""
        later = (i for i in range(max(0, self.left), len(self.log)) if self.log[i].is_boundary)
        return -1 if self.left < 0 else next(later, self.put)

    def discard_incomplete(self) -> None:
        end = self.boundary
        kept_blocks, first = list[ModelBlock](), self.left + 1
        for block in self.blocks:
            kept = self.log[first : min(block.last, end) + 1]
            if kept:
                kept_blocks.append(replace(block, last=min(block.last, end), items=kept))
            first = block.last + 1
        self.blocks, self.log, self.left = kept_blocks, self.log[: end + 1], min(self.left, end)
        for positions in self.clients.values():
            positions[:] = [min(position, end) for position in positions]

    def has_room(self, blocks: Sequence[ModelBlock]) -> bool:
        count = sum(len(block.items) for block in blocks)
        waiting = self.put - (self.origin if self.acked is None else self.acked) + count
        size = sum(block.size for block in [*self.blocks, *blocks])
        is_stuck = any(self.boundary <= self.clients[name][1] for name in self.whole)
        return not self.blocks or is_stuck or (waiting <= self.slots and size <= self.limit_bytes)

    def is_ready(self, name: str, size: BatchSize) -> bool:
        new = self.log[self.clients[name][0] + 1 :]
        return len(new) >= size.count if size.unit == "items" else sum(item.size for item in new) >= size.bytes

    def end_of_batch(self, name: str, size: BatchSize, *, is_ddl_alone: bool) -> int | None:
        """Sequence of the last entry of the next batch; None when there is none."""
        first, whole = self.clients[name][0] + 1, name in self.whole
        last = self.boundary if whole else self.put
        if first > last or name in self.ahead:
            return None
        used, end, best, nearest = 0, first - 1, None, None
        for sequence in range(first, last + 1):
            item = self.log[sequence]
            if is_ddl_alone and item.entry == Entry.DDL and sequence > first and (nearest is not None or not whole):
                break
            used += item.size if size.unit == "memory" else 1
            fits = used <= (size.bytes if size.unit == "memory" else size.count) or (sequence == first)
            if item.is_boundary:
                nearest = sequence if nearest is None else nearest
                best = sequence if fits else best
            end = sequence if fits else end
            if is_ddl_alone and item.entry == Entry.DDL:
                break
        return (best if best is not None else nearest) if whole else end

    def ack_of(self, first: int, last: int) -> Position | None:
        ends = [item.end for item in self.log[first : last + 1] if item.is_boundary]
        return ends[-1] if ends else None


def are_bytes_right(block: Block) -> bool:
    """Each byte says where in the file it is."""
    data, starts, sizes = block.raw
    ends = zip(starts.tolist(), sizes.tolist(), block.column("position").tolist(), strict=True)
    return all(data[start] == at % 256 and data[start + size - 1] == (at + size - 1) % 256 for start, size, at in ends)
