"""Counting over time."""

import numpy as np

from penstock.inspect.statistics import Timeline


def test_the_timeline_coarsens_and_loses_nothing() -> None:
    line = Timeline()
    seconds = np.arange(1_700_000_000, 1_700_020_000)
    for part in np.split(seconds, 20):
        line.add(part, np.full(part.size, 2), np.ones(part.size, np.int64), np.ones(part.size, np.int64))
    assert line.step_s > 1
    width, bars = line.bars(24)
    assert len(bars) <= 26
    assert sum(rows for rows, _, _ in bars.values()) == 40_000
    assert all(start % width == 0 for start in bars)
    assert np.diff(list(bars)).tolist() == [width] * (len(bars) - 1)


def test_an_empty_timeline_has_no_bars() -> None:
    assert Timeline().bars(10) == (1, {})


def test_one_second_is_one_bar() -> None:
    line = Timeline()
    one = np.ones(1, np.int64)
    line.add(np.array([1_700_000_001]), one, one, one)
    assert line.bars(10) == (1, {1_700_000_001: [1, 1, 1]})
