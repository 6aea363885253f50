"""The named states in which a client is served, and how it goes from one to the next."""

import pytest

from penstock.errors import StoreError
from penstock.store import BatchSize, EventStore, MemoryStorage, Start
from penstock.store.client import AheadOfStore, CatchingUp, InStore, Joining, Serving
from tests.support.store_blocks import START, blocks_of, got, transaction
from tests.support.store_log import begun


def serving(store: EventStore, name: str) -> Serving:
    return store._registry.clients[name].serving


def test_the_store_is_put_together_and_inherits_nothing() -> None:
    assert EventStore.__mro__ == (EventStore, object)


def test_a_client_that_begins_in_the_store_is_served_from_it() -> None:
    store, _ = begun(4)
    store.add_client("one", Start.stored())
    assert serving(store, "one") == InStore()


def test_a_client_that_begins_before_the_store_catches_up_joins_and_leaves() -> None:
    store, _ = begun(4)
    store.add_client("late", Start.at(START))
    assert isinstance(serving(store, "late"), CatchingUp)
    seen, ends = list[type[Serving]](), list[object]()
    while not isinstance(serving(store, "late"), InStore):
        batch = store.get("late", BatchSize(3))
        seen.append(type(serving(store, "late")))
        if batch is not None:
            ends.append(batch.end)
            store.ack("late", batch.end)
    assert seen[0] is CatchingUp
    assert seen[-1] in {Joining, InStore}
    assert len(ends) == len(set(ends))


def test_a_client_whose_cursor_is_after_the_store_waits_until_the_store_has_it() -> None:
    blocks = blocks_of(*[transaction()] * 3)
    store = EventStore(MemoryStorage(1 << 20), blocks[0].start)
    store.put(blocks[0])
    store.add_client("one", Start.cursor(blocks[1].end))
    assert serving(store, "one") == AheadOfStore(blocks[1].end)
    assert store.get("one", BatchSize(100)) is None
    store.put(blocks[1])
    assert serving(store, "one") == InStore()
    store.put(blocks[2])
    assert got(store, name="one").start == blocks[1].end


def test_a_lost_client_says_why_until_it_is_forgotten() -> None:
    store, _ = begun(4)
    store.add_client("one", Start.stored())
    store._registry.clients["one"].lose("the disk was full")
    with pytest.raises(StoreError, match="client one is lost: the disk was full"):
        store.get("one", BatchSize(1))
    store.forget_client("one")
    store.add_client("one", Start.stored())
    assert serving(store, "one") == InStore()
