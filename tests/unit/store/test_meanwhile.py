"""What one does while another is in the middle of something, at the very moment."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileShelf, MemoryShelf, MixedShelf, Start
from penstock.store.held import Entries, Held
from tests.unit.store.test_catch_up import Log
from tests.unit.store.test_store import ALL, BEGIN, END, ROWS, START, blocks_of, got, transaction


class Interrupted(MemoryShelf):
    """Something happens when a block is looked into for the first time."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.meanwhile: Callable[[], object] | None = None

    def entries(self, held: Held) -> Entries:
        found = super().entries(held)
        if self.meanwhile is not None:
            happen, self.meanwhile = self.meanwhile, None
            happen()
        return found


def test_a_transaction_goes_while_it_is_got() -> None:
    shelf = Interrupted()
    store = EventStore(shelf, START)
    store.add_client("one")
    one, two = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    store.put(one)
    store.ack("one", got(store).end)
    store.put(two)
    shelf.meanwhile = store.discard_incomplete
    assert store.get("one", ALL) is None
    assert store.sequences("one") == (2, 2, 2)
    again = blocks_of(transaction(), [(10, BEGIN), (10, ROWS), (10, END)])[1]
    store.put(again)
    assert (got(store).first_sequence, store.sequences("one")) == (3, (5, 5, 2))


def test_blocks_go_while_a_client_comes_and_it_reads_them_from_the_log() -> None:
    shelf, blocks = Interrupted(), blocks_of(*[transaction(2)] * 4)
    store = EventStore(shelf, START, source_log=Log(blocks))
    store.add_client("one")
    store.put(blocks)
    end = got(store).end
    shelf.meanwhile = lambda: store.ack("one", end)
    assert store.add_client("late", Start.at_time(int(blocks[1].column("commit_us")[0]))) == blocks[1].start
    assert (got(store, name="late").start, store.size_bytes) == (blocks[1].start, 0)


def test_blocks_go_while_a_client_comes_and_nobody_has_them() -> None:
    shelf, blocks = Interrupted(), blocks_of(*[[*transaction(), *transaction()]] * 2)
    store = EventStore(shelf, START)
    store.add_client("one")
    store.put(blocks)
    end = got(store).end
    shelf.meanwhile = lambda: store.ack("one", end)
    with pytest.raises(PositionLostError, match=f"the store begins at {end}"):
        store.add_client("late", Start.at(Position(START.file, START.offset + 30)))


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.blocks"))


class InterruptedFiles(FileShelf):
    """Something happens after a block was written and before it counts."""

    meanwhile: Callable[[], object] | None = None

    def write(self, blocks: Sequence[tuple[Held, Entries]]) -> None:
        super().write(blocks)
        happen, self.meanwhile = self.meanwhile, None
        if happen is not None:
            happen()


def mixed(folder: Path) -> tuple[EventStore, InterruptedFiles, MixedShelf]:
    """Nothing moves to files by itself."""
    files = InterruptedFiles(folder, sync="none")
    shelf = MixedShelf(1 << 20, files)
    store = EventStore(shelf, START)
    store.add_client("one")
    return store, files, shelf


def move_first(shelf: Any) -> None:
    shelf._move(*next(iter(shelf._memory.values())))


def test_a_block_that_all_ack_while_it_moves_leaves_nothing(tmp_path: Path) -> None:
    store, files, shelf = mixed(tmp_path)
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    end = got(store).end
    files.meanwhile = lambda: store.ack("one", end)
    move_first(shelf)
    assert (files_in(tmp_path), store.size_bytes, store.first) == ([], 0, blocks[-1].end)
    store.stop()
    assert not len(FileShelf(tmp_path, sync="none").held)


def test_one_that_is_taken_away_while_it_moves_comes_again_from_the_source(tmp_path: Path) -> None:
    store, files, shelf = mixed(tmp_path)
    whole, part = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    store.put([whole, part])
    move_first(shelf)
    files.meanwhile = store.discard_incomplete
    move_first(shelf)
    again = blocks_of(transaction(), transaction())[1]
    store.put(again)
    move_first(shelf)
    assert [(block.start, block.end) for block in got(store).blocks] == [
        (whole.start, whole.end),
        (again.start, again.end),
    ]
    store.stop()
    assert [held.end for held in FileShelf(tmp_path, sync="none").held] == [whole.end, again.end]


def test_what_is_in_memory_stays_while_files_before_it_do(tmp_path: Path) -> None:
    """A file that is being written to does not go; what moves next is always what comes after the files."""
    store, files, shelf = mixed(tmp_path)
    blocks = blocks_of(*[transaction()] * 4)
    store.put(blocks[:3])
    move_first(shelf)
    end, real = got(store).end, files.free
    files.free = lambda _: None  # as while a write goes on
    files.meanwhile = lambda: store.ack("one", end)
    move_first(shelf)
    assert [held.end for held in files.held] == [block.end for block in blocks[:2]]
    files.free = real
    store.put(blocks[3])
    assert (files_in(tmp_path), store.first) == ([], blocks[2].end)
    move_first(shelf)
    store.stop()
    again = EventStore(FileShelf(tmp_path, sync="none"), START)
    assert (again.first, again.latest) == (blocks[3].start, blocks[3].end)


def test_one_that_acked_inside_a_transaction_that_goes_begins_before_it() -> None:
    store = EventStore(MemoryShelf(1 << 20), START)
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
