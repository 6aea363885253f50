"""What goes wrong beside the rules: blocks that go while they are read, disks that fill up, threads that die."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BlocksFreedError, StoreError, StoreFullError
from penstock.instance.clients import Clients
from penstock.meta import MetaManager
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileStorage, MemoryStorage, Start, TieredStorage, position_reader
from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.block_storage import BlockGoneError, BlockStorage
from penstock.store.segment import Segment
from penstock.testing import poll_until
from tests.support.store_blocks import BEGIN, END, ROWS, START, blocks_of, got, transaction
from tests.support.store_log import Log

_DEADLINE_S = 20.0


def storage_of(kind: str, folder: Path) -> BlockStorage:
    match kind:
        case "memory":
            return MemoryStorage(1 << 20)
        case "file":
            return FileStorage(folder, sync="none")
        case _:
            return TieredStorage(1 << 20, FileStorage(folder, sync="none"))


def full(*_: Any, **__: Any) -> int:
    raise OSError(28, "No space left on device")


def test_a_block_that_goes_while_it_is_read_comes_from_the_log() -> None:
    class Going(MemoryStorage):
        def entries(self, held: BlockInfo) -> BlockEntries:
            raise BlockGoneError.of(held)

    store = EventStore(Going(1 << 20), START)
    (block,) = blocks_of(transaction())
    store.put(block)
    assert store.read(START, block.end) is None


def test_a_large_range_is_read_block_by_block_and_says_that_the_rest_was_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(MemoryStorage):
        def entries(self, info: BlockInfo) -> BlockEntries:
            looked_at.append(info)
            return super().entries(info)

    looked_at: list[BlockInfo] = []
    store = EventStore(Counting(1 << 20), START)
    store.add_client("one")
    blocks = blocks_of(*[transaction()] * 4)
    for block in blocks:
        assert store.put(block)
    whole = store.read(START, store.latest)
    assert whole is not None
    assert len(list(whole)) == 4
    monkeypatch.setattr(position_reader, "EAGER_BYTES", 1)
    looked_at.clear()
    large = store.read(START, store.latest)
    assert large is not None
    assert len(looked_at) == 1
    assert [block.end for block in large] == [block.end for block in blocks]
    large = store.read(START, store.latest)
    assert large is not None
    rest = iter(large)
    assert next(rest).end == blocks[0].end
    store.release("one", store.latest)
    with pytest.raises(BlocksFreedError, match="read it again") as freed:
        list(rest)
    assert freed.value.transient


def test_what_is_always_gone_is_an_error_and_no_endless_loop() -> None:
    class Going(MemoryStorage):
        def entries(self, held: BlockInfo) -> BlockEntries:
            if is_going:
                raise BlockGoneError.of(held)
            return super().entries(held)

    is_going = False
    store = EventStore(Going(1 << 20), START)
    store.add_client("one")
    store.put(blocks_of([*transaction(), *transaction()])[0])
    is_going = True
    with pytest.raises(BlockGoneError, match="entries 0 to 5"):
        got(store)
    with pytest.raises(StoreError, match="client late cannot join: what it would begin with went 100 times"):
        store.add_client("late", Start.at(Position(START.file, 34)))
    with pytest.raises(StoreError, match=r"what follows binlog\.000001:4 went 100 times"):
        store.find_batch_end(START, 10)


def test_memory_and_files_say_when_a_block_is_gone(tmp_path: Path) -> None:
    for kind in ("memory", "file", "mixed"):
        storage = storage_of(kind, tmp_path / kind)
        store = EventStore(storage, START)
        store.add_client("one")
        store.put(blocks_of(transaction())[0])
        (held,) = storage.blocks
        store.ack("one", got(store).end)
        with pytest.raises(BlockGoneError, match=r"entries 0 to 2, up to binlog\.000001:34, are no longer"):
            storage.entries(held)
        storage.close()


def test_forgetting_a_client_ends_its_waiting() -> None:
    store = EventStore(MemoryStorage(1 << 20), START)
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
    store = EventStore(storage_of(kind, tmp_path), START)
    store.add_client("one")
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    store.stop()
    with pytest.raises(StoreError, match="the store was stopped"):
        store.put(blocks[0])
    if kind != "memory":
        again = EventStore(storage_of(kind, tmp_path), START)
        assert again.latest == blocks[-1].end
        again.stop()


def test_others_do_not_wait_while_the_log_is_looked_through() -> None:
    blocks = blocks_of(*[transaction(2)] * 3)

    class Slow(Log):
        def find(self, start: Start) -> Position:
            assert store.latest == blocks[-1].end  # would wait for ever
            return super().find(start)

    store = EventStore(MemoryStorage(1 << 20), START, source_log=Slow(blocks))
    store.add_client("fast")
    store.put(blocks)
    store.ack("fast", got(store, name="fast").end)
    assert store.add_client("late", Start.at_time(1000)) == blocks[1].start


def test_a_mover_that_dies_is_the_error_of_the_next_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FileStorage(tmp_path, sync="none")
    store = EventStore(TieredStorage(1000, files), START)
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


def test_a_full_disk_of_the_mixed_store_says_so_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store = EventStore(TieredStorage(1000, FileStorage(tmp_path, sync="none")), START)
    store.add_client("slow")
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", full)
    blocks = blocks_of(*[transaction(3)] * 10)
    done = 0
    while store.put(blocks[done], 0.05):
        done += 1
    assert poll_until(lambda: bool(store.problem), _DEADLINE_S)
    assert "No space left on device" in store.problem
    monkeypatch.setattr(os, "pwritev", real)
    for block in blocks[done:]:
        assert store.put(block, _DEADLINE_S)
    assert got(store, name="slow").end == blocks[-1].end
    assert [record.message.split(" reason")[0] for record in caplog.records] == [
        "blocks not moved to files destination=",
        "blocks moved to files again destination=",
    ]


@pytest.mark.parametrize("acked", [4, 6])
def test_an_incomplete_transaction_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acked: int) -> None:
    """Its block cannot be written back without it: capture begins one boundary earlier, and nobody misses anything."""
    store = EventStore(FileStorage(tmp_path, segment_bytes=1, sync="none"), START)
    store.add_client("one", persists_later=True)
    first, two = blocks_of(transaction(), [*transaction(), (10, BEGIN)])
    store.put([first, two])
    seen = got(store, BatchSize(acked))
    store.ack("one", seen.end)
    store.confirm_persisted("one", seen.end)
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", full)
    assert store.discard_incomplete() == first.end
    assert store.acked == first.end
    monkeypatch.setattr(os, "pwritev", real)
    again = blocks_of(*[transaction()] * 3)[1:]
    store.put(again)
    batch = got(store)
    done = first.end if acked == 4 else again[0].end  # a transaction that was acked is not redelivered
    assert (batch.start, batch.end) == (done, again[-1].end)
    store.ack("one", batch.end)
    assert store.first == done  # that it acked more is not kept yet
    store.confirm_persisted("one", batch.end)
    assert store.first == batch.end


def test_without_the_beginning_it_stops_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none")
    store = EventStore(storage, START)
    store.put(blocks_of([(10, BEGIN)], [(10, END), (10, BEGIN)]))
    storage.close()
    min(tmp_path.glob("*.blocks")).unlink()
    store = EventStore(FileStorage(tmp_path, segment_bytes=1, sync="none"), START)
    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(StoreError, match=r"lost the transaction that ends at .*:24 .*No space left.*make room"):
        store.discard_incomplete()


def test_what_is_being_written_does_not_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none")
    store = EventStore(storage, START)
    real = Segment.append

    def append(self: Segment, parts: Any) -> int:
        at = real(self, parts)
        storage.free(1 << 40)
        return at

    monkeypatch.setattr(Segment, "append", append)
    blocks = blocks_of(*[transaction()] * 3)
    store.put(blocks)
    store.add_client("one")
    assert got(store).end == blocks[-1].end


def test_what_was_written_last_is_synced_without_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    monkeypatch.setattr(Segment, "sync", lambda _: synced.set())
    storage = FileStorage(tmp_path, sync="interval", interval_s=0.05)
    store = EventStore(storage, START)
    store.put(blocks_of(transaction())[0])
    synced.clear()
    store.put(blocks_of(transaction(), transaction())[1])
    assert synced.wait(_DEADLINE_S)
    storage.close()


def test_what_was_cut_off_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = FileStorage(tmp_path, sync="none")
    EventStore(storage, START).put(blocks_of(transaction())[0])
    storage.close()
    (path,) = tmp_path.glob("*.blocks")
    os.truncate(path, path.stat().st_size - 5)
    FileStorage(tmp_path, sync="none").close()
    (record,) = caplog.records
    assert (
        "were no whole block and are cut off; what is missing is read from the source's binlog again" in record.message
    )


def test_a_full_disk_ends_the_waiting_for_a_full_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else capture would wait for an ack, and the client for more."""
    store = EventStore(FileStorage(tmp_path, segment_bytes=1, sync="none"), START)
    store.add_client("one")
    first, two = blocks_of(transaction(), transaction())
    store.put(first)
    monkeypatch.setattr(os, "pwritev", full)
    putting = threading.Thread(target=lambda: store.put(two, _DEADLINE_S), daemon=True)
    putting.start()
    batch = store.get("one", BatchSize(60), _DEADLINE_S)
    assert batch is not None
    assert batch.end == first.end
    monkeypatch.undo()
    store.ack("one", batch.end)
    putting.join(_DEADLINE_S)
    assert store.latest == two.end


