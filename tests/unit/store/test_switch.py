"""The source's log becomes another one: who reads reads on, without a gap, and never goes back to an earlier epoch."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.errors import PositionLostError, SourceConnectionError, StoreError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, MemoryStorage, Start
from tests.twins.blocks import block_of
from tests.twins.strategy import examples

BEGIN, ROWS, END = int(Entry.BEGIN), int(Entry.ROWS), int(Entry.END)
COUNT = 12
OLD, NEW = Position("binlog.000001", 4), Position("binlog.000007", 4, epoch=1)


def written(start: Position, gap: int) -> list[Block]:
    """The transactions 0 … COUNT-1; the commit time is the number."""
    blocks, at = list[Block](), start.offset
    for number in range(COUNT):
        block, _ = block_of([(12, BEGIN), (20 + gap, ROWS), (11, END)], file=start.file, start=at, time_us=number)
        blocks.append(replace(block, epoch=start.epoch))
        at = blocks[-1].end.offset
    return blocks


A, B = written(OLD, 0), written(NEW, 7)


@dataclass
class Log:
    """Of a source that has A first and B later."""

    epoch: int = 0
    reads: list[tuple[Position, Position]] = field(default_factory=list[tuple[Position, Position]])

    def translate(self, position: Position) -> Position:
        if position.epoch == self.epoch:
            return position
        done = sum(block.end <= position for block in A)
        return B[done - 1].end if done else B[0].start

    def find(self, start: Start) -> Position:
        blocks = B if self.epoch else A
        late = [block.start for block in blocks if int(block.column("commit_us")[0]) >= start.time_us]
        return late[0] if late else blocks[-1].end

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        if {start.epoch, end.epoch} != {self.epoch}:
            raise SourceConnectionError("the source is being switched")
        self.reads.append((start, end))
        for block in B if self.epoch else A:
            part = block.between(start, end)
            if len(part):
                yield part


@dataclass
class Consumer:
    store: EventStore
    name: str
    start: Position
    seen: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # epoch and transaction, acked ones

    def take(self, size: int) -> bool:
        try:
            batch = self.store.get(self.name, BatchSize(size))
        except SourceConnectionError:
            return False
        if batch is None:
            return False
        for block in batch.blocks:
            ends = block.column("commit_us")[block.column("entry") == END]
            self.seen += [(block.epoch, int(number)) for number in ends]
        self.store.ack(self.name, batch.end)
        return True

    def check(self) -> None:
        first = sum(block.end <= self.start for block in A)
        assert [number for _, number in self.seen] == list(range(first, COUNT))
        epochs = [epoch for epoch, _ in self.seen]
        assert epochs == sorted(epochs), "a later epoch is never gone back from"


class Run:
    """One store, one client that frees it at once, and consumers that come before or after the switch."""

    def __init__(self, freed: int) -> None:
        self.log = Log()
        self.store = EventStore(MemoryStorage(1 << 20), OLD, source_log=self.log)
        self.store.add_client("freeing")
        self.consumers: list[Consumer] = []
        self.at = 0
        for _ in range(freed):
            self.put()

    def put(self) -> None:
        if self.at < COUNT:
            self.switch() if self.log.epoch else None
            self.store.put((B if self.log.epoch else A)[self.at])
            self.at += 1
        while batch := self.store.get("freeing", BatchSize(3)):
            self.store.ack("freeing", batch.end)

    def rise(self) -> None:
        """The source is another one, and the store does not know it yet."""
        self.log.epoch = 1

    def switch(self) -> None:
        self.rise()
        if not self.store.latest.epoch:
            self.store.continue_at(self.log.translate(self.store.latest), self.log.translate)

    def join(self, start: int) -> None:
        position = A[min(start, self.at)].start if min(start, self.at) < COUNT else A[-1].end
        name = f"c{len(self.consumers)}"
        self.consumers.append(Consumer(self.store, name, position))
        self.store.add_client(name, Start.cursor(position))

    def take(self, number: int, size: int) -> None:
        if number < len(self.consumers):
            self.consumers[number].take(size)


_STEP = st.one_of(
    st.just(("put",)),
    st.just(("put",)),
    st.just(("rise",)),
    st.just(("switch",)),
    st.tuples(st.just("join"), st.integers(0, COUNT - 1)),
    st.tuples(st.just("take"), st.integers(0, 3), st.integers(1, 9)),
)


@examples(400)
@given(st.lists(_STEP, max_size=60), st.integers(0, 6))
def test_nothing_twice_and_nothing_never_over_a_switch(steps: list[tuple[Any, ...]], freed: int) -> None:
    run = Run(freed)
    for name, *arguments in [*steps, *[("put",)] * COUNT]:
        getattr(run, name)(*arguments)
    for consumer in run.consumers:
        while consumer.take(5):
            pass
        consumer.check()


def test_a_reader_by_position_reads_over_it() -> None:
    log = Log()
    store = EventStore(MemoryStorage(1 << 20), OLD, source_log=log)
    store.add_client("readers", wants_whole=True)
    for block in A[:5]:
        store.put(block)
    log.epoch = 1
    store.continue_at(B[4].end, log.translate)
    assert store.latest == B[4].end
    assert store.find_batch_end(A[4].end, 1 << 20) == B[4].end, "the same position, in the new log"
    for block in B[5:]:
        store.put(block)
    at, numbers = OLD, list[int]()
    while (end := store.find_batch_end(at, 100)) > at:
        numbers += [int(block.column("commit_us")[0]) for block in store.read(at, end) or ()]
        at = end
    assert numbers == list(range(COUNT))
    assert store.read(B[2].start, B[6].end) is None, "of the new log the store has only what came since"
    assert store.first_for(B[2].start) == B[4].end
    assert store.first_for(A[0].start) == OLD


def test_it_resumes_only_after_a_whole_transaction_and_never_back() -> None:
    store = EventStore(MemoryStorage(1 << 20), OLD)
    store.put(A[0].slice(0, 2))
    with pytest.raises(StoreError, match=r"cannot continue at .*epoch 1"):
        store.continue_at(B[0].start)
    store.discard_incomplete()
    store.continue_at(B[0].start)
    with pytest.raises(StoreError, match="cannot continue at"):
        store.continue_at(OLD)
    with pytest.raises(PositionLostError):
        store.add_client("late", Start.at(Position("binlog.000001", 4, epoch=2)))
