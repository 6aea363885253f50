"""The store's rules one by one, with canal's own cases among them, and with real threads."""

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from penstock.binlog.events.event_columns import EVENT_INDEX_BYTES
from penstock.errors import PositionLostError, SourceConnectionError, StoreError
from penstock.model import Position
from penstock.store import Batch, BatchSize, ClientState, EventStore, MemoryStorage, Start
from penstock.store.block_info import BlockEntries, BlockInfo, memory_bytes
from penstock.store.client_registry import IDLE_S
from tests.support.store_blocks import ALL, BEGIN, DDL, END, OTHER, ROWS, START, blocks_of, got, store_of, transaction
from tests.twins.blocks import block_of

_DEADLINE_S = 20.0
_TOO_LONG_S = 100 * _DEADLINE_S


def test_slots_are_a_power_of_two() -> None:
    with pytest.raises(StoreError, match="power of two of slots, not 3"):
        MemoryStorage(1000, slots=3)


@pytest.mark.parametrize("count", [0, -1])
def test_a_batch_has_at_least_one(count: int) -> None:
    with pytest.raises(StoreError, match="at least one of its items"):
        BatchSize(count)


class TestPut:
    def test_a_full_ring_refuses_in_entries_and_in_bytes(self) -> None:
        size = memory_bytes(3 * (10 + EVENT_INDEX_BYTES), 3)
        first, two, three = blocks_of(*[transaction()] * 3)
        for store in (store_of(limit_bytes=2 * size), store_of(slots=8)):
            assert store.put(first)
            assert store.put(two)
            assert not store.put(three, timeout_s=0)
            assert not store.put(three, timeout_s=0.01)
            batch = got(store, BatchSize(3))
            assert not store.put(three, timeout_s=0)  # what is got is not acked
            store.ack("one", batch.end)
            assert store.put(three, timeout_s=0)
            assert store.size_bytes == 2 * size

    def test_all_go_in_or_none(self) -> None:
        store = store_of(transaction(), slots=8)
        two, three = blocks_of(*[transaction()] * 3)[1:]
        assert not store.put([two, three], timeout_s=0)
        assert store.sequences("one") == (2, -1, -1)
        assert store.put([two], timeout_s=0)

    def test_an_event_larger_than_the_whole_ring_has_room_when_there_is_nothing_else(self) -> None:
        store = store_of([(5000, ROWS)], limit_bytes=1024)
        (_, block) = blocks_of([(5000, ROWS)], [(10, END)])
        assert not store.put(block, timeout_s=0)
        store.ack("one", got(store).end)
        assert store.put(block, timeout_s=0)

    def test_a_transaction_larger_than_the_ring_flows_through_in_pieces(self) -> None:
        pieces = blocks_of([(10, BEGIN), (10, ROWS)], *[[(10, ROWS)] * 2] * 20, [(10, END)])
        store = store_of(slots=4)
        for piece in pieces:
            assert store.put(piece, timeout_s=0)
            batch = got(store)
            assert batch.ack == (piece.end if piece is pieces[-1] else None)
            store.ack("one", batch.end, batch.end_sequence)
        assert store.size_bytes == 0
        assert store.first == pieces[-1].end

    def test_it_grows_for_a_client_that_wants_whole_ones(self) -> None:
        pieces = blocks_of(transaction(), *[[(10, ROWS)]] * 9, [(10, END)], transaction())
        store = EventStore(MemoryStorage(1, slots=1), START)
        store.add_client("whole", wants_whole=True)
        assert store.put(pieces[0], timeout_s=0)
        assert not store.put(pieces[1], timeout_s=0)
        store.ack("whole", got(store, BatchSize(1), "whole").end)
        assert all(store.put(piece, timeout_s=0) for piece in pieces[1:11])
        assert not store.put(pieces[11], timeout_s=0)
        batch = got(store, BatchSize(1), "whole")
        assert (batch.start, batch.end) == (pieces[0].end, pieces[10].end)


