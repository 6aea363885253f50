"""Where batches end and how ranges are cut, against the plain meaning of the limits."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.count import count_by_event
from penstock.instance.batch_plan import BatchLimit, BatchPlan, RecentPlans, plan_batch
from penstock.model import Position
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.strategy import examples, logs

START = Position("binlog.000001", 4)


def written(folder: Path, log: LogWriter) -> list[Block]:
    path = folder / START.file
    path.write_bytes(MAGIC + bytes(log.data))
    return list(LogFile(path))


def after(blocks: list[Block], start: Position, end: Position) -> list[Block]:
    parts = [block.between(start, end) for block in blocks]
    return [part for part in parts if len(part)]


def events_of(blocks: list[Block]) -> list[int]:
    return [int(position) for block in blocks for position in block.column("position")]


def rows_of(block: Block) -> int:
    """Images: two for each row of an update."""
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    sides = np.where(np.isin(block.column("kind")[events], (24, 31, 39)), 2, 1)
    return int((count_by_event(block, events) * sides).sum())


def bytes_of(block: Block) -> int:
    return int(block.index.bounds[-1]) - int(block.index.bounds[0])


@settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(files=1, transactions=6), st.integers(1, 4000), st.one_of(st.none(), st.integers(1, 12)))
def test_batches_follow_one_another_within_their_limits(
    tmp_path: Path, log: LogWriter, max_bytes: int, max_rows: int | None
) -> None:
    blocks = written(tmp_path, log)
    if not blocks:
        return
    last = blocks[-1].end_of_event(int(blocks[-1].boundaries[-1])) if blocks[-1].boundaries.size else START
    boundaries = {START} | {block.end_of_event(int(i)) for block in blocks for i in block.boundaries}
    limit = BatchLimit(max_bytes, max_rows)
    start, seen = START, list[int]()
    while start < last:
        rest = after(blocks, start, last)
        plan = plan_batch(start, rest, limit, last)
        batch = after(blocks, start, plan.end)
        assert start < plan.end <= last
        seen += events_of(batch)
        size, rows = sum(map(bytes_of, batch)), sum(map(rows_of, batch))
        is_within = size <= max_bytes and (max_rows is None or rows <= max_rows)
        ends_inside = sum(int(block.boundaries.size) for block in batch)
        if plan.end.transaction is not None:
            # Split: not a single transaction is whole, and it is the one that begins where the position says.
            assert ends_inside == 0
            assert plan.end not in boundaries
            assert plan.end.transaction in {int(at) for block in batch for at in block.column("transaction")}
            assert not any(plan.end.boundary < boundary <= plan.end for boundary in boundaries)
        else:
            assert plan.end in boundaries
            assert is_within or ends_inside == 1 or start.transaction is not None
        start = plan.end
    assert seen == events_of(after(blocks, START, last))


@settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    logs(files=1, transactions=6),
    st.integers(1, 4000),
    st.integers(1, 12),
    st.integers(1, 2),
    st.one_of(st.none(), st.integers(50, 600)),
)
def test_of_two_limits_the_one_that_is_reached_first_ends_a_batch(
    tmp_path: Path, log: LogWriter, max_bytes: int, max_rows: int, rows_per_update: int, block_bytes: int | None
) -> None:
    """Also where one of them alone would split a transaction, and however the log is divided into blocks."""
    blocks = written(tmp_path, log)
    if not blocks or not blocks[-1].boundaries.size:
        return
    last = blocks[-1].end_of_event(int(blocks[-1].boundaries[-1]))
    if block_bytes is not None:
        blocks = [part for block in blocks for part in block.split(block_bytes)]
    unlimited = 1 << 40
    start = START
    while start < last:
        rest = after(blocks, start, last)

        def plan(limit_bytes: int, limit_rows: int | None) -> BatchPlan:
            limit = BatchLimit(limit_bytes, limit_rows, rows_per_update)
            return plan_batch(start, rest, limit, last)  # noqa: B023 - called at once

        by_bytes, by_rows, by_both = plan(max_bytes, None), plan(unlimited, max_rows), plan(max_bytes, max_rows)
        first = min(by_bytes, by_rows, key=lambda plan: plan.end)
        assert (by_both.end, by_both.end.transaction) == (first.end, first.end.transaction)
        assert by_both.is_limited == (by_bytes.is_limited or by_rows.is_limited)
        start = by_both.end


@settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(files=1, transactions=6), st.integers(1, 4000), st.integers(50, 600))
def test_plans_that_may_read_a_part_of_the_log_only_follow_one_another(
    tmp_path: Path, log: LogWriter, max_log_bytes: int, block_bytes: int
) -> None:
    blocks = written(tmp_path, log)
    if not blocks or not blocks[-1].boundaries.size:
        return
    last = blocks[-1].end_of_event(int(blocks[-1].boundaries[-1]))
    boundaries = {START} | {block.end_of_event(int(i)) for block in blocks for i in block.boundaries}
    blocks = [part for block in blocks for part in block.split(block_bytes)]
    limit = BatchLimit(1 << 40, max_log_bytes=max_log_bytes)
    start, seen = START, list[int]()
    while start < last:
        taken = list[Block]()

        def read(begin: Position = start, taken: list[Block] = taken) -> Iterator[Block]:
            for block in after(blocks, begin, last):
                taken.append(block)
                yield block

        plan = plan_batch(start, read(), limit, last)
        assert start < plan.end <= last
        assert plan.end in boundaries
        assert plan.is_limited == (plan.end != last)
        for count, block in enumerate(taken[:-1], 1):
            has_boundary = any(part.boundaries.size for part in taken[:count])
            assert not has_boundary or block.end.offset - start.offset < max_log_bytes, "too much was read"
        seen += events_of(after(blocks, start, plan.end))
        start = plan.end
    assert seen == events_of(after(blocks, START, last))


def test_pieces_of_a_range_are_remembered_by_their_start() -> None:
    plans, piece = RecentPlans(), BatchPlan(Position("binlog.000001", 500), is_limited=True)
    plans.remember_piece(START, piece)
    assert plans.find_piece(START, Position("binlog.000002", 4)) is piece
    assert plans.find_piece(START, Position("binlog.000001", 499)) is None, "it goes past the end that is asked for"
    assert plans.find_piece(Position("binlog.000001", 5), Position("binlog.000002", 4)) is None
    for offset in range(1000, 1064):
        plans.remember_piece(Position("binlog.000001", offset), piece)
    assert plans.find_piece(START, Position("binlog.000002", 4)) is None


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(files=1, transactions=6), st.integers(1, 2000))
def test_parts_of_a_range_are_whole_transactions(tmp_path: Path, log: LogWriter, part_bytes: int) -> None:
    blocks = written(tmp_path, log)
    if not blocks or not blocks[-1].boundaries.size:
        return
    last = blocks[-1].end_of_event(int(blocks[-1].boundaries[-1]))
    boundaries = {START} | {block.end_of_event(int(i)) for block in blocks for i in block.boundaries}
    small = [part for block in blocks for part in block.split(part_bytes // 4 + 1)]
    plan = plan_batch(START, after(small, START, last), BatchLimit(1 << 40), last, part_bytes)
    assert plan.end == last
    assert not plan.is_limited
    parts = plan.parts(START)
    assert {bound for part in parts for bound in part} <= boundaries
    seen = [position for low, high in parts for position in events_of(after(blocks, low, high))]
    assert seen == events_of(after(blocks, START, last))


def test_the_last_plans_are_remembered() -> None:
    plans, ends = RecentPlans(), [Position("binlog.000001", 100 + i) for i in range(100)]
    for end in ends:
        plans.remember(START, BatchPlan(end, [Position("binlog.000001", 50)]))
    assert plans.find(START, ends[0]) is None
    plan = plans.find(START, ends[-1])
    assert plan is not None
    assert plan.parts(START) == [(START, Position("binlog.000001", 50)), (Position("binlog.000001", 50), ends[-1])]
    assert plans.find(Position("binlog.000001", 5), ends[-1]) is None


def test_statements_count_as_rows_where_they_are_asked_for(tmp_path: Path) -> None:
    log = LogWriter().open()
    for number in range(6):
        log.statement(f"CREATE TABLE t{number} (id INT)")
    blocks = written(tmp_path, log)
    end = blocks[-1].end
    nothing = BatchLimit(1 << 20, is_counted=lambda _: False)
    assert not plan_batch(START, blocks, nothing, end).has_rows
    asked = BatchLimit(1 << 20, max_rows=2, is_counted=lambda _: False, counts_statements=True)
    plan = plan_batch(START, blocks, asked, end)
    assert plan.has_rows
    assert plan.is_limited
    assert sum(int((block.column("entry") == Entry.DDL).sum()) for block in after(blocks, START, plan.end)) == 2
