"""What a query says to the server while it plans over changes of other tables: nothing of the coming batch is done."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.client.flight import BatchEnd
from penstock.model import Position
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import BatchPlanner

_START = Position("binlog.000001", 1000)
_MIB = 1 << 20


def at(offset: int) -> Position:
    return replace(_START, offset=offset)


class _ScriptedLog:
    """Stands for a server that answers with these plans, and then with nothing new."""

    def __init__(self, *plans: BatchEnd) -> None:
        self._plans = list(plans)
        self.asked: list[tuple[int, int]] = []  # where a plan begins, and before what all is done
        self.skipped: list[int] = []  # how many bytes of other tables the server may look through for each plan

    def plan_batch(self, start: Position, _: int, acked: Position, skip_bytes: int) -> BatchEnd:
        self.asked.append((start.offset, acked.offset))
        self.skipped.append(skip_bytes)
        return self._plans.pop(0) if self._plans else BatchEnd(start, has_rows=False)

    def offset_of(self, position: Position) -> dict[str, Any]:
        return position.to_json()

    def position_of(self, offset: dict[str, Any]) -> Position:
        return Position.from_json(offset)

    def keep_cursor(self) -> None:
        pass


def planner_over(log: _ScriptedLog) -> BatchPlanner:
    options = {"server": "127.0.0.1:1", "table": "shop.t", "startingPosition": str(_START), "pollMs": "5000"}
    planner = BatchPlanner(ReadOptions.of(options))
    planner.log = log  # type: ignore[assignment]
    return planner


def test_nothing_of_a_batch_is_acked_while_it_is_planned_over_changes_of_other_tables() -> None:
    log = _ScriptedLog(BatchEnd(at(2000), False), BatchEnd(at(3000), False), BatchEnd(at(4000), True))
    planner = planner_over(log)
    assert planner.next(_START.to_json()) == at(4000).to_json()
    assert log.asked == [(1000, 1000), (2000, 1000), (3000, 1000)]
    assert log.skipped == [16 * _MIB, 16 * _MIB - 1000, 16 * _MIB - 2000], "counted from where the batch begins"
    planner.next(at(4000).to_json())
    assert log.asked[-1] == (4000, 4000), "Spark has committed the batch when it plans the next one"


def test_planning_resumes_behind_what_had_no_rows_and_still_acks_nothing_of_it() -> None:
    log = _ScriptedLog(BatchEnd(at(2000), False))
    planner = planner_over(log)
    for _ in range(2):
        assert planner.next(_START.to_json()) == _START.to_json()
    assert log.asked == [(1000, 1000), (2000, 1000), (2000, 1000)]


@pytest.mark.parametrize("end", [2000, 3000], ids=["nothing new", "some more"])
def test_a_full_store_makes_a_batch_without_rows(end: int) -> None:
    """Capture waits for what the query has not committed: it would wait for ever."""
    log = _ScriptedLog(BatchEnd(at(2000), False), BatchEnd(at(end), False, is_store_full=True))
    assert planner_over(log).next(_START.to_json()) == at(end).to_json()


def test_a_store_that_others_fill_makes_no_batch() -> None:
    log = _ScriptedLog(BatchEnd(_START, False, is_store_full=True))
    assert planner_over(log).next(_START.to_json()) == _START.to_json()


def test_much_of_other_tables_makes_a_batch_without_rows() -> None:
    ends = [at(1000 + 16 * _MIB), at(1001 + 16 * _MIB)]
    log = _ScriptedLog(*(BatchEnd(end, False) for end in ends))
    assert planner_over(log).next(_START.to_json()) == ends[-1].to_json()
