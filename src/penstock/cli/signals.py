"""Ctrl-C and SIGTERM for commands that run until they are stopped."""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn


def leave_at_once(failure: Exception | None) -> NoReturn:
    """Without waiting for threads that nobody can end."""
    if failure is not None:
        print(f"penstock: {failure}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if failure is None else 1)


def on_stop(stop: Callable[[], None]) -> None:
    """What they do once; a second time the process ends at once."""
    count = itertools.count()

    def handle(number: int, _: FrameType | None) -> None:
        if next(count):
            os._exit(128 + number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
