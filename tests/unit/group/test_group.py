"""A group: transactions of several members by time, each member's in its order, exactly once with acks."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.errors import ConfigurationError, MetaError, NotRunningError, PenstockError, SourceConnectionError
from penstock.group.group import Group, GroupBatch
from penstock.instance import InstanceState
from penstock.instance.clients import Clients
from penstock.meta import MetaManager
from penstock.model import Position
from penstock.store import BatchSize, EventStore, MemoryStorage, Start
from tests.support.store_blocks import ALL, BEGIN, DDL, END, OTHER, ROWS, START
from tests.twins.blocks import block_of
from tests.twins.strategy import examples

CLIENT = 7
HOLD_S = 1.0


@dataclass(slots=True, eq=False)
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True, eq=False)
class Fake:
    """An instance without a source: a test puts what is captured."""

    memory: int = 1 << 20
    state: InstanceState = InstanceState.FOLLOWING
    failure: PenstockError | None = None
    meta: MetaManager = field(default_factory=lambda: MetaManager("d"))
    at: Position = START

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """After a crash: the log is read again from the lowest cursor."""
        cursor = self.meta.lowest_cursor()
        self.at = cursor.position if cursor is not None else START
        self.store = EventStore(MemoryStorage(self.memory), self.at)
        self.clients = Clients(self.store, self.meta)
        self.clients.start()

    store: EventStore = field(init=False)
    clients: Clients = field(init=False)
    starts: int = 0

    def start(self) -> None:
        self.starts += 1
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self.state = InstanceState.STOPPED

    def put(self, time_us: int, *events: tuple[int, int]) -> None:
        block, _ = block_of(events or [(10, BEGIN), (10, ROWS), (10, END)], start=self.at.offset, time_us=time_us)
        assert self.store.put(block, timeout_s=0)
        self.at = block.end


def group_of(*names: str, hold_s: float = HOLD_S, memory: int = 1 << 20) -> tuple[Group, dict[str, Fake], Clock]:
    fakes, clock = {name: Fake(memory) for name in names}, Clock()
    group = Group("g", fakes, hold_s=hold_s, clock=clock)
    group.subscribe(CLIENT)
    return group, fakes, clock


Transaction = tuple[str, int, int]
"""Member, time, offset of its begin."""


def transactions(batch: GroupBatch) -> list[Transaction]:
    """Each as one, though it may be in several blocks."""
    events = list[Transaction]()
    is_open = False
    for name, block in zip(batch.members, batch.blocks, strict=True):
        for entry, time_us, at in _events(block):
            if not is_open:
                events.append((name, time_us, at))
            is_open = entry not in (END, DDL)
    return events


def _events(block: Block) -> Iterator[tuple[int, int, int]]:
    columns = (block.column(name).tolist() for name in ("entry", "commit_us", "position"))
    return ((entry, time_us, at) for entry, time_us, at in zip(*columns, strict=True) if entry != OTHER)


def names_and_times(batch: GroupBatch) -> list[tuple[str, int]]:
    return [(name, time_us) for name, time_us, _ in transactions(batch)]


def got(group: Group, size: BatchSize = ALL) -> tuple[int, GroupBatch]:
    batch = group.get(CLIENT, size)
    assert batch is not None
    return batch


def test_the_earlier_one_comes_first() -> None:
    group, fakes, _ = group_of("a", "b")
    for time_us in (10, 30, 50):
        fakes["a"].put(time_us)
    for time_us in (20, 40, 60):
        fakes["b"].put(time_us)
    batch_id, batch = got(group)
    assert names_and_times(batch) == [("a", 10), ("b", 20), ("a", 30), ("b", 40), ("a", 50)]
    assert (batch.first_sequence, batch.end_sequence) == (0, 14)
    group.ack(CLIENT, batch_id)
    assert group.get(CLIENT, ALL) is None  # of a, one before 60 might come


def test_a_silent_member_holds_the_others_for_a_limited_time() -> None:
    group, fakes, clock = group_of("a", "b")
    fakes["a"].put(10)
    assert group.get(CLIENT, ALL) is None
    clock.now += HOLD_S / 2
    fakes["a"].put(20)
    assert group.get(CLIENT, ALL) is None
    clock.now += HOLD_S / 2
    assert names_and_times(got(group)[1]) == [("a", 10)]
    clock.now += HOLD_S / 2
    assert names_and_times(got(group)[1]) == [("a", 20)]


def test_what_comes_late_comes_all_the_same() -> None:
    group, fakes, clock = group_of("a", "b")
    fakes["a"].put(10)
    assert group.get(CLIENT, ALL) is None
    clock.now += HOLD_S
    assert names_and_times(got(group)[1]) == [("a", 10)]
    fakes["b"].put(5)
    clock.now += HOLD_S
    fakes["a"].put(20)
    assert names_and_times(got(group)[1]) == [("b", 5)]


@pytest.mark.parametrize("state", [InstanceState.RECONNECTING, InstanceState.STARTING])
def test_a_member_that_is_not_connected_holds_nobody(state: InstanceState) -> None:
    group, fakes, _ = group_of("a", "b")
    fakes["b"].state = state
    fakes["a"].put(10)
    assert names_and_times(got(group)[1]) == [("a", 10)]


def test_times_that_fall_in_a_log_do_not_change_its_order() -> None:
    group, fakes, _ = group_of("a", "b")
    for time_us in (50, 10, 60):
        fakes["a"].put(time_us)
    for time_us in (20, 55, 70):
        fakes["b"].put(time_us)
    assert names_and_times(got(group)[1]) == [("b", 20), ("a", 50), ("a", 10), ("b", 55), ("a", 60)]


def test_a_batch_has_its_size() -> None:
    group, fakes, _ = group_of("a", "b")
    for time_us in range(10, 100, 20):
        fakes["a"].put(time_us)
        fakes["b"].put(time_us + 10)
    first = got(group, BatchSize(7))
    assert names_and_times(first[1]) == [("a", 10), ("b", 20)]
    assert names_and_times(got(group, BatchSize(3))[1]) == [("a", 30)]
    assert len(names_and_times(got(group, BatchSize(1, "memory", 65))[1])) == 2


def test_statements_may_go_alone() -> None:
    group, fakes, _ = group_of("a", "b")
    fakes["a"].put(10)
    fakes["a"].put(20, (10, DDL))
    fakes["a"].put(40)
    fakes["b"].put(15)
    fakes["b"].put(50)

    def alone() -> list[tuple[str, int]]:
        batch = group.get(CLIENT, ALL, is_ddl_alone=True)
        assert batch is not None
        return names_and_times(batch[1])

    assert [alone(), alone(), alone()] == [[("a", 10), ("b", 15)], [("a", 20)], [("a", 40)]]


def test_nothing_comes_between_pieces_of_a_transaction() -> None:
    """Neither when it is larger than a batch, nor when its end has not come."""
    group, fakes, clock = group_of("a", "b")
    fakes["b"].put(20)
    fakes["b"].put(40)
    fakes["a"].put(10, (10, BEGIN), *[(10, ROWS)] * 8, (10, END))
    fakes["a"].put(30, (10, BEGIN), (10, ROWS))
    pieces = [got(group, BatchSize(4))[1] for _ in range(3)]
    assert [set(piece.members) for piece in pieces] == [{"a"}] * 3
    assert sum(len(block) for piece in pieces for block in piece.blocks) == 10
    assert [piece.ack is None for piece in pieces] == [True, True, False]
    clock.now += HOLD_S
    assert names_and_times(got(group)[1]) == [("b", 20), ("b", 40)]
    clock.now += HOLD_S
    assert set(got(group)[1].members) == {"a"}
    fakes["b"].put(41)
    clock.now += 10 * HOLD_S
    assert group.get(CLIENT, ALL) is None  # b waits until a's has ended
    fakes["a"].put(30, (10, ROWS), (10, END))
    assert got(group)[1].members == ("a",)


def test_a_transaction_larger_than_the_store() -> None:
    group, fakes, clock = group_of("a", "b", memory=8000)
    count, rows = 0, 0
    fakes["a"].put(10, (10, BEGIN))
    fakes["b"].put(20)
    while count < 40:
        block, _ = block_of([(100, ROWS)] * 10, start=fakes["a"].at.offset, time_us=10)
        if fakes["a"].store.put(block, timeout_s=0):
            fakes["a"].at, count = block.end, count + 1
            continue
        batch = group.get(CLIENT, BatchSize(25))
        clock.now += HOLD_S
        if batch is not None:
            assert set(batch[1].members) == {"a"}
            rows += sum(len(part) for part in batch[1].blocks)
            group.ack(CLIENT, batch[0])
    while (batch := group.get(CLIENT, BatchSize(25))) is not None:
        rows += sum(len(part) for part in batch[1].blocks)
        group.ack(CLIENT, batch[0])
    fakes["a"].put(10, (10, END))
    fakes["a"].put(30)
    seen = list[str]()
    while (batch := group.get(CLIENT, BatchSize(25))) is not None:
        seen += batch[1].members
        rows += sum(len(part) for part, name in zip(batch[1].blocks, batch[1].members, strict=True) if name == "a")
        group.ack(CLIENT, batch[0])
        clock.now += HOLD_S
    assert rows == 402 + 3
    assert "b" in seen
    assert seen[0] == "a"


def test_acks_are_in_order_and_move_each_cursor() -> None:
    group, fakes, _ = group_of("a", "b")
    for time_us in (10, 30, 50):
        fakes["a"].put(time_us)
        fakes["b"].put(time_us + 10)
    (first, first_batch), (second, two) = got(group, BatchSize(6)), got(group, BatchSize(6))
    with pytest.raises(MetaError, match=rf"batch {second} .* is not the first outstanding one of 'g': {first} is"):
        group.ack(CLIENT, second)
    group.ack(CLIENT, first)
    for name, fake in fakes.items():
        cursor = fake.meta.cursor(CLIENT)
        assert cursor is not None
        assert (
            cursor.position
            == [
                block.end for block, owner in zip(first_batch.blocks, first_batch.members, strict=True) if owner == name
            ][-1]
        )
    with pytest.raises(MetaError, match="is not the first"):
        group.rollback(CLIENT, first)
    group.rollback(CLIENT, second)
    assert transactions(got(group, BatchSize(6))[1]) == transactions(two)


def test_an_ack_that_one_member_refuses_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    group, fakes, _ = group_of("a", "b")
    fakes["a"].put(10)
    fakes["b"].put(10)
    batch_id, _ = got(group)
    with monkeypatch.context() as patched:
        patched.setattr(fakes["b"].clients, "ack", lambda *_: (_ for _ in ()).throw(MetaError("no")))
        with pytest.raises(MetaError, match="no"):
            group.ack(CLIENT, batch_id)
    group.ack(CLIENT, batch_id)
    assert [fake.meta.batches(CLIENT) for fake in fakes.values()] == [{}, {}]


def test_a_filter_hides_rows_and_nothing_else() -> None:
    group, fakes, _ = group_of("a", "b")
    group.subscribe(CLIENT, "shop\\..*")
    for time_us in (10, 20):
        fakes["a"].put(time_us)
        fakes["b"].put(time_us)
    assert names_and_times(got(group)[1]) == [("a", 10), ("b", 10), ("a", 20), ("b", 20)]


def test_a_member_that_fails_fails_the_group() -> None:
    group, fakes, _ = group_of("a", "b")
    assert group.state is InstanceState.FOLLOWING
    fakes["b"].state, fakes["b"].failure = InstanceState.FAILED, SourceConnectionError("its disk is gone")
    fakes["a"].put(10)
    assert group.state is InstanceState.FAILED
    with pytest.raises(SourceConnectionError, match="member 'b' of group 'g': its disk is gone"):
        group.get(CLIENT, ALL)
    with pytest.raises(SourceConnectionError, match="member 'b' of group 'g'"):
        group.start()
    assert fakes["a"].state is InstanceState.STOPPED


def test_positions_of_one_log_are_no_start_for_a_group() -> None:
    group, _, _ = group_of("a", "b")
    with pytest.raises(ConfigurationError, match="a position in one log"):
        group.subscribe(1, "", Start.at(START))
    with pytest.raises(ConfigurationError, match="has no members"):
        Group("g", {})
    assert group.subscribe(1, "", Start.latest()) == {"a": START, "b": START}
    group.unsubscribe(1)
    with pytest.raises(MetaError, match="has not subscribed"):
        group.get(1, ALL)
    group.forget(CLIENT)


def test_a_get_waits_and_a_stop_ends_it() -> None:
    fakes = {"a": Fake()}
    group = Group("g", fakes)
    group.subscribe(CLIENT)
    timer = threading.Timer(0.05, fakes["a"].put, (10,))
    timer.start()
    batch = group.get(CLIENT, ALL, 20)
    assert batch is not None
    timer = threading.Timer(0.05, group.stop)
    timer.start()
    assert group.get(CLIENT, ALL, None) is None
    timer.join()


_RUNNING_OR_NOT = st.sampled_from((InstanceState.FOLLOWING, InstanceState.RECONNECTING))
_STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(1, 30), st.integers(0, 6)),
    st.tuples(st.just("get"), st.integers(1, 25)),
    st.tuples(st.just("ack")),
    st.tuples(st.just("rollback")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("wait"), st.sampled_from((0.1, 0.5, 1.0))),
    st.tuples(st.just("state"), st.sampled_from("abc"), _RUNNING_OR_NOT),
)


class Run:
    """A group, what was written to its members, and what a client has acked of each, event by event."""

    def __init__(self) -> None:
        self.group, self.fakes, self.clock = group_of("a", "b", "c")
        self.written: dict[str, list[tuple[int, int, int]]] = {name: [] for name in self.fakes}  # offset, time, rows
        self.acked: dict[str, list[int]] = {name: [] for name in self.fakes}  # offsets
        self.outstanding: list[tuple[int, GroupBatch]] = []

    def put(self, name: str, time_us: int, rows: int) -> None:
        fake = self.fakes[name]
        self.written[name].append((fake.at.offset, time_us, rows))
        fake.put(time_us, (10, BEGIN), *[(10, ROWS)] * rows, (10, END))

    def get(self, size: int) -> bool:
        is_there = self.group.wait(CLIENT, BatchSize(size), 0)
        batch = self.group.get(CLIENT, BatchSize(size))
        assert is_there == (batch is not None)
        self.outstanding += [batch] if batch is not None else []
        return batch is not None

    def ack(self) -> None:
        if self.outstanding:
            batch_id, batch = self.outstanding.pop(0)
            self.group.ack(CLIENT, batch_id)
            for name, block in zip(batch.members, batch.blocks, strict=True):
                self.acked[name] += block.column("position").tolist()

    def rollback(self) -> None:
        self.group.rollback(CLIENT)
        self.outstanding.clear()

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def state(self, name: str, state: InstanceState) -> None:
        self.fakes[name].state = state

    def crash(self) -> None:
        """What was acked of whole transactions is not redelivered."""
        self.outstanding.clear()
        for name, fake in self.fakes.items():
            done = len(self.acked[name])
            whole = [
                transaction
                for transaction in self.written[name]
                if 10 * (transaction[2] + 2) + transaction[0] <= 4 + 10 * done
            ]
            again = self.written[name][len(whole) :]
            fake.restart()
            assert fake.at.offset == (whole[-1][0] + 10 * (whole[-1][2] + 2) if whole else 4)
            self.written[name], self.acked[name] = whole, [at for at in self.acked[name] if at < fake.at.offset]
            for _, time_us, rows in again:
                self.put(name, time_us, rows)
        self.group = Group("g", self.fakes, hold_s=HOLD_S, clock=self.clock)

    def finish(self) -> None:
        while self.outstanding or self.get(10) or not self._is_done():
            if self.outstanding:
                self.ack()
                continue
            self.clock.now += HOLD_S
            assert self.get(10), "something did not come"

    def _is_done(self) -> bool:
        return all(4 + 10 * len(self.acked[name]) == fake.at.offset for name, fake in self.fakes.items())


@examples(300)
@given(st.lists(_STEPS, max_size=60))
def test_whatever_happens_each_event_is_acked_once_and_in_order(steps: list[tuple[Any, ...]]) -> None:
    run = Run()
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
    run.finish()
    for name, fake in run.fakes.items():
        assert run.acked[name] == list(range(4, fake.at.offset, 10))


@examples(200)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.integers(0, 3)), max_size=40),
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
)
def test_what_is_known_in_time_is_ordered_by_time(puts: list[tuple[str, int, int]], sizes: list[int]) -> None:
    """With times that rise in each log; batches of any size do not change the order."""
    run, latest = Run(), dict.fromkeys("abc", 0)
    for name, delay_us, rows in puts:
        latest[name] += delay_us
        run.put(name, latest[name], rows)
    for name in run.fakes:
        run.put(name, 1 << 40, 0)  # so that none is silent
    changes = list[tuple[str, int]]()
    for turn in range(1000):
        got_one = run.group.get(CLIENT, BatchSize(sizes[turn % len(sizes)]))
        if got_one is None:
            break
        blocks = zip(got_one[1].members, got_one[1].blocks, strict=True)
        changes += [(name, time_us) for name, block in blocks for entry, time_us, _ in _events(block) if entry == END]
    times = [time_us for _, time_us in changes]
    assert times == sorted(times)
    assert len(changes) == len(puts) + 3


def test_a_client_waits_until_there_is_something() -> None:
    group, fakes, clock = group_of("a", "b")
    assert not group.wait(CLIENT, ALL, 0)
    fakes["a"].put(1_000_000)
    assert not group.wait(CLIENT, ALL, 0)  # b may have an earlier one
    clock.now += HOLD_S
    assert group.wait(CLIENT, ALL, 0)
    batch_id, _ = got(group)
    assert group.outstanding(CLIENT) == [batch_id]
    assert not group.wait(CLIENT, ALL, 0)
    group.ack(CLIENT, batch_id)
    assert group.outstanding(CLIENT) == []


def test_a_client_waits_for_the_next_piece_of_a_transaction() -> None:
    group, fakes, clock = group_of("a", "b")
    fakes["a"].put(1_000_000, (10, BEGIN), (10, ROWS))
    assert not group.wait(CLIENT, ALL, 0)
    clock.now += HOLD_S
    assert group.wait(CLIENT, ALL, 0)
    assert got(group)[0] == 1
    assert not group.wait(CLIENT, ALL, 0)
    assert group.get(CLIENT, ALL) is None
    fakes["a"].put(1_000_000, (10, ROWS), (10, END))
    assert group.wait(CLIENT, ALL, 0)
    assert got(group)[0] == 2
    assert not group.wait(CLIENT, ALL, 0)


def test_those_who_have_subscribed_have_done_so_everywhere() -> None:
    group, fakes, _ = group_of("a", "b")
    group.subscribe(8, "d\\.t")
    fakes["b"].clients.unsubscribe(CLIENT)
    assert group.subscriptions() == {8: "d\\.t"}


def test_another_group_continues_with_what_was_outstanding() -> None:
    group, fakes, clock = group_of("a", "b")
    for number in (1, 2):
        fakes["a"].put(number * 2_000_000)
        fakes["b"].put(number * 2_000_000 + 1)
    clock.now += HOLD_S
    group.wait(CLIENT, ALL, 0)
    clock.now += HOLD_S
    _, before = got(group)
    fakes["b"].restart()
    for number in (1, 2):
        fakes["b"].put(number * 2_000_000 + 1)
    group.retire(["a"])
    with pytest.raises(NotRunningError, match="connect again"):
        group.get(CLIENT, ALL)
    with pytest.raises(NotRunningError, match="connect again"):
        group.wait(CLIENT, ALL, 0)
    with pytest.raises(NotRunningError, match="connect again"):
        group.ack(CLIENT, 1)
    other = Group("g", fakes, hold_s=HOLD_S, clock=clock)
    other.wait(CLIENT, ALL, 0)
    clock.now += HOLD_S
    assert names_and_times(got(other)[1]) == names_and_times(before)
    assert len(transactions(before)) == 4
