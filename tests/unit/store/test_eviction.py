"""A client with a cursor that is evicted from a full store: the source's log serves it, and it misses nothing."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.store import (
    Batch,
    BatchSize,
    ClientState,
    EventStore,
    EvictionPolicy,
    FileStorage,
    MemoryStorage,
    Retention,
)
from tests.support.store_blocks import ALL, START, blocks_of, got, transaction
from tests.support.store_log import Clock, Log, fill
from tests.twins.strategy import examples

ABSENT_S = 5.0
_WHO = ("get", "get", "ack", "rollback", "leave", "return", "wait")
_STEPS = st.lists(st.tuples(st.sampled_from(("1", "2")), st.sampled_from(_WHO)), max_size=80)
_SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=10)


@pytest.fixture
def blocks() -> list[Block]:
    return blocks_of(*[transaction()] * 8)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(blocks: list[Block], clock: Callable[[], float], *, evicts_slow: bool = False) -> EventStore:
    """With room for two blocks, and two clients."""
    policy = EvictionPolicy(ABSENT_S, evicts_slow)
    store = EventStore(MemoryStorage(1 << 20, slots=8), START, source_log=Log(blocks), clock=clock, policy=policy)
    store.add_client("1")
    store.add_client("2")
    return store


def ack(store: EventStore, name: str, batch: Batch) -> None:
    store.ack(name, batch.end, batch.end_sequence if batch.end_sequence >= 0 else None)


def drain(store: EventStore, name: str) -> list[Batch]:
    """All that it can get now; acked."""
    batches: list[Batch] = []
    while (batch := store.get(name, ALL)) is not None:
        batches.append(batch)
        ack(store, name, batch)
    return batches


def put_all(store: EventStore, blocks: list[Block], name: str) -> None:
    """With one client that reads everything."""
    while blocks:
        drain(store, name)
        left = fill(store, blocks)
        assert len(left) < len(blocks), store.why_full
        blocks = left
    drain(store, name)


def test_an_absent_client_holds_nothing_and_gets_everything_when_it_returns(blocks: list[Block], clock: Clock) -> None:
    store = opened(blocks, clock)
    store.set_connected("2", is_connected=False)
    left = fill(store, blocks)
    drain(store, "1")
    assert fill(store, left) == left, "a reconnect has its time"
    clock.now += ABSENT_S + 0.1
    put_all(store, left, "1")
    assert store.states() == {"1": ClientState.LIVE, "2": ClientState.ABSENT}
    assert store.acked == START, "nothing of it is forgotten"
    store.set_connected("2", is_connected=True)
    batches = drain(store, "2")
    assert (batches[0].start, batches[-1].end) == (START, blocks[-1].end)
    assert all(batch.end == other.start for batch, other in itertools.pairwise(batches))
    assert store.states()["2"] is ClientState.LIVE


def test_capture_waits_when_nobody_is_connected(blocks: list[Block], clock: Clock) -> None:
    store = opened(blocks, clock)
    for name in ("1", "2"):
        store.set_connected(name, is_connected=False)
    left = fill(store, blocks)
    ack(store, "1", got(store, BatchSize(4), "1"))
    clock.now += 2 * ABSENT_S
    assert fill(store, left) == left
    assert store.why_full == "the store is full until 2 (not connected) acks"


def test_a_slow_client_that_is_connected_makes_capture_wait_by_default(blocks: list[Block], clock: Clock) -> None:
    store = opened(blocks, clock)
    left = fill(store, blocks)
    drain(store, "1")
    clock.now += 1000
    assert fill(store, left) == left


def test_a_slow_client_catches_up_where_that_is_chosen(blocks: list[Block], clock: Clock) -> None:
    store = opened(blocks, clock, evicts_slow=True)
    left = fill(store, blocks)
    first = got(store, BatchSize(3), "2")
    second = got(store, BatchSize(2), "2")
    put_all(store, left, "1")
    ack(store, "2", first)
    third = store.get("2", ALL)
    assert third is not None
    assert third.start == second.end
    assert third.first_sequence == -1, "from the log"
    ack(store, "2", second)
    store.rollback("2")
    batches = drain(store, "2")
    assert (batches[0].start, batches[-1].end) == (second.end, blocks[-1].end)


def test_alone_a_slow_client_is_not_evicted(blocks: list[Block], clock: Clock) -> None:
    store = opened(blocks, clock, evicts_slow=True)
    store.forget_client("1")
    left = fill(store, blocks)
    assert fill(store, left) == left
    assert drain(store, "2")[0].first_sequence == 0


def test_an_absent_client_beyond_the_limits_of_files_is_evicted_and_not_lost(
    blocks: list[Block], clock: Clock, tmp_path: Path
) -> None:
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none", retention=Retention(limit_bytes=1))
    store = EventStore(storage, START, source_log=Log(blocks), clock=clock)
    store.add_client("2")
    store.set_connected("2", is_connected=False)
    clock.now += 2 * ABSENT_S
    assert fill(store, blocks) == []
    assert store.states()["2"] is ClientState.ABSENT
    batches = drain(store, "2")
    assert (batches[0].start, batches[-1].end) == (START, blocks[-1].end)
    store.stop()


class Reader:
    """One that knows where its next batch must begin."""

    def __init__(self, store: EventStore, name: str) -> None:
        self._store, self._name = store, name
        self.at, self.outstanding = START, list[Batch]()

    def get(self) -> bool:
        batch = self._store.get(self._name, BatchSize(3))
        if batch is not None:
            assert batch.start == self.at
            self.at = batch.end
            self.outstanding.append(batch)
        return batch is not None

    def ack(self) -> None:
        if self.outstanding:
            ack(self._store, self._name, self.outstanding.pop(0))

    def rollback(self) -> None:
        self._store.rollback(self._name)
        self.at = self.outstanding[0].start if self.outstanding else self.at
        self.outstanding.clear()


@given(sizes=_SIZES, steps=_STEPS, evicts_slow=st.booleans())
@examples(60)
def test_each_client_gets_every_entry_in_order(
    sizes: list[int], steps: list[tuple[str, str]], evicts_slow: bool
) -> None:
    """Whatever two clients do, and whenever one is evicted: what each has got joins without a gap or a duplicate, but
    for what it rolled back."""
    blocks, clock = blocks_of(*[transaction(size) for size in sizes]), Clock()
    store = opened(blocks, clock, evicts_slow=evicts_slow)
    left, readers = list(blocks), {name: Reader(store, name) for name in ("1", "2")}
    for name, step in steps:
        left = fill(store, left)
        reader = readers[name]
        if step == "wait":
            clock.now += ABSENT_S + 1
        elif step in {"leave", "return"}:
            store.set_connected(name, is_connected=step == "return")
        else:
            {"get": reader.get, "ack": reader.ack, "rollback": reader.rollback}[step]()
    for name in readers:
        store.set_connected(name, is_connected=True)
    for _ in range(4 * len(blocks) + 4):
        left = fill(store, left)
        for reader in readers.values():
            while reader.get():
                pass
            while reader.outstanding:
                reader.ack()
    assert not left
    assert [reader.at for reader in readers.values()] == [blocks[-1].end] * 2
