"""The delays between attempts, with a clock and chance of the test."""

import pytest

from penstock.backoff import Backoff, RetryTimer


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(1, 60)
    assert [backoff.delay_s(failures) for failures in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff.delay_s(10_000) == 60


def test_the_factor_can_be_another() -> None:
    assert [Backoff(0.5, 40, factor=3).delay_s(failures) for failures in range(1, 6)] == [0.5, 1.5, 4.5, 13.5, 40]


@pytest.mark.parametrize(("chance", "delay_s"), [(0.0, 2.0), (0.5, 4.0), (1.0, 6.0)])
def test_a_spread_lies_around_the_delay(chance: float, delay_s: float) -> None:
    assert Backoff(1, 60, spread=0.5, random=lambda: chance).delay_s(3) == delay_s


def test_attempts_end_with_their_time() -> None:
    now = 100.0
    timer = RetryTimer(Backoff(1, 60), clock=lambda: now)
    assert timer.next_delay_s(10) == 1
    now = 101.0
    assert timer.next_delay_s(10) == 2
    now = 107.0
    assert timer.next_delay_s(10) is None
    assert timer.next_delay_s(60) == 8


def test_without_time_there_is_no_second_attempt() -> None:
    assert RetryTimer(Backoff(0.1, 2), clock=lambda: 5.0).next_delay_s(0) is None


def test_the_first_failure_may_be_followed_at_once() -> None:
    timer = RetryTimer(Backoff(0.05, 2), is_first_at_once=True, clock=lambda: 5.0)
    assert [timer.next_delay_s(60) for _ in range(3)] == [0, 0.05, 0.1]