def test_acks_are_taken_again_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was acked before is not redelivered in other pieces, whose acks would go back."""
    store = EventStore(FileStorage(tmp_path, sync="none"), START)
    clients = Clients(store, MetaManager("d"))
    clients.subscribe(1)
    first, second = blocks_of([*[*transaction()] * 3, (10, BEGIN), (10, ROWS)], [(10, ROWS), (10, END)])
    store.put(first)
    for _ in range(2):
        batch_id, _ = clients.get(1, BatchSize(3)) or (0, None)
        clients.ack(1, batch_id)
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", full)
        assert store.discard_incomplete() == START
    store.put([first, second])
    ends = list[Position]()
    while batch := clients.get(1, BatchSize(2)):
        ends.append(batch[1].end)
        clients.ack(1, batch[0])
    assert [end.offset for end in ends] == [84, 104, 124, 134]


def test_what_cannot_be_removed_now_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a mixed store: what comes after it has the same number, and another position."""
    files = FileStorage(tmp_path, segment_bytes=1, sync="none")
    storage = TieredStorage(1, files)
    store = EventStore(storage, START)
    store.add_client("one")
    (whole,) = blocks_of([*transaction(), (10, BEGIN), *[(10, ROWS)] * 9, (10, END), *transaction()])
    for first, stop in ((0, 3), (3, 5)):
        assert store.put(whole.slice(first, stop), _DEADLINE_S)
    assert poll_until(lambda: len(files.blocks) == 2, _DEADLINE_S)
    with monkeypatch.context() as broken:
        broken.setattr(Path, "unlink", full)
        with pytest.raises(StoreFullError):
            store.discard_incomplete()
    assert store.discard_incomplete() == Position(START.file, 34)
    assert [held.first for held in storage.blocks] == [held.first for held in files.blocks] == [0]
    assert store.put(whole.slice(3, len(whole)), _DEADLINE_S)
    batch = got(store, BatchSize(14))
    store.ack("one", batch.end)
    rest = got(store)
    assert (batch.end_sequence, rest.end_sequence) == (13, 16)
    store.stop()


