"""kill -9 at random moments and inside of every step of a write: what was recorded is there, and nothing else."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.model import Position
from penstock.schema.history import SchemaHistory
from tests.support.ddl_script import START, beginning, changes_from
from tests.support.history_writer import SNAPSHOT_EVERY, STEPS

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "12"))  # a long run has 500
FAULTS = [(step, when) for step, moments in STEPS.items() for when in moments]
_MAX_LINES, _MAX_POSITIONS = 60, 40


def killed(folder: Path, seed: int) -> tuple[Position, Position]:
    """Run the writer until it dies, by its own hand inside of a step or by ours: where it began, how far it got."""
    chance = random.Random(seed)
    step, when = FAULTS[seed % len(FAULTS)]
    fault = f"{step}:{when}:{chance.randrange(1, 12)}" if seed % 4 else ""
    command = [sys.executable, "-m", "tests.support.history_writer", str(folder), str(seed), fault]
    positions: list[Position] = []
    lines = 20 * _MAX_LINES if fault else chance.randrange(2, _MAX_LINES)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as writer:
        for number, line in enumerate(writer.stdout or ()):
            positions.append(Position.parse(line.split()[1]))
            if number == lines:
                os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        assert writer.returncode == -signal.SIGKILL, "the writer ended by itself"
    return positions[0], positions[-1]


class Log:
    """The tables after each change of the log that changed any, as far as it was asked for."""

    def __init__(self) -> None:
        after, self._catalogue = beginning()
        self.states = {after: self._catalogue}
        self._changes = changes_from(self._catalogue, after)
        self._next = next(self._changes)

    def go_to(self, end: Position) -> None:
        while self._next.position <= end:
            change, before = self._next, self._catalogue
            self._catalogue = before.apply(change.text, change.database, change.session).catalogue
            if self._catalogue is not before:
                self.states[change.position] = self._catalogue
            self._next = next(self._changes)


@pytest.mark.slow
@pytest.mark.timeout(120 + 3 * ROUNDS)
def test_nothing_is_lost_and_nothing_is_made_up(tmp_path: Path) -> None:
    reached, log = START, Log()
    for seed in range(ROUNDS):
        begin, done = killed(tmp_path, seed)
        assert begin >= reached, f"seed {seed}: what was recorded is gone"
        with SchemaHistory(tmp_path, beginning, snapshot_every=SNAPSHOT_EVERY) as history:
            assert history.last >= done, f"seed {seed}: what was recorded is gone"
            reached = history.last
            log.go_to(reached)
            assert reached in log.states, f"seed {seed}: a change that is none"
            first = history.first
            known = [position for position in log.states if first <= position][-_MAX_POSITIONS:]
            for position in known:
                assert history.catalogue_at(position) == log.states[position], f"seed {seed} at {position}"
