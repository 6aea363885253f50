"""A source's log for tests of clients that catch up from it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.binlog.events.block import Block
from penstock.errors import PositionLostError, SourceConnectionError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, MemoryStorage, Start
from tests.support.store_blocks import START, blocks_of, got, transaction


@dataclass
class Log:
    """All that the source ever wrote."""

    blocks: list[Block]
    reads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    while_reading: Callable[[], None] = lambda: None
    breaks_after: int = -1  # number of blocks; it breaks once
    epoch: int = 0
    # From positions of former logs to positions of this one.
    translations: dict[Position, Position] = field(default_factory=dict[Position, Position])

    def translate(self, position: Position) -> Position:
        return position if position.epoch == self.epoch else self.translations[position]

    def find(self, start: Start) -> Position:
        if start.kind != "time":
            raise PositionLostError(f"the log has no {start}")
        late = [block for block in self.blocks if int(block.column("commit_us")[0]) >= start.time_us]
        return late[0].start if late else self.blocks[-1].end

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        """From a position between two transactions only: elsewhere rows would lack their table maps."""
        assert start in {START, *(block.start for block in self.blocks), *(block.end for block in self.blocks)}
        self.reads.append((start.offset, end.offset))
        self.while_reading()
        for block in self.blocks:
            part = block.between(start, end)
            if not len(part):
                continue
            if not self.breaks_after:
                self.breaks_after = -1
                raise SourceConnectionError("the connection broke")
            self.breaks_after -= 1
            # Its rows come in two pieces.
            yield part.slice(0, 2)
            yield part.slice(2, len(part))


def begun(count: int) -> tuple[EventStore, Log]:
    """A store that holds the last of `count` transactions."""
    log = Log(blocks_of(*[transaction(2)] * count))
    store = EventStore(MemoryStorage(1 << 20), START, source_log=log)
    store.add_client("fast")
    for block in log.blocks:
        store.put(block)
    store.ack("fast", got(store, BatchSize(4 * (count - 1)), "fast").end)
    assert store.first == log.blocks[-1].start
    return store, log


class Clock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fill(store: EventStore, blocks: list[Block]) -> list[Block]:
    """Put blocks until there is no room; return those that are left."""
    while blocks and store.put(blocks[0], timeout_s=0):
        blocks = blocks[1:]
    return blocks
