"""Real threads, and everything at once: a source that breaks, clients that get, ack, roll back, leave and return,
and read what the store no longer has from the source's log. Each sees the whole log."""

import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.errors import PositionLostError, SourceConnectionError, StoreError
from penstock.model import Position
from penstock.store import Batch, BatchSize, EventStore, FileStorage, MemoryStorage, Start, TieredStorage
from penstock.store.block_storage import BlockStorage
from tests.support.store_blocks import BEGIN, END, ROWS, START
from tests.twins.blocks import block_of

_COUNT = 4000  # events of the log
_DEADLINE_S = 120.0


class Source:
    """A made-up log, which breaks off now and then while it is read."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.events, self.starts, at = list[tuple[int, int]](), list[int](), START.offset
        self.boundaries = {at}
        while len(self.events) < _COUNT:
            rows = chance.choice([0, 1, 1, 2, 5, 30])
            events = [(12, BEGIN), *[(chance.choice([10, 50]), ROWS)] * rows, (11, END)]
            for size, entry in [(20, int(Entry.DDL))] if chance.random() < 0.03 else events:
                self.events.append((size, entry))
                self.starts.append(at)
                at += size
            self.boundaries.add(at)
        self.end = at
        self.index = {start: number for number, start in enumerate([*self.starts, at])}

    def block(self, first: int, stop: int) -> Block:
        return block_of(self.events[first:stop], start=self.starts[first])[0]

    epoch = 0

    def translate(self, position: Position) -> Position:
        return position

    def find(self, start: Start) -> Position:
        raise PositionLostError(str(start))

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        chance = random.Random()
        at, stop = self.index[start.offset], self.index[end.offset]
        while at < stop:
            following = min(at + chance.randint(1, 20), stop)
            if chance.random() < 0.05:
                raise SourceConnectionError("the connection broke")
            yield self.block(at, following)
            at = following

    def capture(self, store: EventStore, seed: int) -> None:
        chance, at = random.Random(seed), 0
        while at < len(self.events):
            if chance.random() < 0.05:
                at = self.index[store.discard_incomplete().offset]
            stop = min(len(self.events), at + chance.randint(1, 25))
            if store.put(self.block(at, stop), chance.choice([0, 0.01])):
                at = stop


class Consumer:
    """Knows what it has to see next."""

    def __init__(self, name: str, source: Source, store: EventStore, seed: int) -> None:
        self._name, self._source, self._store, self._chance = name, source, store, random.Random(seed)
        self._at = self._acked = self._safe = START.offset
        self._outstanding = list[Batch]()

    def run(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while self._safe < self._source.end:
            assert time.monotonic() < deadline, f"{self._name} stands still at {self._at}, acked {self._safe}"
            action = self._chance.choices((self._get, self._ack, self._roll_back, self._rejoin), (60, 35, 4, 1))[0]
            try:
                action()
            except SourceConnectionError:
                continue  # as any client does

    def _get(self) -> None:
        units = BatchSize(self._chance.randint(100, 4000), "memory", 1)
        size = BatchSize(self._chance.randint(1, 40)) if self._chance.random() < 0.6 else units
        batch = self._store.get(self._name, size, 0.002, is_ddl_alone=self._chance.random() < 0.3)
        if batch is None:
            return
        seen = [int(at) for block in batch.blocks for at in block.column("position")]
        if seen[0] != self._at:  # what was not complete, or not acked, is redelivered
            assert self._safe <= seen[0] < self._at, f"{self._name} missed {self._at} to {seen[0]}"
            assert seen[0] in self._source.boundaries | {self._acked}
            self._outstanding = [outstanding for outstanding in self._outstanding if outstanding.end.offset <= seen[0]]
        first = self._source.index[seen[0]]
        assert seen == self._source.starts[first : first + len(seen)]
        self._at = batch.end.offset
        self._outstanding.append(batch)

    def _ack(self) -> None:
        if not self._outstanding:
            return
        batch = self._outstanding.pop(0)
        sequence = batch.end_sequence if batch.end_sequence >= 0 and self._chance.random() < 0.5 else None
        try:
            self._store.ack(self._name, batch.end, sequence)
        except StoreError as error:
            if "cannot ack" not in str(error):
                raise
            self._roll_back()  # it was taken away again in the meantime
            return
        self._acked = batch.end.offset
        if batch.ack is not None:
            self._safe = max(self._safe, batch.ack.offset)

    def _roll_back(self) -> None:
        self._store.rollback(self._name)
        self._outstanding.clear()
        self._at = max(self._at, self._acked) + 1  # from anywhere before that on

    def _rejoin(self) -> None:
        self._store.forget_client(self._name)
        self._outstanding.clear()
        time.sleep(0.02 * self._chance.random())
        self._store.add_client(self._name, Start.cursor(Position(START.file, self._safe)))
        self._acked, self._at = self._safe, max(self._at, self._safe) + 1


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads change in the middle of everything."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["memory", "file", "mixed"])
def test_everybody_sees_the_whole_log(kind: str, seed: int, tmp_path: Path) -> None:
    def files() -> FileStorage:
        return FileStorage(tmp_path, segment_bytes=(1, 20000)[seed % 2], sync="interval", interval_s=0.01)

    storage: BlockStorage = MemoryStorage(60_000)
    if kind != "memory":
        storage = files() if kind == "file" else TieredStorage(30_000, files())
    source = Source(seed)
    store = EventStore(storage, START, source_log=source)
    names = [f"client {number}" for number in range(4)]
    for name in names:
        store.add_client(name)
    with ThreadPoolExecutor(len(names) + 1) as pool:
        running = [pool.submit(source.capture, store, seed)]
        running += [
            pool.submit(Consumer(name, source, store, seed + number).run) for number, name in enumerate(names, 1)
        ]
        try:
            for thread in running:
                thread.result(_DEADLINE_S)
        finally:
            store.stop()