def test_damage_before_the_last_file_is_kept_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What follows is whole, and the source may not have it any more."""
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none")
    store = EventStore(storage, START)
    blocks = blocks_of(*[transaction()] * 4)
    store.put(blocks)
    storage.close()
    paths = sorted(tmp_path.glob("*.blocks"))
    raw = bytearray(paths[1].read_bytes())
    raw[0] ^= 1
    paths[1].write_bytes(raw)
    again = FileStorage(tmp_path, segment_bytes=1, sync="none")
    assert EventStore(again, START).latest == blocks[0].end
    assert "is damaged at byte 0; what follows is kept aside" in caplog.text
    assert [path.name for path in sorted(tmp_path.glob("*.damaged"))] == [f"{path.name}.damaged" for path in paths[1:]]
    assert (tmp_path / f"{paths[1].name}.damaged").read_bytes() == raw
    again.close()
    assert not FileStorage(tmp_path, segment_bytes=1, sync="none").recovered


def test_a_file_that_does_not_follow_is_kept_aside(tmp_path: Path) -> None:
    """As when one before it was removed, or a start was killed while it put others aside."""
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none")
    blocks = blocks_of(*[transaction()] * 3)
    EventStore(storage, START).put(blocks)
    storage.close()
    _, gone, last = sorted(tmp_path.glob("*.blocks"))
    raw = last.read_bytes()
    gone.unlink()
    (tmp_path / "notes.blocks").write_text("not ours")
    again = FileStorage(tmp_path, segment_bytes=1, sync="none")
    assert EventStore(again, START).latest == blocks[0].end
    assert "kept aside" in again.recovered
    assert (tmp_path / f"{last.name}.damaged").read_bytes() == raw
    assert not last.exists()
