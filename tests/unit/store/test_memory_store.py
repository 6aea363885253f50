"""The memory store's rules one by one, and with real threads."""

import threading
import weakref

import pytest

from penstock.binlog.events.block import Block
from penstock.errors import SourceConnectionError, StoreError
from penstock.model import Position
from penstock.store import Batch, MemoryStore
from tests.twins.blocks import block_of

START = Position("binlog.000001", 4)
_DEADLINE_S = 20.0
_TOO_LONG_S = 100 * _DEADLINE_S


def blocks_of(*contents: list[tuple[int, bool]]) -> list[Block]:
    at, found = 4, list[Block]()
    for events in contents:
        block, _ = block_of(events, start=at)
        found.append(block)
        at = block.end.offset
    return found


def transaction(size: int = 30) -> list[tuple[int, bool]]:
    return [(10, False), (size - 20, False), (10, True)]


def test_slots_are_a_power_of_two() -> None:
    with pytest.raises(StoreError, match="power of two of slots, not 3"):
        MemoryStore(START, 1000, slots=3)


def test_a_put_waits_for_room_in_bytes_and_in_slots() -> None:
    one, two, three = blocks_of(*[transaction()] * 3)
    for store in (MemoryStore(START, 2 * one.size_bytes), MemoryStore(START, 1 << 30, slots=2)):
        assert store.put(one)
        assert store.put(two)
        assert not store.put(three, timeout_s=0)
        store.ack(one.end)
        assert store.put(three, timeout_s=0)
        assert store.size_bytes == 2 * one.size_bytes


@pytest.mark.parametrize(("limit_bytes", "slots"), [(1, 1 << 14), (1 << 30, 1), (1, 1)])
def test_a_transaction_larger_than_the_ring_makes_it_grow(limit_bytes: int, slots: int) -> None:
    """In bytes, in slots, in both; also when an acked transaction shares its first block."""
    pieces = blocks_of([*transaction(), (5, False)], *[[(7, False)]] * 9, [(9, True)], transaction())
    store = MemoryStore(START, limit_bytes, slots=slots)
    assert store.put(pieces[0], timeout_s=0)
    assert not store.put(pieces[1], timeout_s=0)
    batch = store.get(1 << 20)
    assert batch is not None
    store.ack(batch.end)
    assert all(store.put(piece, timeout_s=0) for piece in pieces[1:11])
    assert not store.put(pieces[11], timeout_s=0)
    batch = store.get(1)
    assert batch is not None
    assert (batch.start, batch.end) == (pieces[0].end_of(2), pieces[10].end)
    assert sum(len(block) for block in batch.blocks) == 11
    store.ack(batch.end)
    assert store.size_bytes == 0
    assert store.put(pieces[11], timeout_s=0)


def test_reading_starts_between_transactions_after_blocks_were_freed() -> None:
    """The first block ends inside the acked transaction; nobody may start there."""
    one, two = blocks_of([(10, False), (10, False)], [(10, True), *transaction()])
    store = MemoryStore(START, 1 << 20)
    store.put(one)
    store.put(two)
    store.ack(two.end_of(0))
    assert store.first == two.end_of(0)
    assert store.read(one.end, store.latest) is None
    found = store.read(store.first, store.latest)
    assert found is not None
    assert [len(block) for block in found] == [3]


def test_an_ack_inside_a_transaction_counts_up_to_its_start() -> None:
    (block,) = blocks_of([*transaction(), *transaction()])
    store = MemoryStore(START, 1 << 20)
    store.put(block)
    store.ack(block.end_of(3))
    assert store.sequences == (5, 2, 2)
    batch = store.get(1 << 20)
    assert batch is not None
    assert batch.start == block.end_of(2)


def test_an_ack_of_what_was_not_put_is_refused() -> None:
    (block,) = blocks_of([*transaction(), (5, False)])
    store = MemoryStore(START, 1 << 20)
    store.put(block)
    with pytest.raises(StoreError, match=rf"cannot ack {block.end}: .* up to {block.end_of(2)} only"):
        store.ack(block.end)


