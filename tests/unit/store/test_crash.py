"""kill -9 at random moments and inside of every step of a write: nothing is lost, nothing acked is redelivered, files
and meta.dat are whole."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.meta import FileMetaBackend
from penstock.store import BatchSize, EventStore, FileStorage, Start
from tests.support.crash_writer import CLIENTS, SEGMENT_BYTES, START, STEPS, transaction_at
from tests.support.store_model import are_bytes_right

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "10"))  # of each kind; a long run has 500
FAULTS = [(step, when) for step, moments in STEPS.items() for when in moments]
_MAX_LINES = 150


@dataclass(slots=True)
class Run:
    """What a process said before it died."""

    put: int = 0
    begin: int = 0  # where capture resumed
    got: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: {client: [] for client in CLIENTS})
    acked: dict[int, int] = field(default_factory=dict[int, int])
    kept: dict[int, int] = field(default_factory=dict[int, int])
    is_ready: bool = False

    def hear(self, words: list[str]) -> None:
        match words:
            case ["ready", offset]:
                self.begin, self.is_ready = int(offset), True
            case ["put", offset]:
                self.put = int(offset)
            case ["got", client, start, end]:
                self.got[int(client)].append((int(start), int(end)))
            case ["rolled", client]:
                self.got[int(client)].pop()
            case ["ack", client, offset]:
                self.acked[int(client)] = int(offset)
            case ["kept", client, offset]:
                self.kept[int(client)] = int(offset)
            case _:
                pass


def killed(folder: Path, kind: str, seed: int) -> Run:
    """Run the writer until it dies: by its own hand inside of a step, or by ours."""
    chance = random.Random(seed)
    step, when = FAULTS[(seed - seed // 4) % len(FAULTS)]
    fault = f"{step}:{when}:{chance.randrange(1, 16)}" if seed % 4 else ""
    lines, run = chance.randrange(3, _MAX_LINES), Run()
    if fault:
        lines = 4 * _MAX_LINES  # the step may not come often
    command = [sys.executable, "-m", "tests.support.crash_writer", str(folder), kind, str(seed), fault]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as writer:
        for line in writer.stdout or ():
            run.hear(line.split())
            lines -= run.is_ready  # what it keeps when it starts does not count
            if not lines:
                os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        assert writer.returncode == -signal.SIGKILL, "the writer ended by itself"
    assert run.is_ready
    return run


def cursors_in(folder: Path) -> dict[int, int]:
    """Of a meta.dat that must be whole."""
    cursors = {record.client_id: record.cursor for record in FileMetaBackend("d", folder).read_records()}
    return {client: cursor.position.offset for client, cursor in cursors.items() if cursor is not None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "mixed", "later"])
def test_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    """`later`: cursors are kept every period, so that a client gets again what it acked after the last time."""
    cursors: dict[int, int] = dict.fromkeys(CLIENTS, START.offset)
    put, first = START.offset, {"file": 0, "mixed": 100, "later": 200}[kind]
    for seed in range(first, first + ROUNDS):
        run = killed(tmp_path, kind, seed)
        assert run.begin in BOUNDARIES
        if kind != "mixed":
            assert run.begin >= put, "what was put is gone"
        for client, ranges in run.got.items():
            # Each resumes at its cursor, neither before nor after it, and without a gap.
            starts = [start for start, _ in ranges]
            assert starts[:1] in ([], [cursors[client]]), f"seed {seed}: client {client} did not resume where it was"
            assert starts[1:] == [end for _, end in ranges][: len(starts) - 1]
        after = cursors_in(tmp_path)
        assert set(after) == set(CLIENTS), "a cursor is gone"
        for client in CLIENTS:
            assert after[client] in BOUNDARIES
            done = run.kept if kind == "later" else run.acked
            assert after[client] >= max(cursors[client], done.get(client, 0)), f"seed {seed}: an ack was lost"
            ends = [end for _, end in run.got[client]]
            assert after[client] <= max([cursors[client], *ends]), f"seed {seed}: acked before it was got"
        cursors, put = after, max(put, run.put)
        check_store(tmp_path, kind, put, min(cursors.values()))


def check_store(folder: Path, kind: str, put: int, lowest: int) -> None:
    """All that clients need is there, once and in order, byte for byte."""
    storage = FileStorage(folder / "store", segment_bytes=SEGMENT_BYTES, sync="none")
    store = EventStore(storage, START)
    if kind != "mixed":
        assert store.latest.offset >= put, "what was put is gone"
        assert store.first.offset <= lowest, "what a client has not acked is gone"
    store.add_client("reader", Start.stored())
    at = None
    while batch := store.get("reader", BatchSize(7)):
        for block in batch.blocks:
            assert at is None or block.start.offset == at
            assert are_bytes_right(block)
            at = block.end.offset
    storage.close()


def boundaries(count: int) -> set[int]:
    at, offsets = START.offset, {START.offset}
    for _ in range(count):
        at += sum(size for size, _ in transaction_at(at))
        offsets.add(at)
    return offsets


BOUNDARIES = boundaries(60 * max(ROUNDS, 20))
