"""Ctrl-C and SIGTERM at the right moment."""

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def defer_signals() -> Generator[None, None, None]:
    """Delay signals until the block ends, so that no write is interrupted halfway."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)