def test_rollback_gives_the_same_again() -> None:
    (block,) = blocks_of([*transaction(), *transaction()])
    store = MemoryStore(START, 1 << 20)
    store.put(block)
    first = store.get(1)
    store.get(1)
    assert store.get(1) is None
    store.rollback()
    again = store.get(1)
    assert first is not None
    assert again is not None
    assert (first.start, first.end, first.end_sequence) == (again.start, again.end, again.end_sequence)


def test_max_bytes_counts_bytes_of_the_log() -> None:
    store = MemoryStore(START, 1 << 20)
    for block in blocks_of(transaction(100), transaction(100), transaction(100)):
        store.put(block)
    for most, expected in ((99, 100), (100, 100), (199, 100), (200, 200), (299, 200), (300, 300)):
        assert store.end_after(START, most).offset == 4 + expected


def test_freed_blocks_are_really_gone() -> None:
    store, watched, at = MemoryStore(START, 1 << 20), list[weakref.ref[object]](), 4
    for _ in range(3):
        block, raw = block_of(transaction(), start=at)
        watched.append(weakref.ref(raw))
        store.put(block)
        at = block.end.offset
    del raw, block
    store.ack(Position("binlog.000001", 4 + 2 * 30))
    assert [memory() is None for memory in watched] == [True, True, False]


def test_discard_leaves_whole_transactions_and_frees_acked_ones() -> None:
    one, two = blocks_of([*transaction(), (5, False)], [(6, False)])
    store = MemoryStore(START, 1 << 20)
    store.put(one)
    store.put(two)
    store.ack(one.end_of(2))
    assert store.discard_incomplete() == one.end_of(2)
    assert store.sequences == (2, 2, 2)
    assert store.size_bytes == 0
    assert store.first == one.end_of(2)


def test_a_failure_wakes_and_stops_everybody() -> None:
    store = MemoryStore(START, 1 << 20)
    raised = list[BaseException]()

    def wait() -> None:
        try:
            store.get(1, timeout_s=_TOO_LONG_S)
        except SourceConnectionError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait, name="waits-for-a-batch", daemon=True)
    waiting.start()
    store.fail(SourceConnectionError("gone"))
    waiting.join(_DEADLINE_S)
    assert [str(error) for error in raised] == ["gone"]
    (block,) = blocks_of(transaction())
    with pytest.raises(SourceConnectionError, match="gone"):
        store.put(block)
    with pytest.raises(SourceConnectionError, match="gone"):
        store.read(START, START)


def test_a_rollback_wakes_who_waits_for_a_batch() -> None:
    (block,) = blocks_of(transaction())
    waits = threading.Event()

    def clock() -> float:
        waits.set()
        return 0.0

    store = MemoryStore(START, 1 << 20, clock=clock)
    store.put(block)
    assert store.get(1) is not None
    waits.clear()
    found = list[Batch | None]()
    waiting = threading.Thread(
        target=lambda: found.append(store.get(1, timeout_s=_TOO_LONG_S)), name="waits-for-a-batch", daemon=True
    )
    waiting.start()
    assert waits.wait(_DEADLINE_S)
    store.rollback()
    waiting.join(_DEADLINE_S)
    assert [batch is not None for batch in found] == [True]


def test_a_producer_waits_for_a_consumer_and_nothing_is_lost() -> None:
    """Real threads; some transactions are larger than the ring."""
    contents = [[(10, False), *[(20, False)] * (number % 7), (10, True)] for number in range(300)]
    pieces = blocks_of(*(content[i : i + 2] for content in contents for i in range(0, len(content), 2)))
    store = MemoryStore(START, 3 * max(piece.size_bytes for piece in pieces), slots=4)
    producer = threading.Thread(target=lambda: [store.put(piece) for piece in pieces], name="puts", daemon=True)
    producer.start()
    seen, last = list[int](), pieces[-1].end
    while not seen or store.sequences[2] < store.sequences[0] or producer.is_alive():
        batch = store.get(100, timeout_s=_DEADLINE_S)
        assert batch is not None, f"nothing came before {last}"
        assert batch.blocks[-1].column("boundary")[-1] == 1
        seen += [int(offset) for block in batch.blocks for offset in block.column("position")]
        store.ack(batch.end)
        if batch.end == last:
            break
    producer.join(_DEADLINE_S)
    assert not producer.is_alive()
    assert seen == [int(offset) for piece in pieces for offset in piece.column("position")]
    assert store.size_bytes == 0
