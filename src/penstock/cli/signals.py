"""Ctrl-C and SIGTERM for commands that run until they are stopped."""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn


def exit_without_threads(failure: Exception | None) -> NoReturn:
    """End the process without waiting for threads that cannot be stopped."""
    if failure is not None:
        print(f"penstock: {failure}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if failure is None else 1)


def handle_stop_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first Ctrl-C or SIGTERM; a second one ends the process at once."""
    count = itertools.count()

    def handle(number: int, _: FrameType | None) -> None:
        """Stop, or end the process at the second signal."""
        if next(count):
            os._exit(128 + number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
