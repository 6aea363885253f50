"""Commit times of events: which values are valid times, and whether a block has reached a time.

An event may hold any 64 bits as its time, but the calendar of dates ends with the year 9999.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.model.start_point import Moment

_AFTER_THE_LAST_US = 253_402_300_800_000_000  # 10000-01-01


def are_valid_times(moments_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the values, in microseconds since 1970, that lie between 1970 and the year 9999. Others are not
    times: a damaged event may hold any number."""
    return (moments_us >= 0) & (moments_us < _AFTER_THE_LAST_US)


def valid_time_or_none(moment_us: int) -> int | None:
    """Return the value if it lies between 1970 and the year 9999, else None."""
    return moment_us if 0 <= moment_us < _AFTER_THE_LAST_US else None


def has_commit_since(block: Block, moment: Moment) -> bool:
    """Return whether the block has an event of a transaction that was committed at `moment` or later."""
    return bool((block.column("commit_us") >= moment.us).any())
