import logging

import pytest

from penstock.capture.state import InstanceState, StateTracker

OVER = frozenset({InstanceState.STOPPED, InstanceState.FAILED})


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_state_has_a_reason_and_its_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    book = StateTracker("shop", clock=clock, now=clock)
    with caplog.at_level(logging.INFO):
        for seconds, state, reason in (
            (0, InstanceState.STARTING, ""),
            (1, InstanceState.FOLLOWING, ""),
            (5, InstanceState.BLOCKED, "the store is full until 1 acks"),
            (2, InstanceState.BLOCKED, "the store is full until 2 acks"),
            (3, InstanceState.FOLLOWING, ""),
        ):
            clock.now += seconds
            assert book.enter(state, reason)
    clock.now += 4
    assert book.current.state is InstanceState.FOLLOWING
    assert book.seconds[InstanceState.BLOCKED] == 5
    assert book.seconds[InstanceState.FOLLOWING] == 9
    assert [step.reason for step in book.history if step.reason] == [
        "the store is full until 1 acks",
        "the store is full until 2 acks",
    ]
    lines = [record.getMessage() for record in caplog.records]
    changed = "instance state changed destination=shop state=blocked before=following"
    assert lines[2] == f"{changed} reason=the store is full until 1 acks"
    assert len(lines) == 4, "another reason alone is no news"


def test_the_same_again_is_no_step() -> None:
    clock = Clock()
    book = StateTracker("shop", clock=clock, now=clock)
    for _ in range(3):
        book.enter(InstanceState.FOLLOWING)
        clock.now += 1
    assert len(book.history) == 2
    assert book.seconds[InstanceState.FOLLOWING] == 3


def test_what_is_over_stays_so() -> None:
    book = StateTracker("shop")
    book.enter(InstanceState.FAILED, "gone")
    assert not book.enter(InstanceState.FOLLOWING, unless=OVER)
    assert book.current.reason == "gone"
    assert book.enter(InstanceState.STARTING)
