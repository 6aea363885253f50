"""How large a run is: as large as its figures need, or tiny, to see that the benchmark works at all.

The choice is in the environment, so that processes that a benchmark starts know it too. Figures of a tiny run mean
nothing.
"""

import os

_NAME = "PENSTOCK_BENCH_TINY"


def choose_tiny() -> None:
    os.environ[_NAME] = "1"


def is_tiny() -> bool:
    return os.environ.get(_NAME) == "1"


def scaled(size: int, tiny: int) -> int:
    """Return `size`, or `tiny` in a tiny run."""
    return min(size, tiny) if is_tiny() else size
