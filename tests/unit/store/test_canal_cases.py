"""Canal's own store cases, for memory, files and both, in entries (`items`) and in memory units (`memory`).

Beside `TestPutAndGet`, `TestRollbackAndAck` and `TestMultiThread`, which are PutAndGetTest, RollbackAndAckTest and
MultiThreadTest here, and together with `TestMemBatch` also MemBatchTest:
* a full ring refuses at once and after a time: test_store.py, TestPut.test_a_full_ring_refuses_in_entries_and_in_bytes;
* a blocking get ends when it is interrupted: here by a stop; by a failure in test_store.py, TestEndings, and when the
  client is forgotten in test_trouble.py;
* a batch in memory units to the byte: test_store.py, TestGet.test_a_batch_in_memory_units_is_exact_and_never_empty.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import EVENT_INDEX_BYTES
from penstock.binlog.events.layout import Entry
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import Batch, BatchSize, EventStore, FileStorage, MemoryStorage, TieredStorage
from penstock.store.batch import MEMORY_UNIT
from penstock.store.block_info import memory_bytes
from penstock.store.block_storage import BlockStorage
from tests.support.store_blocks import START, blocks_of, got
from tests.support.store_model import are_bytes_right

Unit = Literal["items", "memory"]
Make = Callable[..., EventStore]
RING = 16
_EVENT = MEMORY_UNIT - EVENT_INDEX_BYTES  # an entry of it is a unit of memory
_IN_MEMORY = memory_bytes(MEMORY_UNIT, 1)  # with what a block takes
_DEADLINE_S = 20.0


@pytest.fixture(params=["memory", "file", "mixed"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["items", "memory"])
def unit(request: pytest.FixtureRequest) -> Unit:
    return request.param


@pytest.fixture
def make(kind: str, tmp_path: Path) -> Iterator[Make]:
    """A store with the client `one`; files are small, and of the mixed store's entries few are in memory."""
    stores = list[EventStore]()

    def files() -> FileStorage:
        return FileStorage(tmp_path, segment_bytes=3 * MEMORY_UNIT, sync="none")

    def made(limit_bytes: int = RING * _IN_MEMORY, slots: int = RING) -> EventStore:
        storages: dict[str, Callable[[], BlockStorage]] = {
            "memory": lambda: MemoryStorage(limit_bytes, slots=slots),
            "file": files,
            "mixed": lambda: TieredStorage(limit_bytes // 4, files()),
        }
        store = EventStore(storages[kind](), START)
        store.add_client("one")
        stores.append(store)
        return store

    yield made
    for store in stores:
        if store.states():
            store.stop()


def entries(count: int, size: int = _EVENT) -> list[Block]:
    """One in each block; the log is between two transactions after each."""
    return blocks_of(*[_events(1, size)] * count)


def _events(count: int, size: int) -> list[tuple[int, int]]:
    return [(size, Entry.DDL)] * count


def put(store: EventStore, blocks: list[Block]) -> None:
    for block in blocks:
        assert store.put(block, _DEADLINE_S)


def is_all_of(batch: Batch, blocks: list[Block]) -> bool:
    """Whether it holds these, one after the other, byte for byte."""
    ranges = [(block.start, block.end) for block in batch.blocks]
    is_same = ranges == [(block.start, block.end) for block in blocks]
    return (
        is_same
        and (batch.start, batch.end) == (blocks[0].start, blocks[-1].end)
        and all(map(are_bytes_right, batch.blocks))
    )


class TestPutAndGet:
    @pytest.mark.parametrize("timeout_s", [None, 1.0, 0.0])
    def test_one_put(self, make: Make, timeout_s: float | None) -> None:
        store = make()
        (block,) = entries(1)
        assert store.put(block, timeout_s)
        assert store.sequences("one") == (0, -1, -1)

    @pytest.mark.parametrize("kind", ["file", "mixed"], indirect=True)
    def test_a_full_put_goes_to_files(self, make: Make) -> None:
        """Canal refuses what its ring does not hold; here that is what memory alone does."""
        store = make()
        blocks = entries(3 * RING)
        put(store, blocks)
        assert store.problem == ""
        assert is_all_of(got(store), blocks)

    def test_one_put_one_get(self, make: Make, unit: Unit) -> None:
        """Canal's range has the first entry at both ends; here it is from before it to after it."""
        store = make()
        (block,) = entries(1)
        put(store, [block])
        batch = got(store, BatchSize(1, unit))
        assert (batch.start, batch.end, batch.ack) == (store.first, store.latest, block.end)
        assert is_all_of(batch, [block])
        assert store.get("one", BatchSize(1, unit)) is None

    def test_a_full_put_and_one_get_of_all(self, make: Make, unit: Unit) -> None:
        store = make()
        blocks = entries(RING)
        put(store, blocks)
        assert (store.first, store.latest) == (START, blocks[-1].end)
        batch = got(store, BatchSize(RING, unit))
        assert (batch.first_sequence, batch.end_sequence) == (0, RING - 1)
        assert is_all_of(batch, blocks)

    def test_a_blocking_get_has_all_it_wants_and_the_next_one_waits(self, make: Make, unit: Unit) -> None:
        store = make()
        blocks = entries(10)
        put(store, blocks)
        batch = store.get("one", BatchSize(10, unit), None)
        assert batch is not None
        assert is_all_of(batch, blocks)
        said = list[str]()

        def wait() -> None:
            try:
                store.get("one", BatchSize(10, unit), None)
            except StoreError as error:
                said.append(str(error))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        store.stop()
        waiting.join(_DEADLINE_S)
        assert said == ["the store was stopped"]


class TestRollbackAndAck:
    def test_rollback(self, make: Make, unit: Unit) -> None:
        """Canal rolls back everybody; here it is one client's own."""
        store = make()
        store.add_client("two")
        blocks, all_of_it = entries(RING), BatchSize(RING, unit)
        half = blocks[: RING // 2]
        put(store, half)
        assert (store.first, store.latest) == (START, half[-1].end)
        assert is_all_of(got(store, all_of_it), half)
        assert is_all_of(got(store, all_of_it, "two"), half)
        store.rollback("one")
        assert is_all_of(got(store, all_of_it), half)
        put(store, blocks[RING // 2 :])
        assert is_all_of(got(store, all_of_it), blocks[RING // 2 :])
        store.rollback("one")
        batch = got(store, all_of_it)
        assert is_all_of(batch, blocks)
        assert (batch.start, batch.end) == (store.first, store.latest)
        assert is_all_of(got(store, all_of_it, "two"), blocks[RING // 2 :])

    def test_ack(self, make: Make, unit: Unit, kind: str) -> None:
        store = make()
        blocks, all_of_it = entries(RING), BatchSize(RING, unit)
        put(store, blocks[: RING // 2])
        first = got(store, all_of_it)
        store.ack("one", first.end)
        put(store, blocks[RING // 2 :])
        assert is_all_of(got(store, all_of_it), blocks[RING // 2 :])
        store.rollback("one")
        second = got(store, all_of_it)
        assert is_all_of(second, blocks[RING // 2 :])
        assert (second.start, second.end) == (first.end, store.latest)
        store.ack("one", second.end, second.end_sequence)
        assert store.get("one", all_of_it) is None
        store.rollback("one")
        assert store.get("one", all_of_it) is None
        assert store.sequences("one") == (RING - 1, RING - 1, RING - 1)
        if kind != "mixed":  # which may just be moving a block, and frees with the next put
            assert (store.first, store.size_bytes) == (store.latest, 0)


class TestMemBatch:
    def test_one_larger_than_all_memory(self, make: Make) -> None:
        store = make(limit_bytes=MEMORY_UNIT)
        blocks = entries(2, MEMORY_UNIT + 1)
        assert store.put(blocks[0], 0)
        batch = got(store, BatchSize(1, "memory"))
        assert is_all_of(batch, blocks[:1])
        store.ack("one", batch.end)
        assert store.put(blocks[1], 0)

    def test_a_batch_does_not_pass_its_size(self, make: Make) -> None:
        """Canal adds entries while the sum so far is not above the size: one too many."""
        store = make()
        blocks = entries(6, _EVENT * 2 // 3)
        put(store, blocks)
        assert is_all_of(got(store, BatchSize(1, "memory")), blocks[:1])
        assert is_all_of(got(store, BatchSize(3, "memory")), blocks[1:5])


class TestMultiThread:
    """Canal continues for 30 s and looks at offsets; here it is a second, and every byte."""

    COUNT = 2000

    @pytest.mark.parametrize(("unit", "rolls_back"), [("items", False), ("memory", True)], indirect=["unit"])
    def test_one_puts_and_one_gets(self, make: Make, unit: Unit, rolls_back: bool) -> None:
        store = make(limit_bytes=64 * memory_bytes(100, 1), slots=64)
        chance, until = random.Random(7), time.monotonic() + _DEADLINE_S
        with ThreadPoolExecutor(1) as pool:
            producer = pool.submit(produce, store, self.COUNT)
            at, again, rollbacks = START, list[Position](), 0
            while at.offset < START.offset + 10 * self.COUNT:
                assert time.monotonic() < until
                pause(chance)
                size = chance.randrange(1, 30) if unit == "items" else chance.randrange(1, 4)
                batch = store.get("one", BatchSize(size, unit), 0.01)
                if batch is None:
                    continue
                ends = list(ends_of(batch, at))
                assert ends[: len(again)] == again[: len(ends)]
                again = again[len(ends) :]
                if rolls_back and not again and chance.random() < 0.1:
                    store.rollback("one")
                    again, rollbacks = ends, rollbacks + 1
                else:
                    at = batch.end
                    store.ack("one", at, batch.end_sequence)
            assert producer.result(_DEADLINE_S) == at
        assert store.get("one", BatchSize(1)) is None
        assert (rollbacks > 5) == rolls_back


def produce(store: EventStore, count: int) -> Position:
    chance, at = random.Random(8), START
    for block in blocks_of(*[_events(5, 10)] * (count // 5)):
        pause(chance)
        assert store.put(block, _DEADLINE_S)
        at = block.end
    return at


def ends_of(batch: Batch, at: Position) -> Iterator[Position]:
    """Of its entries, of which each begins where the one before it ends."""
    assert batch.start == at
    for block in batch.blocks:
        assert are_bytes_right(block)
        for number, offset in enumerate(block.column("position").tolist()):
            assert offset == at.offset
            at = block.end_of_event(number)
            yield at
    assert batch.end == at


def pause(chance: random.Random) -> None:
    if chance.random() < 0.05:
        time.sleep(chance.random() * 0.004)
