"""What a store says of itself: who holds what, and for whom it is kept."""

from penstock.store import ClientState, EventStore, MemoryStorage
from penstock.store.client_registry import IDLE_S
from tests.support.store_blocks import ALL, START, blocks_of, got, store_of, transaction


def test_who_has_acked_least_holds_the_oldest() -> None:
    store = store_of(transaction(), transaction(), transaction())
    store.add_client("two")
    assert store.stats().holders == ["one", "two"]
    batch = got(store, name="two")
    store.ack("two", batch.end)
    stats = store.stats()
    assert stats.holders == ["one"]
    first, two = stats.clients
    assert (first.waiting_entries, two.waiting_entries) == (9, 0)
    assert first.waiting_bytes == stats.put_bytes - stats.acked_bytes > two.waiting_bytes == 0
    assert (stats.put, stats.acked) == (8, -1)
    assert stats.stored_bytes == store.size_bytes
    store.ack("one", got(store).end)
    stats = store.stats()
    assert (stats.holders, stats.acked, stats.stored_bytes) == ([], 8, 0)
    assert stats.latest == store.latest


def test_a_full_store_says_so() -> None:
    store = store_of(transaction(), slots=4)
    assert not store.stats().is_full
    (block,) = blocks_of(transaction())
    assert not store.put(block, timeout_s=0)
    assert store.stats().is_full
    store.ack("one", got(store, ALL).end)
    assert not store.stats().is_full


def test_to_be_counted_is_no_sign_of_life() -> None:
    now = 0.0
    store = EventStore(MemoryStorage(1 << 20), START, clock=lambda: now)
    store.add_client("one")
    now = IDLE_S + 1
    (client,) = store.stats().clients
    (client,) = store.stats().clients
    assert (client.state, client.idle_s) == (ClientState.IDLE, IDLE_S + 1)
