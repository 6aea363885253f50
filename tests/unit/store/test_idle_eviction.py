"""A client that keeps its position itself holds up nobody: it is evicted, and resumes from the source's log."""

from collections.abc import Callable

import pytest

from penstock.binlog.events.block import Block
from penstock.errors import StoreError
from penstock.store import BatchSize, ClientState, EventStore, MemoryStorage, Start
from tests.support.store_blocks import ALL, START, blocks_of, got, transaction
from tests.support.store_log import Clock, Log, fill

SILENT_S = 5.0


@pytest.fixture
def blocks() -> list[Block]:
    return blocks_of(*[transaction()] * 8)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(blocks: list[Block], clock: Callable[[], float]) -> EventStore:
    """With room for two blocks."""
    return EventStore(MemoryStorage(1 << 20, slots=8), START, source_log=Log(blocks), clock=clock)


def test_capture_waits_for_one_that_reads(store: EventStore, blocks: list[Block], clock: Clock) -> None:
    store.add_client("stream", evict_after_s=SILENT_S)
    left = fill(store, blocks)
    assert left
    clock.now += SILENT_S - 0.1
    assert not store.put(left[0], timeout_s=0)
    store.wait("stream", ALL, 0)  # it is there
    clock.now += SILENT_S - 0.1
    assert not store.put(left[0], timeout_s=0)
    assert store.states() == {"stream": ClientState.LIVE}


def test_one_that_is_silent_is_evicted_and_resumes_from_the_log(
    store: EventStore, blocks: list[Block], clock: Clock
) -> None:
    store.add_client("stream", evict_after_s=SILENT_S)
    store.add_client("1")
    left = fill(store, blocks)
    first = got(store, BatchSize(3), "stream")
    store.ack("1", got(store, BatchSize(4), "1").end)  # and it has more to do
    assert fill(store, left) == left
    clock.now += SILENT_S + 0.1
    while left:
        left = fill(store, left)
        store.ack("1", got(store, BatchSize(4), "1").end)
    assert store.states() == {"stream": ClientState.LOST, "1": ClientState.LIVE}
    with pytest.raises(StoreError, match="was evicted"):
        store.get("stream", ALL)
    store.add_client("stream", Start.cursor(first.end), evict_after_s=SILENT_S)
    ends = [first.end]
    while (batch := store.get("stream", ALL)) is not None:
        assert batch.start == ends[-1]
        ends.append(batch.end)
        store.ack("stream", batch.end, batch.end_sequence if batch.end_sequence >= 0 else None)
    assert ends[-1] == blocks[-1].end


def test_alone_it_loses_nothing(store: EventStore, blocks: list[Block], clock: Clock) -> None:
    """As without any client: the store waits for one to come."""
    store.add_client("stream", evict_after_s=SILENT_S)
    left = fill(store, blocks)
    clock.now += SILENT_S + 0.1
    assert not store.put(left[0], timeout_s=0)
    store.add_client("stream", Start.cursor(START), evict_after_s=SILENT_S)
    assert got(store, name="stream").start == START


def test_one_is_evicted_for_another_that_has_nothing_left(store: EventStore, blocks: list[Block]) -> None:
    store.add_client("stream", evict_after_s=SILENT_S)
    store.add_client("1")
    left = fill(store, blocks)
    assert left  # both have something to do
    while left:
        batch = got(store, name="1")
        store.ack("1", batch.end)
        left = fill(store, left)
    assert store.states()["stream"] is ClientState.LOST
    assert store.states()["1"] is ClientState.LIVE


def test_a_client_with_a_cursor_never_does(store: EventStore, blocks: list[Block], clock: Clock) -> None:
    store.add_client("1")
    store.add_client("2")
    left = fill(store, blocks)
    store.ack("2", got(store, name="2").end)
    clock.now += 1000
    assert not store.put(left[0], timeout_s=0)
    assert ClientState.LOST not in store.states().values()


def test_a_reader_that_does_not_come_back_is_forgotten(store: EventStore, blocks: list[Block], clock: Clock) -> None:
    """Others have other names: they stay, however long they are silent."""
    for name in ("readers/gone", "readers/here", "stream"):
        store.add_client(name, wants_whole=True, reads_log=True, evict_after_s=SILENT_S)
    store.put(blocks[0])
    for name in ("readers/here", "stream"):
        store.release(name, blocks[0].end)
    assert store.first == blocks[0].start
    clock.now += 10 * SILENT_S
    store.add_client("readers/here", wants_whole=True, reads_log=True, evict_after_s=SILENT_S)  # it asks
    store.forget_idle_clients("readers/", 5 * SILENT_S)
    assert sorted(store.states()) == ["readers/here", "stream"]
    assert store.first == blocks[0].end


def test_a_reader_that_is_renewed_is_not_forgotten_but_still_evicted(
    store: EventStore, blocks: list[Block], clock: Clock
) -> None:
    """It works on a long batch and asks for nothing: what it has not acked stays, until the store has no room."""
    store.add_client("readers/busy", wants_whole=True, reads_log=True, evict_after_s=SILENT_S)
    left = fill(store, blocks)
    for _ in range(20):
        clock.now += SILENT_S
        assert store.renew_client("readers/busy")
        store.forget_idle_clients("readers/", 5 * SILENT_S)
    assert store.first == blocks[0].start
    store.put(left[0], timeout_s=0)
    assert store.states()["readers/busy"] is ClientState.LOST
    assert not store.renew_client("readers/busy")
    assert not store.renew_client("readers/never")
