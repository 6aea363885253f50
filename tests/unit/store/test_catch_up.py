"""A client that begins before the store: the source's log, then the store, and nothing twice or never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PositionLostError, SourceConnectionError, StoreError
from penstock.model import Position
from penstock.store import BatchSize, ClientState, EventStore, MemoryStorage, Start
from tests.support.store_blocks import ALL, START, blocks_of, got, transaction
from tests.support.store_log import begun
from tests.twins.strategy import examples

_STEPS = st.lists(st.sampled_from(("get", "get", "ack", "rollback", "put", "put", "free", "break")), max_size=60)


def test_from_the_log_into_the_store() -> None:
    store, log = begun(10)
    assert store.add_client("late", Start.at(START)) == START
    assert store.states()["late"] is ClientState.LAGGING
    seen = list[int]()
    while batch := store.get("late", BatchSize(7)):
        seen += [int(at) for block in batch.blocks for at in block.column("position")]
        store.ack("late", batch.end)
    assert seen == [int(at) for block in log.blocks for at in block.column("position")]
    assert store.states()["late"] is ClientState.LIVE
    assert log.reads == [(4, store.first.offset)]
    assert store.sequences("late") == (39, 39, 39)


def test_a_time_that_the_store_no_longer_has() -> None:
    store, log = begun(10)
    assert store.add_client("late", Start.at_time(3000)) == log.blocks[3].start
    assert store.add_client("later", Start.at_time(9000)) == store.first
    with pytest.raises(PositionLostError, match="the log has no 0-1-7"):
        store.add_client("other", Start.after_gtid("0-1-7"))
    with pytest.raises(PositionLostError, match=r"it does not have .* yet"):
        store.add_client("ahead", Start.at(Position("binlog.000009", 4)))


def test_without_a_log_it_is_refused() -> None:
    store, _ = begun(3)
    alone = EventStore(MemoryStorage(1 << 20), store.first)
    with pytest.raises(PositionLostError, match=r"does not have .*:4 any more"):
        alone.add_client("late", Start.at(START))


def test_the_store_waits_for_one_that_always_comes_too_late() -> None:
    store, log = begun(3)
    store.add_client("late", Start.at(START))

    def move_on() -> None:
        log.blocks.append(blocks_of(*[transaction(2)] * (len(log.blocks) + 1))[-1])
        store.put(log.blocks[-1])
        store.ack("fast", got(store, name="fast").end)

    move_on()
    log.while_reading = move_on
    ends = list[Position]()
    while not store.size_bytes:
        ends.append(got(store, name="late").end)
    assert len(log.reads) == 4  # the last while the store waits
    while batch := store.get("late", ALL):
        ends.append(batch.end)
    assert ends == sorted(set(ends))
    assert ends[-1] == log.blocks[-1].end


def test_acks_are_of_batches_that_were_got() -> None:
    store, log = begun(4)
    store.add_client("late", Start.at(START))
    with pytest.raises(StoreError, match="client late cannot ack"):
        store.ack("late", log.blocks[0].end)
    batch = got(store, BatchSize(4), "late")
    with pytest.raises(StoreError, match="client late cannot ack"):
        store.ack("late", log.blocks[1].end)
    store.ack("late", batch.end)
    store.rollback("late")
    assert got(store, BatchSize(4), "late").start == log.blocks[0].end


@examples(150)
@given(_STEPS, st.booleans(), st.data())
def test_nothing_twice_and_nothing_never(  # noqa: C901 - one case per step
    steps: list[str], whole: bool, data: st.DataObject
) -> None:
    store, log = begun(6)
    store.add_client("late", Start.at(START), wants_whole=whole)
    acked, waiting = list[int](), list[tuple[Position, list[int]]]()

    def get() -> bool:
        size = data.draw(st.builds(BatchSize, st.integers(1, 9)))
        try:
            batch = store.get("late", size)
        except SourceConnectionError:
            return True
        if batch is None:
            return False
        waiting.append((batch.end, [int(at) for block in batch.blocks for at in block.column("position")]))
        return True

    def ack() -> None:
        end, positions = waiting.pop(0)
        store.ack("late", end)
        acked.extend(positions)

    for step in steps:
        match step:
            case "get":
                get()
            case "ack" if waiting:
                ack()
            case "rollback":
                store.rollback("late")
                waiting.clear()
            case "put":
                next_block = blocks_of(*[transaction(2)] * (len(log.blocks) + 1))[-1]
                log.blocks.append(next_block)
                store.put(next_block)
            case "break":
                log.breaks_after = data.draw(st.integers(0, 4))
            case "free" if (batch := store.get("fast", BatchSize(4))) is not None:
                store.ack("fast", batch.end)
            case _:
                pass
    while get() or waiting:
        while waiting:
            ack()
    assert acked == [int(at) for block in log.blocks for at in block.column("position")]


def test_a_rollback_while_the_log_is_read() -> None:
    store, log = begun(6)
    store.add_client("late", Start.at(START))
    first = got(store, BatchSize(4), "late")
    log.while_reading = lambda: None
    store.rollback("late")
    rolled = list[bool]()

    def roll_back() -> None:
        if not rolled:
            rolled.append(True)
            store.rollback("late")

    log.while_reading = roll_back
    assert got(store, BatchSize(4), "late").start == first.start
    assert got(store, BatchSize(4), "late").start == first.end


def test_nothing_that_one_far_behind_needs_counts_as_acked() -> None:
    store, log = begun(6)
    store.add_client("late", Start.at(START))
    assert store.acked == START
    batch = got(store, BatchSize(6), "late")
    store.ack("late", batch.end)
    assert store.acked == log.blocks[0].end  # and not inside of the second transaction
