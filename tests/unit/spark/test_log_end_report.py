"""Where the source's log ends, as Spark shows it: a server that is away delays nothing."""

import pickle
import threading
import time

import pytest

from penstock.errors import ServerUnavailableError
from penstock.model import Position
from penstock.spark import log_end_report
from penstock.spark.change_log import ChangeLog
from penstock.spark.log_end_report import LogEndReport
from penstock.spark.options import ReadOptions
from penstock.testing import poll_until

LONG_S = 60.0


class Source:
    """A source that answers with one position after the other, when it may."""

    def __init__(self) -> None:
        self.is_answering = threading.Event()
        self.is_away = False
        self.asked = 0

    def end(self) -> Position:
        self.asked += 1
        assert self.is_answering.wait(LONG_S)
        if self.is_away:
            raise ServerUnavailableError("no server answers")
        return Position("binlog.000001", 100 + self.asked)


def test_a_source_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_end_report, "_ASK_S", 0.0)
    source = Source()
    report = LogEndReport(source.end)
    began = time.monotonic()
    assert [report.latest() for _ in range(100)] == [None] * 100
    assert time.monotonic() - began < LONG_S / 2
    assert source.asked == 1  # the question that was asked first is still open
    source.is_answering.set()
    assert poll_until(lambda: report.latest() is not None, LONG_S)
    source.is_away = True
    asked = source.asked
    assert poll_until(lambda: report.latest() is None or source.asked > asked + 3, LONG_S)
    assert report.latest() is not None  # the last one that was known


def test_an_answer_is_shown_for_a_second_without_another_question() -> None:
    source = Source()
    source.is_answering.set()
    report = LogEndReport(source.end)
    report.record(Position("binlog.000001", 50))
    assert report.latest() == Position("binlog.000001", 50)
    assert source.asked == 0
    assert poll_until(lambda: report.latest() != Position("binlog.000001", 50), LONG_S)


def test_a_log_travels_to_executors() -> None:
    options = ReadOptions.of({"server": "127.0.0.1:11115", "table": "shop.orders"})
    assert isinstance(pickle.loads(pickle.dumps(ChangeLog(options))), ChangeLog)  # noqa: S301 - our own
