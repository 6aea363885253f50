"""Blocks in files: they come back as they were, also after a crash, a damaged file and a full disk."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.checksum import block_checksum
from penstock.binlog.events.layout import CHECKSUM
from penstock.binlog.events.reader import BlockReader
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import BatchSize, ClientState, EventStore, FileStorage, Retention, Start
from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.frame import HEAD_BYTES, decode, encode, is_whole, read_head
from penstock.store.segment import Segment
from tests.support.store_blocks import ALL, BEGIN, END, ROWS, START, blocks_of, got, transaction
from tests.twins.feed import feed, read
from tests.twins.log import LogWriter
from tests.twins.strategy import examples, logs


def opened(folder: Path, **options: Any) -> tuple[EventStore, FileStorage]:
    storage = FileStorage(folder, **({"sync": "none"} | options))
    return EventStore(storage, START), storage


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.blocks"))


def same(first: Block, other: Block) -> bool:
    has_same_head = (first.file, first.server_version, first.tags, dict(first.tables)) == (
        other.file, other.server_version, other.tags, dict(other.tables),
    )  # fmt: skip
    return has_same_head and first.checksum == other.checksum and first.events.equals(other.events)


@examples(40)
@given(logs(), st.integers(0, 3), st.integers(0, 3))
def test_a_block_comes_back_as_it_was(log: LogWriter, first: int, last: int) -> None:
    for block in read(log):
        part = block.slice(min(first, len(block) - 1), max(min(first, len(block) - 1) + 1, len(block) - last))
        entries = BlockEntries.of(part)
        if not len(entries):
            continue
        held = BlockInfo.of(entries, 17, 23, Position("binlog.000000", 99), is_begin=bool(first % 2))
        raw = b"".join(map(bytes, encode(held, entries)))
        array = np.frombuffer(raw, np.uint8)
        head = read_head(raw[:HEAD_BYTES])
        assert head is not None
        assert is_whole(head, array)
        is_whole_block = len(part) == len(block)
        assert head.has_block_checksum == (is_whole_block and bool((part.column("checksum") == CHECKSUM).all()))
        if head.has_block_checksum:
            assert part.checksum == block_checksum(part.data, part.index.bounds)
        assert same(decode(head, array), part)
        assert head.info.__class__ is BlockInfo
        for name in ("first", "count", "base", "size", "after", "start", "end", "boundary", "is_begin"):
            assert getattr(head.info, name) == getattr(held, name)


def framed(block: Block) -> bytes:
    entries = BlockEntries.of(block)
    return b"".join(map(bytes, encode(BlockInfo.of(entries, 0, 0), entries)))


def is_sound(raw: bytes) -> bool:
    head = read_head(raw[:HEAD_BYTES])
    return head is not None and is_whole(head, np.frombuffer(raw, np.uint8))


def a_log(number: int, *, is_checksummed: bool = True) -> LogWriter:
    log = LogWriter(is_checksummed=is_checksummed)
    log.open()
    log.statement(f"CREATE TABLE t{number} (a INT)")
    return log


def _end_of_events(raw: bytes) -> int:
    """The rest is padding."""
    head = read_head(raw[:HEAD_BYTES])
    assert head is not None
    return head.events_at + head.event_bytes


@pytest.mark.parametrize("is_checksummed", [True, False])
def test_no_byte_of_a_frame_can_change(is_checksummed: bool) -> None:
    (block,) = read(a_log(1, is_checksummed=is_checksummed))
    raw = framed(block)
    assert is_sound(raw)
    for at in range(_end_of_events(raw)):
        assert not is_sound(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]), at


def test_events_of_another_frame_are_found_out_though_each_is_sound() -> None:
    first, two = (framed(read(a_log(number))[0]) for number in (1, 2))
    assert len(first) == len(two)
    head = read_head(first[:HEAD_BYTES])
    assert head is not None
    assert head.has_block_checksum
    assert is_sound(two)
    assert not is_sound(first[: head.events_at] + two[head.events_at :])


def test_events_that_nobody_verified_are_summed_again() -> None:
    reader = BlockReader(START, verify=False)
    log = a_log(1)
    log.data[-1] ^= 1  # the checksum of the last event
    (block,) = feed(reader, bytes(log.data))
    raw = framed(block)
    head = read_head(raw[:HEAD_BYTES])
    assert head is not None
    assert not head.has_block_checksum
    assert is_sound(raw)


def test_it_resumes_where_it_was(tmp_path: Path) -> None:
    store, storage = opened(tmp_path, segment_bytes=400)
    pieces = blocks_of(*[transaction(3)] * 6)
    for piece in pieces[:4]:
        store.put(piece)
    storage.close()
    assert len(files(tmp_path)) > 1
    store, storage = opened(tmp_path, segment_bytes=400)
    assert (store.first, store.latest, storage.recovered) == (START, pieces[3].end, "")
    assert store.discard_incomplete() == pieces[3].end
    for piece in pieces[4:]:
        store.put(piece)
    store.add_client("one", Start.at(pieces[0].end))
    batch = got(store)
    assert (batch.first_sequence, batch.end_sequence) == (5, 29)
    positions = [int(at) for block in batch.blocks for at in block.column("position")]
    assert positions == [int(at) for piece in pieces[1:] for at in piece.column("position")]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    _, storage = opened(tmp_path)
    with pytest.raises(StoreError, match="is in use by another process"):
        FileStorage(tmp_path)
    storage.close()
    FileStorage(tmp_path).close()


def test_a_torn_tail_is_cut_off_wherever_it_tears(tmp_path: Path) -> None:
    store, storage = opened(tmp_path / "whole")
    pieces = blocks_of(*[transaction(2)] * 3)
    ends = list[int]()
    for piece in pieces:
        store.put(piece)
        ends.append(storage.size_bytes)
    storage.close()
    raw = files(tmp_path / "whole")[0].read_bytes()
    for size in range(0, len(raw), 7):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / f"{0:020}.blocks").write_bytes(raw[:size])
        store, storage = opened(folder)
        whole = sum(end <= size for end in ends)
        assert store.latest == (pieces[whole - 1].end if whole else START)
        assert storage.size_bytes == ([0, *ends][whole])
        assert bool(storage.recovered) == (size not in {0, *ends})
        assert store.put(pieces[whole], timeout_s=0)
        storage.close()
        store, storage = opened(folder)
        assert (store.latest, storage.recovered) == (pieces[whole].end, "")
        storage.close()


@pytest.mark.parametrize("where", [0, 5, 30, 200, -1])
def test_a_damaged_tail_is_cut_off_and_reported(tmp_path: Path, where: int) -> None:
    store, storage = opened(tmp_path)
    pieces = blocks_of(*[transaction(2)] * 2)
    store.put(pieces[0])
    first = storage.size_bytes
    store.put(pieces[1])
    total = storage.size_bytes
    storage.close()
    (path,) = files(tmp_path)
    raw = bytearray(path.read_bytes())
    at = first + where if where >= 0 else total - 9
    raw[at] ^= 0x55
    path.write_bytes(raw)
    store, storage = opened(tmp_path)
    assert store.latest == pieces[0].end
    assert storage.recovered.startswith(f"{total - first} bytes of 00000000000000000000.blocks were no whole block")


def test_damage_farther_back_is_found_when_it_is_read(tmp_path: Path) -> None:
    store, storage = opened(tmp_path, segment_bytes=1)
    for piece in blocks_of(*[transaction(2)] * 12):
        store.put(piece)
    storage.close()
    path = files(tmp_path)[1]
    raw = bytearray(path.read_bytes())
    raw[-20] ^= 1
    path.write_bytes(raw)
    store, storage = opened(tmp_path, segment_bytes=1)
    store.add_client("one")
    with pytest.raises(StoreError, match=rf"{path.name} is damaged at byte 0"):
        store.get("one", ALL)


def test_a_file_that_is_missing_ends_what_is_kept(tmp_path: Path) -> None:
    store, storage = opened(tmp_path, segment_bytes=1)
    pieces = blocks_of(*[transaction()] * 4)
    for piece in pieces:
        store.put(piece)
    storage.close()
    files(tmp_path)[2].unlink()
    store, storage = opened(tmp_path, segment_bytes=1)
    assert store.latest == pieces[1].end
    assert "00000000000000000009.blocks" in storage.recovered
    assert len(files(tmp_path)) == 2


def test_files_go_when_all_have_acked(tmp_path: Path) -> None:
    store, storage = opened(tmp_path, segment_bytes=1)
    store.add_client("one")
    store.add_client("two")
    for piece in blocks_of(*[transaction()] * 4):
        store.put(piece)
    store.ack("one", got(store).end)
    assert len(files(tmp_path)) == 4
    store.ack("two", got(store, BatchSize(6), "two").end)
    assert len(files(tmp_path)) == 2
    store.forget_client("two")
    assert files(tmp_path) == []
    assert storage.size_bytes == 0


def test_acked_files_are_kept_for_others(tmp_path: Path) -> None:
    now = [1000.0]
    pieces = blocks_of(*[transaction()] * 6)
    keep_bytes = 4 * len(framed(pieces[0]))
    kept = Retention(keep_bytes=keep_bytes, keep_s=60)
    store, storage = opened(tmp_path, segment_bytes=1, retention=kept, clock=lambda: now[0])
    store.add_client("one")
    for piece in pieces:
        store.put(piece)
        store.ack("one", got(store).end)
    assert len(files(tmp_path)) == 6
    now[0] += 100
    store.put(blocks_of(*[transaction()] * 7)[6])
    store.ack("one", got(store).end)
    assert 2 < len(files(tmp_path)) < 7
    assert storage.size_bytes >= keep_bytes
    assert store.first == pieces[7 - len(files(tmp_path))].start
    store.add_client("new", Start.at(store.first))
    assert len(got(store, name="new").blocks) == len(files(tmp_path))


@pytest.mark.parametrize("limit", [Retention(limit_bytes=2500), Retention(limit_s=50)])
def test_beyond_the_limit_a_client_is_lost_by_name(tmp_path: Path, limit: Retention) -> None:
    now = [1000.0]
    store, _ = opened(tmp_path, segment_bytes=1, retention=limit, clock=lambda: now[0])
    store.add_client("slow")
    store.add_client("fast")
    pieces = blocks_of(*[transaction()] * 12)
    for piece in pieces:
        now[0] += 10
        store.put(piece)
        store.ack("fast", got(store, name="fast").end)
    assert len(files(tmp_path)) < 8
    assert store.states() == {"slow": ClientState.LOST, "fast": ClientState.LIVE}
    for call in (lambda: store.get("slow", ALL), lambda: store.ack("slow", pieces[0].end)):
        with pytest.raises(StoreError, match=r"client slow is lost: entries up to binlog\.000001:\d+ were removed.*:4"):
            call()
    store.forget_client("slow")
    assert store.add_client("slow") == store.first > START


def test_a_full_disk_makes_puts_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, storage = opened(tmp_path)
    first, two = blocks_of(*[transaction()] * 2)
    store.put(first)
    size = storage.size_bytes
    real = os.pwritev
    left = [40]

    def full(file: int, parts: Any, at: int) -> int:
        if left[0] <= 0:
            raise OSError(28, "No space left on device")
        done = real(file, [memoryview(parts[0])[: left[0]]], at)
        left[0] -= done
        return done

    monkeypatch.setattr(os, "pwritev", full)
    assert not store.put(two, timeout_s=0)
    assert not store.put(two, timeout_s=0.01)
    assert store.problem == f"{tmp_path} cannot be written to: No space left on device"
    assert (storage.size_bytes, store.latest) == (size, first.end)
    monkeypatch.setattr(os, "pwritev", real)
    assert store.put(two, timeout_s=0)
    assert store.problem == ""
    storage.close()
    store, storage = opened(tmp_path)
    assert (store.latest, storage.recovered) == (two.end, "")


@pytest.mark.parametrize(("policy", "expected"), [("batch", 3), ("interval", 1), ("none", 0)])
def test_when_it_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, expected: int) -> None:
    synced, now = list[Path](), [0.0]
    monkeypatch.setattr(Segment, "sync", lambda self: synced.append(self.path))
    store, _ = opened(tmp_path, sync=policy, interval_s=5.0, clock=lambda: now[0])
    for number, piece in enumerate(blocks_of(*[transaction()] * 3)):
        now[0] = 3.0 * number
        store.put(piece)
    assert len(synced) == expected


def test_an_incomplete_transaction_is_cut_off_the_file(tmp_path: Path) -> None:
    store, storage = opened(tmp_path)
    first, two, three = blocks_of([*transaction(), (10, BEGIN)], [(10, ROWS)], [(10, END)])
    store.put([first, two])
    storage.close()
    store, storage = opened(tmp_path)
    boundary = Position(START.file, 34)
    assert store.discard_incomplete() == boundary
    storage.close()
    store, storage = opened(tmp_path)
    assert (store.latest, storage.recovered) == (boundary, "")
    store.add_client("one")
    assert got(store).end == boundary
    del three


def test_a_store_that_begins_inside_a_transaction(tmp_path: Path) -> None:
    """As one does that had to let go of the beginning: nobody reads from there."""
    store, storage = opened(tmp_path, segment_bytes=1)
    pieces = blocks_of([(10, BEGIN), (10, ROWS)], [(10, ROWS)], [(10, END)], transaction())
    store.put(pieces)
    storage.close()
    files(tmp_path)[0].unlink()
    store, storage = opened(tmp_path, segment_bytes=1)
    assert store.first == pieces[2].end
    store.add_client("one")
    assert got(store).start == pieces[2].end


def test_limits_hold_without_any_client(tmp_path: Path) -> None:
    store, _ = opened(tmp_path, segment_bytes=1, retention=Retention(limit_bytes=1))
    pieces = blocks_of(*[transaction()] * 6)
    for piece in pieces:
        store.put(piece)
    assert len(files(tmp_path)) == 1
    assert (store.first, store.latest) == (pieces[5].start, pieces[5].end)


def test_without_limits_and_clients_nothing_goes(tmp_path: Path) -> None:
    store, _ = opened(tmp_path, segment_bytes=1)
    pieces = blocks_of(*[transaction()] * 6)
    for piece in pieces:
        store.put(piece)
    assert len(files(tmp_path)) == 6
    assert store.first == START


def test_what_a_refused_write_left_is_cut_before_the_next_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else everything after it would count as damaged."""
    pieces = blocks_of(*[transaction()] * 4)
    store, storage = opened(tmp_path, segment_bytes=len(framed(pieces[0])) + 1)
    store.put(pieces[0])
    real, written = os.pwritev, list[int]()

    def half(file: int, parts: list[memoryview], at: int) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(real(file, [parts[0][:40]], at))
        return written[-1]

    def never(*_: int) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "pwritev", half)
    monkeypatch.setattr(os, "ftruncate", never)
    assert not store.put(pieces[1], timeout_s=0)
    monkeypatch.undo()
    for piece in pieces[1:]:
        store.put(piece)
    storage.close()
    store, storage = opened(tmp_path)
    assert (store.latest, storage.recovered) == (pieces[3].end, "")
    storage.close()


