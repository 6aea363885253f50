"""A process that dies by its own hand, inside of a step of a write, and says before that what it has done."""

import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def say(*words: object) -> None:
    """In one piece, whichever thread it is."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def kill_in(step: str, when: str, count: int) -> None:
    """At the `count`-th call of this function of the system: before it, after it, or with half of its work done."""
    real: Callable[..., Any] = getattr(os, step)
    write, left = os.pwrite, [count]

    def faulty(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return real(*args, **options)
        if when == "half" and step.startswith("pwrite"):
            raw = args[1] if step == "pwrite" else b"".join(args[1])
            write(args[0], raw[: len(raw) // 2], args[2])
        elif when == "half" and stat.S_ISREG(os.fstat(args[0]).st_mode):
            os.truncate(args[0], os.fstat(args[0]).st_size // 2)  # what a flush that was cut off leaves
        elif when == "after":
            with suppress(OSError):
                real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(os, step, faulty)
