"""Which commit times can be: an event may hold any 64 bits, and a calendar ends with the year 9999."""

import numpy as np
from numpy.typing import NDArray

_AFTER_THE_LAST_US = 253_402_300_800_000_000  # 10000-01-01


def are_known(moments_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (moments_us >= 0) & (moments_us < _AFTER_THE_LAST_US)


def known_us(moment_us: int) -> int | None:
    return moment_us if 0 <= moment_us < _AFTER_THE_LAST_US else None
