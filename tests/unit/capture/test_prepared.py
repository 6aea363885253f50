"""XA transactions: their rows are delivered at the XA COMMIT, whoever reads the log, from wherever, in whatever cut."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.xa.resolver import XaResolver
from penstock.binlog.xa.xa_events import find_xa_events
from penstock.capture.prepared import PreparedTransactions
from penstock.capture.prepared_files import PreparedFiles
from penstock.errors import PositionLostError
from penstock.model import Position
from tests.twins.feed import read, rows_in
from tests.twins.log import LogWriter
from tests.twins.xa import TABLE, WrittenLog, XaLog, find_events, xid_text

NAMES = "abcde"


def random_log(choice: random.Random, *, is_mariadb: bool, steps: int = 20) -> XaLog:
    log = XaLog(LogWriter(is_mariadb=is_mariadb).open())
    for _ in range(steps):
        match choice.randrange(8):
            case 0 | 1:
                log.plain(choice.randrange(1, 4))
            case 2:
                log.rotate()
            case 3:
                log.prepare("one", choice.randrange(1, 6), is_one_phase=True)
            case 4 | 5 if log.prepared:
                log.close(choice.choice(sorted(log.prepared)), is_commit=choice.random() < 0.7)
            case _:
                name = choice.choice(NAMES)
                if name not in log.prepared:
                    log.prepare(name, choice.choice([0, 1, 2, 5, 40]))
    return log


def resolved(blocks: Sequence[Block], prepared: PreparedTransactions, start: Position) -> Iterator[Block]:
    """What a reader that begins at `start` is given."""
    prepared.resume(start)
    resolver = XaResolver(prepared)
    for block in blocks:
        for part in resolver.resolve(block.between(start, blocks[-1].end)):
            assert (part.column("position")[1:] >= part.column("position")[:-1]).all()
            yield part
        prepared.set_resolved(block.end if not resolver.is_inside else start)


def delivered(blocks: Sequence[Block], prepared: PreparedTransactions, start: Position) -> list[Any]:
    return rows_in(resolved(blocks, prepared, start), TABLE)


def first_of(blocks: Sequence[Block]) -> Position:
    return blocks[0].start


@settings(max_examples=15)
@given(st.integers(0, 1 << 30), st.booleans(), st.lists(st.integers(20, 900), max_size=30), st.booleans())
def test_rows_are_delivered_with_their_commit_in_any_cut(
    seed: int, is_mariadb: bool, sizes: list[int], hold_trailing: bool
) -> None:
    choice = random.Random(seed)
    log = random_log(choice, is_mariadb=is_mariadb)
    blocks = read(log.writer, sizes, hold_trailing=hold_trailing)
    access = WrittenLog(blocks)
    rows = delivered(blocks, PreparedTransactions(access), first_of(blocks))
    assert [row["id"] for row in rows] == [number for number, _, _ in log.delivered]
    for row, (_, file, transaction) in zip(rows, log.delivered, strict=True):
        assert (row["_file"], row["_commit_version"] & ((1 << 34) - 1)) == (file, transaction)
        assert row["_offset"] >= transaction
    orders = [(row["_seq"], row["_row"]) for row in rows]
    assert [row["_seq"] for row in rows] == sorted(row["_seq"] for row in rows)
    assert len({*orders}) == len(orders)
    whole = read(log.writer)
    assert rows == delivered(whole, PreparedTransactions(WrittenLog(whole)), first_of(whole))
    assert access.reads == 0


@settings(max_examples=15)
@given(st.integers(0, 1 << 30), st.booleans(), st.lists(st.integers(20, 900), max_size=30))
def test_a_reader_gets_the_same_rows_from_wherever_it_begins(seed: int, is_mariadb: bool, sizes: list[int]) -> None:
    """What was prepared before is found in the log; `_seq`, GTID, time and all else are those of who read it all."""
    choice = random.Random(seed)
    log = random_log(choice, is_mariadb=is_mariadb)
    blocks = read(log.writer, sizes)
    memory_bytes = choice.choice([1, 2_000, 1 << 20])
    everything = delivered(blocks, PreparedTransactions(WrittenLog(blocks)), first_of(blocks))
    for file, offset in choice.sample(log.boundaries, min(6, len(log.boundaries))):
        start = Position(file, offset)
        if start >= blocks[-1].end:
            continue
        prepared = PreparedTransactions(WrittenLog(blocks), memory_bytes=memory_bytes)
        rows = delivered(blocks, prepared, start)
        assert rows == [row for row in everything if Position(row["_file"], row["_offset"]) >= start]


@settings(max_examples=15)
@given(st.integers(0, 1 << 30), st.booleans(), st.booleans())
def test_what_was_prepared_outlives_the_process_and_the_log(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_mariadb: bool, is_clean: bool
) -> None:
    """Stopped or killed at any block, and begun again at some boundary before; with files, and all before it purged."""
    choice = random.Random(seed)
    log = random_log(choice, is_mariadb=is_mariadb)
    blocks = read(log.writer, [choice.randrange(100, 2000) for _ in range(20)])
    everything = delivered(blocks, PreparedTransactions(WrittenLog(blocks)), first_of(blocks))
    access, folder = WrittenLog(blocks), tmp_path_factory.mktemp("prepared")
    memory_bytes, now = choice.choice([1, 2_000, 1 << 20]), [100.0]
    last = choice.randrange(len(blocks))
    before = PreparedTransactions(access, files=PreparedFiles(folder), memory_bytes=memory_bytes, clock=lambda: now[0])
    before.resume(first_of(blocks))
    resolver, reached = XaResolver(before), first_of(blocks)
    for block in blocks[: last + 1]:
        now[0] += choice.choice([0.1, 5.0])
        list(resolver.resolve(block))
        if block.boundaries.size:
            reached = block.end_of_event(int(block.boundaries[-1]))
            before.set_resolved(reached)
        before.save_and_forget(lambda: first_of(blocks))
    if is_clean:
        before.save()
        access.purged = max(0, access.files().index(reached.file))
    positions = [Position(file, offset) for file, offset in log.boundaries]
    start = choice.choice(
        [position for position in positions if position <= reached and position.file in access.files()] or [reached]
    )
    after = PreparedTransactions(access, files=PreparedFiles(folder), memory_bytes=memory_bytes)
    rows = rows_in(resolved(blocks, after, start), TABLE)
    assert rows == [row for row in everything if Position(row["_file"], row["_offset"]) >= start]


@settings(max_examples=15)
@given(st.integers(0, 1 << 30), st.booleans())
def test_gtids_and_boundaries_are_those_of_the_log(seed: int, is_mariadb: bool) -> None:
    """A position after each transaction, also a prepared one; each has the GTIDs up to there."""
    log = random_log(random.Random(seed), is_mariadb=is_mariadb)
    blocks = read(log.writer)

    def boundaries(blocks: Sequence[Block]) -> list[tuple[Position, str]]:
        positions = [block.boundary_after(int(i)) for block in blocks for i in block.boundaries]
        return [(position, position.gtids.text if position.gtids else "") for position in positions]

    parts = list(resolved(blocks, PreparedTransactions(WrittenLog(blocks)), first_of(blocks)))
    assert boundaries(parts) == boundaries(blocks)
    for part in parts:
        assert (part.column("entry")[part.column("kind") == 38] != Entry.ROWS).all()


@settings(max_examples=15)
@given(st.integers(0, 1 << 30), st.booleans(), st.lists(st.integers(20, 900), max_size=30))
def test_the_kernel_finds_what_its_twin_finds(seed: int, is_mariadb: bool, sizes: list[int]) -> None:
    for block in read(random_log(random.Random(seed), is_mariadb=is_mariadb, steps=12).writer, sizes):
        assert find_xa_events(block).tolist() == find_events(block)


def test_a_log_without_xa_passes_as_it_is() -> None:
    log = XaLog(LogWriter(is_mariadb=False).open())
    for _ in range(20):
        log.plain()
    for block in read(log.writer):
        prepared = PreparedTransactions(WrittenLog([block]))
        prepared.resume(block.start)
        assert [part is block for part in XaResolver(prepared).resolve(block)] == [True]


def test_a_commit_whose_rows_are_purged_is_an_error_or_left_out_by_choice() -> None:
    log = XaLog(LogWriter(is_mariadb=False).open())
    log.prepare("a", 3)
    log.rotate()
    log.plain()
    boundary = log.boundaries[-1]
    log.close("a", is_commit=True)
    log.plain()
    blocks = read(log.writer)
    access, start = WrittenLog(blocks, purged=1), Position(*boundary)
    with pytest.raises(
        PositionLostError, match=r"XA COMMIT X'61',X'',1 ends at binlog.000002:\d+, and the log no longer"
    ):
        list(resolved(blocks, PreparedTransactions(access), start))
    lost = list[PositionLostError]()
    rows = rows_in(resolved(blocks, PreparedTransactions(access, on_lost=lost.append), start), TABLE)
    assert [row["id"] for row in rows] == [5]
    assert len(lost) == 1


def test_memory_is_bounded_and_large_transactions_come_in_pieces() -> None:
    log = XaLog(LogWriter(is_mariadb=False).open())
    for name in "abc":
        log.prepare(name, 4000)
    for name in "cba":
        log.close(name, is_commit=True)
    blocks = read(log.writer, [4096] * 1000)
    assert len(blocks) > 20
    access = WrittenLog(blocks)
    prepared = PreparedTransactions(access, memory_bytes=100_000)
    prepared.resume(first_of(blocks))
    resolver, ids = XaResolver(prepared), list[int]()
    for block in blocks:
        for part in resolver.resolve(block):
            assert part.size_bytes < 4 << 20
            ids += [row["id"] for row in rows_in([part], TABLE)]
        assert prepared.held_bytes <= 100_000
    assert ids == [number for number, _, _ in log.delivered]
    assert access.reads == 3


def test_what_is_prepared_is_told_with_its_rows_and_time() -> None:
    now = [1.0]
    log = XaLog(LogWriter(is_mariadb=False).open())
    log.prepare("a", 3)
    log.writer.timestamp += 60
    log.prepare("b", 2)
    blocks = read(log.writer)
    prepared = PreparedTransactions(WrittenLog(blocks), clock=lambda: now[0])
    list(resolved(blocks, prepared, first_of(blocks)))
    now[0] += 10
    prepared.save_and_forget(lambda: first_of(blocks))
    report = prepared.report()
    assert (report["count"], report["since"]) == (2, 1_700_000_000)
    assert [(transaction["xid"], transaction["rows"]) for transaction in report["transactions"]] == [
        (xid_text("a"), 3),
        (xid_text("b"), 2),
    ]


def test_another_log_continues_with_what_is_prepared(tmp_path: Path) -> None:
    """By GTIDs, what is in memory or in files is delivered with the commit in the other server's log."""
    log = XaLog(LogWriter(is_mariadb=False).open())
    log.prepare("a", 3)
    position = Position(*log.boundaries[-1])
    log.close("a", is_commit=True)
    blocks = read(log.writer)
    ids = list[int]()
    for files in (None, PreparedFiles(tmp_path)):
        prepared = PreparedTransactions(WrittenLog(blocks), files=files)
        prepared.resume(first_of(blocks))
        list(XaResolver(prepared).resolve(blocks[0].between(first_of(blocks), position)))
        prepared.set_resolved(position)
        other = Position("other.000009", 4, epoch=1)
        prepared.switch_to(position, other)
        access = WrittenLog([], purged=9)
        prepared._access = access
        prepared.resume(other)
        statement = blocks[0].between(position, blocks[0].end)
        ids += [row["id"] for part in XaResolver(prepared).resolve(statement) for row in rows_in([part], TABLE)]
    assert ids == [1, 2, 3] * 2
