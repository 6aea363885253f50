"""A process to be killed: records a made-up log in a schema history, and says what is done.

What a position of the log holds follows from the position and the tables there, so every run continues in the same log.
"""

import random
import sys
from pathlib import Path

from penstock.schema.history import SchemaHistory
from tests.support.ddl_script import beginning, changes_from
from tests.twins.faults import kill_in, say

# What a kill can fall into: a call of the system, before it, after it, or with half of its work done.
STEPS = {
    "pwrite": ("before", "half", "after"),  # a change
    "fdatasync": ("before", "after"),
    "fsync": ("before", "half", "after"),  # a new file, and its folder
    "replace": ("before", "after"),  # its name
    "unlink": ("before", "after"),  # files that nobody needs
}
SNAPSHOT_EVERY = 4


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
