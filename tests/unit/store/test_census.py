"""What a store says of itself: who holds what, and for whom it is kept."""

from penstock.store import ClientState, EventStore, MemoryShelf
from penstock.store.roster import IDLE_S
from tests.unit.store.test_store import ALL, START, blocks_of, got, store_of, transaction


def test_who_has_acked_least_holds_the_oldest() -> None:
    store = store_of(transaction(), transaction(), transaction())
    store.add_client("two")
    assert store.census().holders == ["one", "two"]
    batch = got(store, name="two")
    store.ack("two", batch.end)
    census = store.census()
    assert census.holders == ["one"]
    one, two = census.clients
    assert (one.waiting_entries, two.waiting_entries) == (9, 0)
    assert one.waiting_bytes == census.put_bytes - census.acked_bytes > two.waiting_bytes == 0
    assert (census.put, census.acked) == (8, -1)
    assert census.held_bytes == store.size_bytes
    store.ack("one", got(store).end)
    census = store.census()
    assert (census.holders, census.acked, census.held_bytes) == ([], 8, 0)
    assert census.latest == store.latest


def test_a_full_store_says_so() -> None:
    store = store_of(transaction(), slots=4)
    assert not store.census().is_full
    (block,) = blocks_of(transaction())
    assert not store.put(block, timeout_s=0)
    assert store.census().is_full
    store.ack("one", got(store, ALL).end)
    assert not store.census().is_full


def test_to_be_counted_is_no_sign_of_life() -> None:
    now = 0.0
    store = EventStore(MemoryShelf(1 << 20), START, clock=lambda: now)
    store.add_client("one")
    now = IDLE_S + 1
    (one,) = store.census().clients
    (one,) = store.census().clients
    assert (one.state, one.idle_s) == (ClientState.IDLE, IDLE_S + 1)
