"""What one does while another is in the middle of something, at the very moment."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileStorage, MemoryStorage, Start, TieredStorage
from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.segment import Segment
from tests.support.store_blocks import ALL, BEGIN, END, ROWS, START, blocks_of, got, transaction
from tests.support.store_log import Log, begun


class Interrupted(MemoryStorage):
    """Something happens when a block is looked into for the first time."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.meanwhile: Callable[[], object] | None = None

    def entries(self, held: BlockInfo) -> BlockEntries:
        entries_read = super().entries(held)
        if self.meanwhile is not None:
            happen, self.meanwhile = self.meanwhile, None
            happen()
        return entries_read


def test_a_transaction_goes_while_it_is_got() -> None:
    storage = Interrupted()
    store = EventStore(storage, START)
    store.add_client("one")
    first, two = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    store.put(first)
    store.ack("one", got(store).end)
    store.put(two)
    storage.meanwhile = store.discard_incomplete
    assert store.get("one", ALL) is None
    assert store.sequences("one") == (2, 2, 2)
    again = blocks_of(transaction(), [(10, BEGIN), (10, ROWS), (10, END)])[1]
    store.put(again)
    assert (got(store).first_sequence, store.sequences("one")) == (3, (5, 5, 2))


def test_blocks_go_while_a_client_comes_and_it_reads_them_from_the_log() -> None:
    storage, blocks = Interrupted(), blocks_of(*[transaction(2)] * 4)
    store = EventStore(storage, START, source_log=Log(blocks))
    store.add_client("one")
    store.put(blocks)
    end = got(store).end
    storage.meanwhile = lambda: store.ack("one", end)
    assert store.add_client("late", Start.at_time(int(blocks[1].column("commit_us")[0]))) == blocks[1].start
    assert (got(store, name="late").start, store.size_bytes) == (blocks[1].start, 0)


def test_blocks_go_while_a_client_comes_and_nobody_has_them() -> None:
    storage, blocks = Interrupted(), blocks_of(*[[*transaction(), *transaction()]] * 2)
    store = EventStore(storage, START)
    store.add_client("one")
    store.put(blocks)
    end = got(store).end
    storage.meanwhile = lambda: store.ack("one", end)
    with pytest.raises(PositionLostError, match=f"the store begins at {end}"):
        store.add_client("late", Start.at(Position(START.file, START.offset + 30)))


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_the_connection_breaks_while_a_client_reads_the_log(moment: int) -> None:
    """That of capture; what the client has just read is not lost."""
    store, log = begun(10)
    store.add_client("late", Start.at(START))
    reads = [0]

    def breaks() -> None:
        reads[0] += 1
        if reads[0] == moment:
            store.discard_incomplete()

    log.while_reading = breaks
    seen = list[int]()
    while batch := store.get("late", BatchSize(4)):
        seen += [int(at) for block in batch.blocks for at in block.column("position")]
        store.ack("late", batch.end)
        store.rollback("late")  # reads again, so that there are more moments
    assert seen == [int(at) for block in log.blocks for at in block.column("position")]


def test_an_ack_comes_while_the_last_batch_from_the_log_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = begun(4)
    store.add_client("late", Start.at(START))
    first, two = (got(store, BatchSize(4), "late") for _ in range(2))
    client: Any = store._registry.clients["late"]
    origin = store._index.origin
    client.join(origin, origin)  # as when the store waits for it
    store.ack("late", first.end)

    class Noting(deque[Any]):
        def append(self, item: Any) -> None:
            store.ack("late", two.end)
            super().append(item)

    client.catch_up._waiting = Noting(client.catch_up._waiting)
    last = got(store, BatchSize(4), "late")
    store.rollback("late")
    again = got(store, BatchSize(4), "late")
    assert (again.start, again.end) == (last.start, last.end)
    store.ack("late", again.end)


def test_others_come_under_the_numbers_of_a_block_that_is_looked_into() -> None:
    """In smaller blocks than before."""

    class Late(Interrupted):
        def entries(self, held: BlockInfo) -> BlockEntries:
            if self.meanwhile is not None:
                happen, self.meanwhile = self.meanwhile, None
                happen()
            return super().entries(held)

    storage = Late()
    store = EventStore(storage, START)
    store.add_client("one")
    (whole,) = blocks_of([*transaction(), (10, BEGIN), *[(10, ROWS)] * 3, (10, END)])
    store.put(whole.slice(0, 3))
    store.ack("one", got(store).end)
    store.put(whole.slice(3, 7))

    def again() -> None:
        store.discard_incomplete()
        store.put([whole.slice(3, 5), whole.slice(5, 8)])

    storage.meanwhile = again
    batch = got(store)
    assert (batch.first_sequence, batch.end_sequence, sum(map(len, batch.blocks))) == (3, 7, 5)


def test_a_slow_read_ends_when_others_are_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage: Any = FileStorage(tmp_path, sync="none")
    store = EventStore(storage, START)
    store.add_client("one")
    (whole,) = blocks_of([*transaction(), (10, BEGIN), *[(10, ROWS)] * 3, (10, END)])
    store.put(whole.slice(0, 3))
    store.ack("one", got(store).end)
    store.put(whole.slice(3, 5))
    storage._cache.clear()  # as others' reads do
    real = Segment.entries

    def slow(self: Segment, at: int, length: int) -> BlockEntries | None:
        data = real(self, at, length)
        monkeypatch.setattr(Segment, "entries", real)
        store.discard_incomplete()
        store.put(whole.slice(3, len(whole)))
        return data

    monkeypatch.setattr(Segment, "entries", slow)
    batch = got(store)
    assert (batch.first_sequence, batch.end_sequence, sum(map(len, batch.blocks))) == (3, 7, 5)


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.blocks"))


