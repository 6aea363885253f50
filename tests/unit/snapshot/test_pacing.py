"""Readers wait so that together they are no faster than allowed."""

import threading

from penstock.snapshot.pacing import Pacer


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_rows_are_spread_over_the_time_that_they_may_take() -> None:
    clock = _Clock()
    pacer = Pacer(1000, clock=lambda: clock.now, sleep=clock.sleep)
    for _ in range(11):
        pacer.wait_for(500)
    assert clock.now == 5.0


def test_a_pause_is_not_made_up_for() -> None:
    clock = _Clock()
    pacer = Pacer(1000, clock=lambda: clock.now, sleep=clock.sleep)
    pacer.wait_for(1000)
    clock.now = 100.0
    pacer.wait_for(1000)
    pacer.wait_for(1000)
    assert clock.now == 101.0


def test_a_paused_reader_waits_until_it_is_resumed() -> None:
    pacer = Pacer()
    pacer.pause()
    passed = threading.Event()
    thread = threading.Thread(target=lambda: (pacer.wait_for(1), passed.set()))
    thread.start()
    assert not passed.wait(0.1)
    pacer.resume()
    thread.join(10)
    assert passed.is_set()


def test_nobody_waits_beyond_a_deadline() -> None:
    clock = _Clock()
    pacer = Pacer(1000, clock=lambda: clock.now, sleep=clock.sleep)
    assert pacer.wait_for(5000, deadline=3.0)
    assert not pacer.wait_for(1, deadline=3.0)
    assert clock.now == 3.0
    pacer.pause()
    assert not pacer.wait_for(1, deadline=3.0)
