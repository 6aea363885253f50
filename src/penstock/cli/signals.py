"""Ctrl-C and SIGTERM for commands that run until they are stopped."""

import signal
from collections.abc import Callable
from types import FrameType


def on_stop(stop: Callable[[], None]) -> None:
    def handle(_: int, __: FrameType | None) -> None:
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
