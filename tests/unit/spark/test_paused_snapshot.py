"""A query of Trigger.AvailableNow that ends while snapshots are paused says that its tables are not complete."""

import logging
from typing import Any

import pytest

from penstock.client.flight import BatchEnd
from penstock.model import Position
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import BatchPlanner

_END = Position("binlog.000001", 100)
_OPTIONS = {"server": "127.0.0.1:1", "table": "shop.t", "startingPosition": "snapshot"}


class _PausedLog:
    """Stands for the log of a server that has captured all, and whose snapshots are paused."""

    def __init__(self) -> None:
        self.is_paused = True

    @property
    def client(self) -> "_PausedLog":
        return self

    def control_snapshots(self) -> dict[str, Any]:
        return {"again": {}, "paused": self.is_paused}

    def plan_chunks(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"chunks": [], "key": ["id"], "key_description": "id INTEGER", "estimated_rows": 10}

    def resolve(self, _: str) -> Position:
        return _END

    def offset_of(self, position: Position) -> dict[str, Any]:
        return position.to_json() | {"tables": "shop.t"}

    def position_of(self, offset: dict[str, Any]) -> Position:
        return Position.from_json(offset)

    def source_end(self) -> Position:
        return _END

    def bytes_behind(self, _: Position) -> int:
        return 0

    def plan_batch(self, start: Position, *_: Any) -> BatchEnd:
        return BatchEnd(start, has_rows=False)

    def keep_cursor(self) -> None:
        pass


def _planner(*, is_paused: bool) -> BatchPlanner:
    planner = BatchPlanner(ReadOptions.of(_OPTIONS))
    planner.log = _PausedLog()  # type: ignore[assignment]
    planner.log.is_paused = is_paused
    return planner


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "paused since it was asked"])
def test_a_query_that_ends_says_it_in_its_log_and_its_offset_once(
    caplog: pytest.LogCaptureFixture, is_known: bool
) -> None:
    planner = _planner(is_paused=is_known)
    planner.stop_at_present_end()
    start = planner.initial()
    with caplog.at_level(logging.WARNING):
        end = planner.next(start)
        assert end != start
        assert end["snapshot"]["shop.t"]["paused"] is True
        assert planner.next(end) == end, "then the query ends"
    (record,) = caplog.records
    assert "query ends with an incomplete snapshot destination=default tables=shop.t" in record.getMessage()
    assert "penstock snapshot resume" in record.getMessage()


def test_a_query_that_runs_on_waits_without_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    planner = _planner(is_paused=True)
    start = planner.initial()
    assert planner.next(start) == start
    assert not caplog.records
