"""Counters of one instance: blocks, events and bytes captured, and the seconds spent in each stage of capture.

One thread counts, others look: each number is right, and a moment may lie between two of them.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.binlog.events.block import Block
from penstock.model import Position

_HIDDEN = {"clock", "seconds", "moved_at", "read_to"}
STAGES = ("source", "index", "tables", "filter", "store")


@dataclass(slots=True)
class CaptureCounters:
    """Counts the blocks, events and bytes that capture has read, and the seconds it has spent in each stage."""

    blocks: int = 0
    events: int = 0
    transactions: int = 0
    bytes: int = 0  # of events
    kept_events: int = 0  # of these, that went into the store
    kept_rows: int | None = None  # in these; None where they are not counted
    signs_of_life: int = 0
    reconnects: int = 0
    switches: int = 0
    # Seconds by stage: waiting for the source, cutting its bytes into events, knowing the tables, filtering, and
    # putting into the store, in which `blocked_s` was spent waiting for room.
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    blocked_s: float = 0.0
    read_to: Position | None = None  # where the last block ends, maybe inside of a transaction that is read again later
    moved_at: float | None = None  # by `clock`: when the source last gave a block, or a sign of life
    clock: Callable[[], float] = time.perf_counter

    def count_block(self, block: Block) -> None:
        """Count a block that was read from the log."""
        self.moved_at = self.clock()
        self.blocks += 1
        self.events += len(block)
        self.transactions += block.boundaries.size
        bounds = block.index.bounds
        self.bytes += int(bounds[-1]) - int(bounds[0])
        self.read_to = block.end if len(block) else self.read_to

    def count_heartbeat(self) -> None:
        """Note that the source answered, with nothing new."""
        self.signs_of_life += 1
        self.moved_at = self.clock()

    @property
    def silent_s(self) -> float | None:
        """Return the seconds since the source last sent something; None when it never has."""
        return None if self.moved_at is None else self.clock() - self.moved_at

    @contextmanager
    def measure(self, stage: str) -> Generator[None]:
        """Add the time of a `with` block to a stage."""
        start = self.clock()
        try:
            yield
        finally:
            self.seconds[stage] += self.clock() - start

    def to_json(self) -> dict[str, Any]:
        """Return the counters as plain data for a status."""
        plain = {counter.name: getattr(self, counter.name) for counter in fields(self) if counter.name not in _HIDDEN}
        return plain | {"seconds": dict(self.seconds)}
