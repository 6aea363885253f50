"""A process to be killed: records a made-up log in a schema history, and says what is done.

What a place of the log holds follows from the place and the tables there, so every run goes on in the same log.
"""

import os
import random
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.schema.history import SchemaHistory
from tests.unit.schema.ddl_script import beginning, changes_from

# What a kill can fall into: a call of the system, before it, after it, or with half of its work done.
STEPS = {
    "pwrite": ("before", "half", "after"),  # a change
    "fdatasync": ("before", "after"),
    "fsync": ("before", "half", "after"),  # a new file, and its folder
    "replace": ("before", "after"),  # its name
    "unlink": ("before", "after"),  # files that nobody needs
}
SNAPSHOT_EVERY = 4


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def kill_in(step: str, when: str, count: int) -> None:
    """At the `count`-th call."""
    real: Callable[..., Any] = getattr(os, step)
    left = [count]

    def faulty(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return real(*args, **options)
        if when == "half" and step == "pwrite":
            real(args[0], args[1][: len(args[1]) // 2], args[2])
        elif when == "half" and stat.S_ISREG(os.fstat(args[0]).st_mode):
            os.truncate(args[0], os.fstat(args[0]).st_size // 2)  # what a flush that was cut off leaves
        elif when == "after":
            with suppress(OSError):
                real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(os, step, faulty)


def main(folder: Path, seed: int, fault: str) -> None:
    chance = random.Random(seed)
    with SchemaHistory(folder, beginning, snapshot_every=SNAPSHOT_EVERY) as history:
        say("ready", history.last)
        if fault:
            step, when, count = fault.split(":")
            kill_in(step, when, int(count))
        position = history.last
        for change in changes_from(history.catalogue, position):
            history.record(change)
            say("done", history.last)
            if chance.random() < 0.1:
                history.compact(history.last if chance.random() < 0.5 else position)
                position = history.last


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