def test_it_can_be_closed_twice_and_opened_after_an_error(tmp_path: Path) -> None:
    _, storage = opened(tmp_path)
    storage.close()
    other = os.open(os.devnull, os.O_RDONLY)
    storage.close()
    os.close(other)
    bad = tmp_path / f"{0:020}.blocks"
    bad.mkdir()
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be opened: Is a directory"):
            FileStorage(tmp_path)
    bad.rmdir()
    FileStorage(tmp_path).close()


@pytest.mark.parametrize(("sync", "count"), [("batch", 4), ("none", 0)])
def test_files_are_synced_as_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str, count: int
) -> None:
    synced = list[int]()
    real = os.fdatasync

    def counted(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        real(file)

    monkeypatch.setattr(os, "fdatasync", counted)
    store, storage = opened(tmp_path, sync=sync)
    pieces = blocks_of(*[transaction()] * 3)
    ends = [store.put(piece) and storage.size_bytes for piece in pieces]
    storage.close()
    assert synced == [*ends, ends[-1]][:count]


def test_a_file_is_synced_before_the_next_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[Path]()
    real = Segment.sync

    def noted(self: Segment) -> None:
        synced.append(self.path)
        real(self)

    monkeypatch.setattr(Segment, "sync", noted)
    store, storage = opened(tmp_path, segment_bytes=1, sync="interval", interval_s=3600)
    for piece in blocks_of(*[transaction()] * 3):
        store.put(piece)
    assert synced == files(tmp_path)[:2]
    storage.close()
    assert synced[2:] == [tmp_path / f"{6:020}.blocks"]


@pytest.mark.parametrize(("sync", "count"), [("batch", 3), ("interval", 3), ("none", 0)])
def test_names_of_files_are_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str, count: int
) -> None:
    synced = list[bool]()
    real = os.fsync

    def noted(file: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(file).st_mode))
        real(file)

    monkeypatch.setattr(os, "fsync", noted)
    store, storage = opened(tmp_path, segment_bytes=1, sync=sync)
    for piece in blocks_of(*[transaction()] * 3):
        store.put(piece)
    storage.close()
    assert synced == [True] * count