class TestGet:
    def test_one_put_one_get(self) -> None:
        store = store_of([(10, ROWS)])
        batch = got(store, BatchSize(1))
        assert (batch.first_sequence, batch.end_sequence, batch.start) == (0, 0, START)
        assert batch.end == Position(START.file, 14)
        assert store.get("one", BatchSize(1)) is None

    def test_sixteen_in_two_halves(self) -> None:
        store = store_of(*[[(10, ROWS)]] * 16, slots=16)
        first, second = got(store, BatchSize(8)), got(store, BatchSize(8))
        assert (first.end_sequence, second.first_sequence, second.end_sequence) == (7, 8, 15)
        assert second.end.offset == 4 + 160

    def test_a_batch_in_memory_units_is_exact_and_never_empty(self) -> None:
        each = 10 + EVENT_INDEX_BYTES
        store = store_of([(10, ROWS)] * 10)
        for units, expected in ((1, 1), (each - 1, 1), (each, 1), (2 * each - 1, 1), (2 * each, 2), (3 * each, 3)):
            batch = got(store, BatchSize(units, "memory", 1))
            assert batch.end_sequence + 1 - batch.first_sequence == expected
            store.rollback("one")

    def test_sizes_beyond_2_gib_are_no_trouble(self) -> None:
        assert BatchSize(1 << 22, "memory").bytes == 1 << 32
        assert got(store_of([(10, ROWS)]), BatchSize(1 << 40, "memory")).end_sequence == 0

    def test_blocking_waits_for_a_full_batch_and_timed_takes_what_is_there(self) -> None:
        store = store_of([(10, ROWS)] * 3)
        batches = list[Batch | None]()
        waiting = threading.Thread(target=lambda: batches.append(store.get("one", BatchSize(4), None)), daemon=True)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        (_, block) = blocks_of([(10, ROWS)] * 3, [(10, ROWS)])
        store.put(block)
        waiting.join(_DEADLINE_S)
        assert [batch and batch.end_sequence for batch in batches] == [3]
        store.rollback("one")
        assert store.get("one", BatchSize(100), 0.01) is not None

    @pytest.mark.parametrize("unit", ["items", "memory"])
    def test_a_statement_goes_alone(self, unit: str) -> None:
        store = store_of(transaction(), [(10, DDL)], [*transaction(), (10, DDL), (10, DDL)])
        size = BatchSize(1000, unit)  # type: ignore[arg-type]
        ends = [got(store, size, is_ddl_alone=True).end_sequence for _ in range(5)]
        assert ends == [2, 3, 6, 7, 8]
        store.rollback("one")
        assert got(store, size).end_sequence == 8

    def test_the_ack_point_is_the_last_boundary(self) -> None:
        store = store_of([*transaction(), (10, BEGIN), (10, ROWS)])
        batch = got(store)
        assert batch.ack == Position(START.file, 34)
        store.rollback("one")
        assert got(store, BatchSize(2)).ack is None

    def test_each_client_sees_its_tables_only(self) -> None:
        (block,) = blocks_of([(10, BEGIN), (10, ROWS), (10, ROWS), (10, END)])
        name = b"\x07\0\0\0\0\0\x01\0\x04shop\0\x01a\0\0\0"
        block = replace(block, tables={7: name, 8: name.replace(b"\x01a", b"\x01b")})
        block = block.with_columns(table_id=np.array([0, 7, 8, 0]))
        store = EventStore(MemoryStorage(1 << 20), START)
        store.add_client("a", table_filter=lambda table: table.table == "a")
        store.add_client("all")
        store.put(block)
        (seen,), (every,) = got(store, name="a").blocks, got(store, name="all").blocks
        assert seen.column("entry").tolist() == [BEGIN, ROWS, OTHER, END]
        assert every.column("entry").tolist() == [BEGIN, ROWS, ROWS, END]
        assert list(seen.tables) == [7]
        assert seen.raw[0].ctypes.data == block.raw[0].ctypes.data  # the bytes are shared


