"""Ctrl-C and SIGTERM at the right moment: one rule for all rooms."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def defer_signals() -> Generator[None]:
    """Delay SIGINT and SIGTERM until the block ends, so that nothing in it is interrupted halfway.

    Afterwards the handlers are those from before, whatever was set inside. In a thread that gets no signals it does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    received: list[int] = []
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in received:
        signal.raise_signal(number)
