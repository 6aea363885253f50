"""The index of blocks in files against a plain list."""

import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import block_index
from penstock.store.block_index import FileBlockIndex, IndexSnapshot, TieredIndex
from penstock.store.block_info import BlockInfo
from penstock.store.block_storage import BlockGoneError
from penstock.store.ring import Ring
from tests.twins.strategy import examples

_STEPS = st.lists(
    st.tuples(st.sampled_from(("append", "append", "append", "first", "last", "clear")), st.integers(0, 9)), max_size=80
)


def held_of(first: int, count: int) -> BlockInfo:
    file = f"binlog.{first // 20 + 1:06}"
    after = Position(f"binlog.{max(0, first - 1) // 20 + 1:06}", 10 * first)
    start, end = Position(file, 10 * first + 3), Position(file, 10 * (first + count), first)
    return BlockInfo(first, count, 7 * first, 7 * count, after, start, end, first if count % 2 else -1, count % 3 == 0)


def facts(held: BlockInfo) -> tuple[object, ...]:
    positions = [
        (position.file, position.offset, position.timestamp) for position in (held.after, held.start, held.end)
    ]
    return held.first, held.count, held.base, held.size, *positions, held.boundary, held.is_begin


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_index, "_PER_PAGE", 4)
    monkeypatch.setattr(block_index, "_CACHED", 3)


@examples(200)
@given(_STEPS)
def test_it_is_a_list_with_two_ends(steps: list[tuple[str, int]]) -> None:
    index, model, first = FileBlockIndex(), list[tuple[BlockInfo, int]](), 0
    for step, number in steps:
        match step:
            case "append":
                held = held_of(first, number + 1)
                index.append(held, (first, number, 5))
                model.append((held, number))
                first = held.last + 1
            case "first":
                until = model[min(number, len(model) - 1)][0].last if model else first
                gone = [held for held, _ in model if held.last <= until]
                dropped = index.drop_until(until)
                assert (facts(dropped) if dropped else None) == (facts(gone[-1]) if gone else None)
                model = model[len(gone) :]
            case "last" if model:
                held, _ = model.pop()
                assert facts(index.drop_last()) == facts(held)
                first = held.first
            case "clear":
                index.clear()
                model.clear()
            case _:
                pass
        assert [facts(held) for held in index] == [facts(held) for held, _ in model]
        assert len(index) == len(model) == index.tail - index.head
        for offset, (held, at) in enumerate(model):
            assert index.location_of(held) == (held.first, at, 5)
            assert index.segment_of(index.head + offset) == held.first
            assert index.find(lambda info, held=held: info.last < held.first) == index.head + offset
        assert index.location_of(held_of(first, 1)) is None
        with pytest.raises(StoreError, match="is not in the index"):
            index[index.tail]


def test_one_that_moves_from_memory_to_files_keeps_its_number() -> None:
    files, memory = FileBlockIndex(), Ring[BlockInfo]()
    joined = TieredIndex(files, memory, threading.Lock())
    for number in range(6):
        memory.append(held_of(number, 1))
    snapshot = IndexSnapshot(joined, threading.Lock())
    for moved in range(7):
        assert [held.first for held in joined] == [held.first for held in snapshot] == list(range(6))
        assert [joined.find(lambda info, number=number: info.first < number) for number in range(7)] == list(range(7))
        if moved < 6:
            files.append(memory.drop_first(), (0, 0, 0))
    files.drop_until(1)
    joined.head += 2
    assert [held.first for held in joined] == [2, 3, 4, 5]
    assert (joined[3].first, snapshot[3].first, len(snapshot)) == (3, 3, 6)
    with pytest.raises(BlockGoneError):
        snapshot[1]


def test_a_block_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be millions of them that a slow client has not got yet."""
    monkeypatch.undo()
    index, count = FileBlockIndex(), 50_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(count):
        index.append(held_of(number, 1), (0, number, 1))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / count < 150