class TestAck:
    def test_what_does_not_match_is_refused(self) -> None:
        store = store_of([(10, ROWS)] * 4)
        batch = got(store, BatchSize(2))
        middle = Position(START.file, 19)
        for end, sequence in ((middle, None), (batch.end, 0), (batch.end, 2), (Position("binlog.000002", 24), None)):
            with pytest.raises(StoreError, match="client one cannot ack"):
                store.ack("one", end, sequence)
        store.ack("one", batch.end, 1)
        with pytest.raises(StoreError, match="it has acked 1 and got 1"):
            store.ack("one", batch.end, 1)

    def test_an_unknown_client(self) -> None:
        with pytest.raises(StoreError, match="there is no client two; there is one"):
            store_of().get("two", ALL)

    def test_freed_blocks_are_really_gone(self) -> None:
        store, watched, at = store_of(), list[weakref.ref[object]](), 4
        for _ in range(3):
            block, raw = block_of(transaction(), start=at)
            watched.append(weakref.ref(raw))
            store.put(block)
            at = block.end.offset
        del raw, block
        store.add_client("two")
        batch = got(store, BatchSize(6))
        store.ack("one", batch.end)
        del batch
        assert [memory() is None for memory in watched] == [False, False, False]  # the other client has not
        store.forget_client("two")
        assert [memory() is None for memory in watched] == [True, True, False]

    def test_release_counts_up_to_the_last_boundary(self) -> None:
        store = store_of([*transaction(), *transaction()])
        store.release("one", Position(START.file, 54))
        assert store.sequences("one") == (5, 2, 2)
        with pytest.raises(StoreError, match=r"cannot ack .*:99: the store has transactions up to .*:64 only"):
            store.release("one", Position(START.file, 99))


class TestRollback:
    def test_half_rolled_back_is_redelivered(self) -> None:
        store = store_of(*[[(10, ROWS)]] * 16)
        first = got(store, BatchSize(8))
        store.rollback("one")
        again = got(store, BatchSize(8))
        assert (first.start, first.end, first.end_sequence) == (again.start, again.end, again.end_sequence)
        store.ack("one", again.end)
        store.rollback("one")
        assert got(store).first_sequence == 8

    def test_it_is_of_one_client(self) -> None:
        store = store_of([(10, ROWS)] * 4)
        store.add_client("two")
        got(store)
        got(store, name="two")
        store.rollback("one")
        assert store.sequences("one") == (3, -1, -1)
        assert store.sequences("two") == (3, 3, -1)

    def test_it_wakes_who_waits(self) -> None:
        store = store_of([(10, ROWS)])
        got(store)
        batches = list[Batch | None]()
        waiting = threading.Thread(
            target=lambda: batches.append(store.get("one", BatchSize(1), _TOO_LONG_S)), daemon=True
        )
        waiting.start()
        waiting.join(0.05)
        store.rollback("one")
        waiting.join(_DEADLINE_S)
        assert [batch is not None for batch in batches] == [True]


class TestClients:
    def test_where_a_client_begins(self) -> None:
        store = store_of(*[transaction()] * 4)
        starts = {
            "first": (Start.stored(), 4),
            "latest": (Start.latest(), 124),
            "position": (Start.at(Position(START.file, 64)), 64),
            "inside": (Start.at(Position(START.file, 74)), 74),
            "time": (Start.at_time(2000), 64),
            "late": (Start.at_time(99_000), 124),
        }
        for name, (start, offset) in starts.items():
            assert store.add_client(name, start) == Position(START.file, offset), name
        assert got(store, name="position").first_sequence == 6
        assert got(store, name="inside").first_sequence == 7
        assert store.get("latest", ALL) is None

    @pytest.mark.parametrize(
        ("start", "says"),
        [
            (Start.at(Position(START.file, 3)), "the store begins at .*:4: it does not have .*:3 any more"),
            (Start.at(Position("binlog.000002", 4)), "the store ends at .*:34: it does not have binlog.000002:4 yet"),
            (Start.after_gtid("0-1-7"), "the store begins at .*:4 and has no transaction 0-1-7"),
        ],
    )
    def test_what_the_store_does_not_have(self, start: Start, says: str) -> None:
        with pytest.raises(PositionLostError, match=says):
            store_of(transaction()).add_client("two", start)

    def test_one_that_is_there_resumes(self) -> None:
        store = store_of(*[transaction()] * 2)
        got(store, BatchSize(3))
        assert store.add_client("one", Start.latest()) == Position(START.file, 34)

    def test_states(self) -> None:
        now = [0.0]
        store = EventStore(MemoryStorage(1 << 20), START, clock=lambda: now[0])
        store.add_client("one")
        store.add_client("two")
        now[0] = IDLE_S + 1
        store.get("two", ALL)
        assert store.states() == {"one": ClientState.IDLE, "two": ClientState.LIVE}