class InterruptedFiles(FileStorage):
    """Something happens after a block was written and before it counts."""

    meanwhile: Callable[[], object] | None = None

    def write(self, blocks: Sequence[tuple[BlockInfo, BlockEntries]]) -> None:
        super().write(blocks)
        happen, self.meanwhile = self.meanwhile, None
        if happen is not None:
            happen()


def mixed(folder: Path) -> tuple[EventStore, InterruptedFiles, TieredStorage]:
    """Nothing moves to files by itself."""
    files = InterruptedFiles(folder, sync="none")
    storage = TieredStorage(1 << 20, files)
    store = EventStore(storage, START)
    store.add_client("one")
    return store, files, storage


def move_first(storage: Any) -> None:
    storage._move(*next(iter(storage._memory.values())))


def test_a_block_that_all_ack_while_it_moves_leaves_nothing(tmp_path: Path) -> None:
    store, files, storage = mixed(tmp_path)
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    end = got(store).end
    files.meanwhile = lambda: store.ack("one", end)
    move_first(storage)
    assert (files_in(tmp_path), store.size_bytes, store.first) == ([], 0, blocks[-1].end)
    store.stop()
    assert not len(FileStorage(tmp_path, sync="none").blocks)


def test_one_that_is_taken_away_while_it_moves_is_read_again_from_the_source(tmp_path: Path) -> None:
    store, files, storage = mixed(tmp_path)
    whole, part = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    store.put([whole, part])
    move_first(storage)
    files.meanwhile = store.discard_incomplete
    move_first(storage)
    again = blocks_of(transaction(), transaction())[1]
    store.put(again)
    move_first(storage)
    assert [(block.start, block.end) for block in got(store).blocks] == [
        (whole.start, whole.end),
        (again.start, again.end),
    ]
    store.stop()
    assert [held.end for held in FileStorage(tmp_path, sync="none").blocks] == [whole.end, again.end]


def test_what_is_in_memory_stays_while_files_before_it_do(tmp_path: Path) -> None:
    """A file that is being written to does not go; what moves next is always what comes after the files."""
    store, files, storage = mixed(tmp_path)
    blocks = blocks_of(*[transaction()] * 4)
    store.put(blocks[:3])
    move_first(storage)
    end, real = got(store).end, files.free
    files.free = lambda _: None  # as during a write
    files.meanwhile = lambda: store.ack("one", end)
    move_first(storage)
    assert [held.end for held in files.blocks] == [block.end for block in blocks[:2]]
    files.free = real
    store.put(blocks[3])
    assert (files_in(tmp_path), store.first) == ([], blocks[2].end)
    move_first(storage)
    store.stop()
    again = EventStore(FileStorage(tmp_path, sync="none"), START)
    assert (again.first, again.latest) == (blocks[3].start, blocks[3].end)


def test_one_that_acked_inside_a_transaction_that_goes_begins_before_it() -> None:
    store = EventStore(MemoryStorage(1 << 20), START)
    store.add_client("one")
    whole, part = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    for block in (whole, part):
        store.put(block)
        store.ack("one", got(store).end)
    assert store.discard_incomplete() == whole.end
    assert store.add_client("new") == whole.end
    again = blocks_of(transaction(), transaction())[1]
    store.put(again)
    for name in ("one", "new"):
        batch = got(store, BatchSize(3), name)
        assert (batch.start, batch.end, batch.first_sequence) == (whole.end, again.end, 3)


def test_a_rollback_comes_while_one_that_has_read_the_log_waits_for_more() -> None:
    store, log = begun(3)
    store.add_client("late", Start.at(START))
    first = got(store, BatchSize(8), "late")
    got(store, BatchSize(8), "late")
    seen = list[Position]()

    def wait() -> None:
        seen.append(got_after(store, "late"))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(0.05)
    store.rollback("late")
    store.put(blocks_of(*[transaction(2)] * 4)[3])
    waiting.join(20)
    assert seen == [first.start]
    assert len(log.reads) >= 2


def got_after(store: EventStore, name: str) -> Position:
    batch = store.get(name, BatchSize(1), 20)
    assert batch is not None
    return batch.start


def test_one_that_joins_inside_a_transaction_gets_it_in_pieces_when_it_rejoins() -> None:
    """It has acked nothing of it; waiting for its end would be for ever, when it is larger than the ring."""
    store = EventStore(MemoryStorage(1 << 20, slots=4), START)
    store.add_client("one")
    whole, *pieces, end = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)], *[[(10, ROWS)] * 2] * 9, [(10, END)])
    for block in (whole, *pieces[:4]):
        assert store.put(block, timeout_s=0)
        store.ack("one", got(store).end)
    store.add_client("new")
    assert store.discard_incomplete() == whole.end
    for block in (*pieces, end):
        assert store.put(block, timeout_s=0)
        for name in ("one", "new"):
            store.ack(name, got(store, name=name).end)
    assert store.first == end.end
