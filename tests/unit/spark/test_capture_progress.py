"""How long a query waits for capture: as long as that gets further, not as long as it is busy."""

from penstock.model import Position
from penstock.spark.capture_progress import CaptureProgress

WAIT_S = 10.0
LONG = [*range(0, 1000, 10)]  # positions that capture reads, one each second


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def seconds_until_stalled(offsets: list[int]) -> int | None:
    """Return after how many looks, one each second, it has stalled."""
    clock = Clock()
    progress = CaptureProgress(WAIT_S, lambda: clock.now)
    for number, offset in enumerate(offsets):
        clock()
        if progress.has_stalled(Position("binlog.000001", offset)):
            return number
    return None


def test_capture_is_waited_for_as_long_as_it_gets_further() -> None:
    assert seconds_until_stalled(LONG) is None


def test_capture_that_stands_still_is_given_up() -> None:
    assert seconds_until_stalled([100] * 100) == WAIT_S + 1
    assert seconds_until_stalled([*LONG, *[990] * 100]) == len(LONG) + WAIT_S


def test_a_transaction_that_is_read_again_after_a_restart_is_waited_for() -> None:
    assert seconds_until_stalled([*LONG, *LONG, *range(1000, 2000, 10)]) is None


def test_a_transaction_that_is_read_again_and_again_is_given_up() -> None:
    assert seconds_until_stalled(LONG * 100) == 2 * len(LONG) + WAIT_S


def test_after_a_step_further_a_transaction_may_be_read_again() -> None:
    passes = [[*range(0, 1000 + 10 * number, 10)] for number in range(5)]
    assert seconds_until_stalled([offset for positions in passes for offset in positions]) is None
