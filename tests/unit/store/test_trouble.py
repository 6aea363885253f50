"""What goes wrong beside the rules: blocks that go while they are read, disks that fill up, threads that die."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileShelf, MemoryShelf, MixedShelf, Start
from penstock.store.held import Entries, Held
from penstock.store.segment import Segment
from penstock.store.shelf import BlockGoneError, Shelf
from tests.unit.store.test_catch_up import Log
from tests.unit.store.test_store import BEGIN, END, START, blocks_of, got, transaction

_DEADLINE_S = 20.0


def shelf_of(kind: str, folder: Path) -> Shelf:
    match kind:
        case "memory":
            return MemoryShelf(1 << 20)
        case "file":
            return FileShelf(folder, sync="none")
        case _:
            return MixedShelf(1 << 20, FileShelf(folder, sync="none"))


def full(*_: Any) -> int:
    raise OSError(28, "No space left on device")


def test_a_block_that_goes_while_it_is_read_comes_from_the_log() -> None:
    class Going(MemoryShelf):
        def entries(self, held: Held) -> Entries:
            raise BlockGoneError.of(held)

    store = EventStore(Going(1 << 20), START)
    (block,) = blocks_of(transaction())
    store.put(block)
    assert store.read(START, block.end) is None


def test_memory_and_files_say_when_a_block_is_gone(tmp_path: Path) -> None:
    for kind in ("memory", "file", "mixed"):
        shelf = shelf_of(kind, tmp_path / kind)
        store = EventStore(shelf, START)
        store.add_client("one")
        store.put(blocks_of(transaction())[0])
        (held,) = shelf.held
        store.ack("one", got(store).end)
        with pytest.raises(BlockGoneError, match=r"entries 0 to 2, up to binlog\.000001:34, are no longer"):
            shelf.entries(held)
        shelf.close()


def test_forgetting_a_client_ends_its_waiting() -> None:
    store = EventStore(MemoryShelf(1 << 20), START)
    store.add_client("one")
    said = list[str]()

    def wait() -> None:
        try:
            store.get("one", BatchSize(1), None)
        except StoreError as error:
            said.append(str(error))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(0.05)
    store.forget_client("one")
    waiting.join(_DEADLINE_S)
    assert said == ["client one was forgotten"]


@pytest.mark.parametrize("kind", ["memory", "file", "mixed"])
def test_stop_ends_every_kind(tmp_path: Path, kind: str) -> None:
    store = EventStore(shelf_of(kind, tmp_path), START)
    store.add_client("one")
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    store.stop()
    with pytest.raises(StoreError, match="the store was stopped"):
        store.put(blocks[0])
    if kind != "memory":
        again = EventStore(shelf_of(kind, tmp_path), START)
        assert again.latest == blocks[-1].end
        again.stop()


def test_others_do_not_wait_while_the_log_is_looked_through() -> None:
    blocks = blocks_of(*[transaction(2)] * 3)

    class Slow(Log):
        def find(self, start: Start) -> Position:
            assert store.latest == blocks[-1].end  # would wait for ever
            return super().find(start)

    store = EventStore(MemoryShelf(1 << 20), START, source_log=Slow(blocks))
    store.add_client("fast")
    store.put(blocks)
    store.ack("fast", got(store, name="fast").end)
    assert store.add_client("late", Start.at_time(1000)) == blocks[1].start


def test_a_mover_that_dies_is_the_error_of_the_next_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FileShelf(tmp_path, sync="none")
    store = EventStore(MixedShelf(1000, files), START)
    store.add_client("slow")

    def broken(_: object) -> None:
        raise RuntimeError("of all things")

    monkeypatch.setattr(files, "write", broken)
    blocks = blocks_of(*[transaction(3)] * 10)

    def put_all() -> None:
        for block in blocks:
            assert store.put(block, _DEADLINE_S)

    with pytest.raises(StoreError, match="blocks cannot be moved to files: of all things"):
        put_all()
    assert store.problem


def test_a_full_disk_of_the_mixed_store_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store = EventStore(MixedShelf(1000, FileShelf(tmp_path, sync="none")), START)
    store.add_client("slow")
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", full)
    blocks = blocks_of(*[transaction(3)] * 10)
    done = 0
    while store.put(blocks[done], 0.05):
        done += 1
    assert "No space left on device" in store.problem
    monkeypatch.setattr(os, "pwritev", real)
    for block in blocks[done:]:
        assert store.put(block, _DEADLINE_S)
    assert got(store, name="slow").end == blocks[-1].end
    assert [record.message.split(" reason")[0] for record in caplog.records] == [
        "blocks stay in memory",
        "blocks move again",
    ]


@pytest.mark.parametrize("acked", [4, 6])
def test_an_incomplete_transaction_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acked: int) -> None:
    """Its block cannot be written back without it: capture begins one boundary earlier, and nobody misses anything."""
    store = EventStore(FileShelf(tmp_path, segment_bytes=1, sync="none"), START)
    store.add_client("one", is_kept_later=True)
    one, two = blocks_of(transaction(), [*transaction(), (10, BEGIN)])
    store.put([one, two])
    seen = got(store, BatchSize(acked))
    store.ack("one", seen.end)
    store.keep("one", seen.end)
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", full)
    assert store.discard_incomplete() == one.end
    assert store.acked == one.end
    monkeypatch.setattr(os, "pwritev", real)
    again = blocks_of(*[transaction()] * 3)[1:]
    store.put(again)
    batch = got(store)
    assert (batch.start, batch.end) == (one.end, again[-1].end)
    store.ack("one", batch.end)
    assert store.first == one.end  # that it acked once more is not kept yet
    store.keep("one", batch.end)
    assert store.first == batch.end


def test_without_the_beginning_it_stops_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = FileShelf(tmp_path, segment_bytes=1, sync="none")
    store = EventStore(shelf, START)
    store.put(blocks_of([(10, BEGIN)], [(10, END), (10, BEGIN)]))
    shelf.close()
    min(tmp_path.glob("*.blocks")).unlink()
    store = EventStore(FileShelf(tmp_path, segment_bytes=1, sync="none"), START)
    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(StoreError, match=r"lost the transaction that ends at .*:24 .*No space left.*make room"):
        store.discard_incomplete()


def test_what_is_being_written_does_not_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = FileShelf(tmp_path, segment_bytes=1, sync="none")
    store = EventStore(shelf, START)
    real = Segment.append

    def append(self: Segment, parts: Any) -> int:
        at = real(self, parts)
        shelf.free(1 << 40)
        return at

    monkeypatch.setattr(Segment, "append", append)
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    store.add_client("one")
    assert got(store).end == blocks[-1].end


def test_what_was_written_last_is_synced_without_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    monkeypatch.setattr(Segment, "sync", lambda _: synced.set())
    shelf = FileShelf(tmp_path, sync="interval", interval_s=0.05)
    store = EventStore(shelf, START)
    store.put(blocks_of(transaction())[0])
    synced.clear()
    store.put(blocks_of(transaction(), transaction())[1])
    assert synced.wait(_DEADLINE_S)
    shelf.close()


def test_what_was_cut_off_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shelf = FileShelf(tmp_path, sync="none")
    EventStore(shelf, START).put(blocks_of(transaction())[0])
    shelf.close()
    (path,) = tmp_path.glob("*.blocks")
    os.truncate(path, path.stat().st_size - 5)
    FileShelf(tmp_path, sync="none").close()
    (record,) = caplog.records
    assert "were no whole block and are cut off; it comes from the source's log again" in record.message