class TestPositions:
    def test_reading_starts_between_transactions_after_blocks_were_freed(self) -> None:
        store = store_of([(10, BEGIN), (10, ROWS)], [(10, END), *transaction()])
        store.ack("one", got(store, BatchSize(2)).end)
        assert store.first == Position(START.file, 34)
        assert store.read(Position(START.file, 24), store.latest) is None
        blocks = store.read(store.first, store.latest)
        assert blocks is not None
        assert [len(block) for block in blocks] == [3]

    def test_max_bytes_counts_bytes_of_the_log(self) -> None:
        store = store_of(*[[(30, BEGIN), (60, ROWS), (10, END)]] * 3)
        for most, expected in ((99, 100), (100, 100), (199, 100), (200, 200), (299, 200), (300, 300)):
            assert store.find_batch_end(START, most).offset == 4 + expected

    def test_what_lies_before_the_start_does_not_count(self) -> None:
        first, two, three = blocks_of([*transaction(), *transaction()], transaction(), transaction())
        store = EventStore(MemoryStorage(1 << 20), START)
        store.put([first, two, three])
        assert store.find_batch_end(Position(START.file, 34), 90) == three.end

    def test_the_next_boundary_may_be_blocks_away(self) -> None:
        pieces = blocks_of([*transaction(), (10, BEGIN)], [(10, ROWS)], [(10, ROWS)], [(10, END), (10, BEGIN)])
        store = EventStore(MemoryStorage(1 << 20), START)
        store.put(pieces)
        assert store.find_batch_end(Position(START.file, 34), 1).offset == 34 + 40


class TestEndings:
    def test_discard_leaves_whole_transactions(self) -> None:
        store = store_of([*transaction(), (5, BEGIN)], [(6, ROWS)])
        got(store)
        assert store.discard_incomplete() == Position(START.file, 34)
        assert store.sequences("one") == (2, 2, -1)
        again = blocks_of([*transaction()], [(5, BEGIN), (6, ROWS), (7, END)])[1]
        store.put(again)
        assert got(store).first_sequence == 3

    def test_stop_forgets_everything(self) -> None:
        store = store_of(*[transaction()] * 4)
        store.stop()
        assert store.size_bytes == 0
        with pytest.raises(StoreError, match="there is no client one; there is none"):
            store.get("one", ALL)
        with pytest.raises(StoreError, match="the store was stopped"):
            store.put(blocks_of(transaction())[0])

    def test_a_failure_wakes_and_stops_everybody(self) -> None:
        store = store_of()
        raised = list[str]()

        def wait() -> None:
            try:
                store.get("one", BatchSize(1), _TOO_LONG_S)
            except SourceConnectionError as error:
                raised.append(str(error))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        store.fail(SourceConnectionError("gone"))
        waiting.join(_DEADLINE_S)
        assert raised == ["gone"]
        with pytest.raises(SourceConnectionError, match="gone"):
            store.put(blocks_of(transaction())[0])
        with pytest.raises(SourceConnectionError, match="gone"):
            store.read(START, START)


@pytest.mark.parametrize("whole", [False, True])
def test_a_producer_waits_for_its_consumers_and_nothing_is_lost(whole: bool) -> None:
    """Real threads; some transactions are larger than the ring."""
    contents = [[(10, BEGIN), *[(20, ROWS)] * (number % 7), (10, END)] for number in range(300)]
    pieces = blocks_of(*(content[i : i + 2] for content in contents for i in range(0, len(content), 2)))
    store = EventStore(MemoryStorage(memory_bytes(3 * 2 * (20 + EVENT_INDEX_BYTES), 6), slots=4), START)
    names, seen = ("one", "two", "three"), dict[str, list[int]]()
    for name in names:
        store.add_client(name, wants_whole=whole)

    def consume(name: str) -> None:
        seen[name] = offsets = []
        while not offsets or offsets[-1] < pieces[-1].column("position")[-1]:
            batch = store.get(name, BatchSize(len(offsets) % 5 + 1), 0.1)
            if batch is not None and len(offsets) % 11 == 3 and not whole:
                store.rollback(name)
                batch = store.get(name, BatchSize(3), 0.1)
            if batch is None:
                continue  # at the end of the log no batch gets full
            offsets += [int(offset) for block in batch.blocks for offset in block.column("position")]
            store.ack(name, batch.end, batch.end_sequence)

    threads = [threading.Thread(target=consume, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for piece in pieces:
        assert store.put(piece, _DEADLINE_S)
    for thread in threads:
        thread.join(_DEADLINE_S)
    expected = [int(offset) for piece in pieces for offset in piece.column("position")]
    assert seen == dict.fromkeys(names, expected)
    assert store.size_bytes == 0


class TestComingAgain:
    """A client with a cursor, at a store that a crash has left behind it."""

    def test_it_does_not_get_again_what_it_has_acked(self) -> None:
        first, two, three = blocks_of(*[transaction()] * 3)
        store = EventStore(MemoryStorage(1 << 20), START)
        assert store.add_client("one", Start.cursor(two.end)) == START
        assert store.get("one", ALL) is None
        store.put(first)
        assert store.get("one", ALL) is None
        assert store.acked == first.end
        store.put([two, three])
        batch = got(store)
        assert (batch.start, batch.end) == (two.end, three.end)

    def test_it_may_come_back_inside_a_block(self) -> None:
        (block,) = blocks_of([*transaction(), *transaction()])
        store = EventStore(MemoryStorage(1 << 20), START)
        store.add_client("one", Start.cursor(Position(START.file, 34)))
        store.put(block)
        assert got(store).start == Position(START.file, 34)

    def test_a_cursor_inside_a_transaction_gets_all_of_it_again(self) -> None:
        first, two = blocks_of(*[transaction()] * 2)
        store = EventStore(MemoryStorage(1 << 20), START)
        store.add_client("one", Start.cursor(Position(START.file, two.start.offset + 10)))
        store.put([first, two])
        assert got(store).start == first.end

    def test_one_that_the_store_has_is_a_start_like_others(self) -> None:
        store = store_of(transaction(), transaction())
        assert store.add_client("two", Start.cursor(Position(START.file, 34))) == Position(START.file, 34)

    def test_others_need_not_wait(self) -> None:
        first, two = blocks_of(*[transaction()] * 2)
        store = EventStore(MemoryStorage(1 << 20), START)
        store.add_client("ahead", Start.cursor(two.end))
        store.add_client("other")
        store.put(first)
        assert got(store, name="other").end == first.end
        store.ack("other", first.end)
        assert store.size_bytes == 0


class TestAcked:
    def test_it_is_the_last_boundary_of_the_slowest(self) -> None:
        store = store_of(transaction(), transaction(), transaction())
        store.add_client("two")
        assert store.acked == START
        store.ack("one", got(store).end)
        assert store.acked == START
        batch = got(store, BatchSize(4), "two")
        store.ack("two", batch.end)
        assert store.acked == Position(START.file, 34)
        store.forget_client("two")
        assert store.acked == Position(START.file, 94)

    def test_nobody_needs_what_was_freed(self) -> None:
        assert store_of().acked == START
        store = EventStore(MemoryStorage(1 << 20), START)
        store.put(blocks_of(transaction())[0])
        assert store.acked == START


def test_a_store_can_begin_elsewhere() -> None:
    store = EventStore(MemoryStorage(1 << 20), START)
    first, two = blocks_of(*[transaction()] * 2)
    store.put(first)
    store.restart_at(two.start)
    assert (store.first, store.latest, store.size_bytes) == (two.start, two.start, 0)
    store.add_client("one")
    store.put(two)
    assert got(store).first_sequence == 0
    with pytest.raises(StoreError, match=r"cannot begin at .* while it has clients"):
        store.restart_at(START)


def test_one_that_can_read_the_log_makes_no_transaction_stay_as_a_whole() -> None:
    """It would have to have room in memory, however large it is."""
    first, *pieces, end = blocks_of(transaction(), [(10, BEGIN)], *[[(10, ROWS)] * 8] * 50, [(10, END)])
    limit = 3 * memory_bytes(8 * (10 + EVENT_INDEX_BYTES), 8)
    store = EventStore(MemoryStorage(limit), START)
    store.add_client("readers", wants_whole=True, reads_log=True)
    store.put(first)
    store.release("readers", first.end)
    for piece in pieces:
        assert store.put(piece, timeout_s=0)
        assert store.size_bytes <= limit
        assert store.first == first.end
        assert store.find_batch_end(first.end, 1 << 20) == first.end
    assert store.put(end, timeout_s=0)
    assert store.find_batch_end(first.end, 1 << 20) == end.end
    assert store.read(first.end, end.end) is None
    (last_block,) = blocks_of(transaction(), [(10, BEGIN)], *[[(10, ROWS)] * 8] * 50, [(10, END)], transaction())[-1:]
    store.put(last_block)
    assert store.find_batch_end(end.end, 1 << 20) == last_block.end
    assert store.read(end.end, last_block.end) is not None


class TestMeanwhile:
    """What happens to a client between the moment a get looks and the moment it takes."""

    @staticmethod
    def store_that(happens: Callable[[EventStore], object]) -> EventStore:
        class Slow(MemoryStorage):
            is_slow = True

            def entries(self, held: BlockInfo) -> BlockEntries:
                entries_read = super().entries(held)
                if self.is_slow:
                    self.is_slow = False
                    happens(store)
                return entries_read

        storage = Slow(1 << 20)
        storage.is_slow = False
        store = EventStore(storage, START)
        store.add_client("one")
        store.put(blocks_of(*[transaction()] * 3))
        assert got(store, BatchSize(3)).start == START
        storage.is_slow = True
        return store

    def test_a_rollback(self) -> None:
        store = self.store_that(lambda store: store.rollback("one"))
        assert got(store, BatchSize(3)).start == START
        assert got(store, BatchSize(3)).start == Position(START.file, 34)

    def test_it_is_forgotten(self) -> None:
        store = self.store_that(lambda store: store.forget_client("one"))
        with pytest.raises(StoreError, match="client one was forgotten"):
            store.get("one", BatchSize(3))

    def test_the_connection_breaks(self) -> None:
        store = self.store_that(lambda store: store.discard_incomplete())
        store.rollback("one")
        first, two, three = blocks_of(*[transaction()] * 3)
        assert got(store).end == three.end
        open_, whole = blocks_of(*[transaction()] * 3, [(10, BEGIN), (10, ROWS)], [(10, END)])[3:]
        store.put(open_)
        assert got(store).end == open_.end
        assert store.discard_incomplete() == three.end
        store.put([open_, whole])
        assert got(store).start == three.end
        del first, two


def test_a_get_for_more_than_the_ring_holds_gets_what_there_is() -> None:
    store = EventStore(MemoryStorage(1 << 20, slots=4), START)
    store.add_client("one")
    first, two = blocks_of(*[transaction()] * 2)
    store.put(first)
    ends = list[Position]()

    def wait() -> None:
        batch = store.get("one", BatchSize(100), None)
        assert batch is not None
        ends.append(batch.end)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert not ends
    assert not store.put(two, timeout_s=0.05)
    waiting.join(_DEADLINE_S)
    assert ends == [first.end]


def test_an_ack_of_several_entries_that_end_at_one_position_is_of_the_last() -> None:
    """What was compressed shares positions of the log."""
    (block,) = blocks_of([(10, BEGIN), (10, ROWS), (10, ROWS), (10, END)])
    position, span = block.column("position").copy(), block.column("span").copy()
    position[2], span[1], span[2] = position[1], 20, 20
    store = EventStore(MemoryStorage(1 << 20), START)
    store.add_client("one")
    store.put(block.with_columns(position=position, span=span))
    got(store)
    store.ack("one", Position(START.file, 34))
    assert store.sequences("one") == (3, 3, 2)


def test_one_that_rejoins_has_not_kept_more() -> None:
    class Outliving(MemoryStorage):
        def __init__(self) -> None:
            super().__init__(1 << 20)
            self.is_persistent = True

    store = EventStore(Outliving(), START)
    store.add_client("one", persists_later=True)
    blocks = blocks_of(transaction(), transaction())
    store.put(blocks)
    store.ack("one", got(store).end)
    store.add_client("one", persists_later=True)
    store.put(blocks_of(*[transaction()] * 3)[2])
    assert store.first == START
    store.confirm_persisted("one", blocks[0].end)
    assert store.first == blocks[0].end
