"""kill -9 at random moments: nothing that was put or acked is lost, and the files are whole."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.meta import FileKeeper, KeptMeta
from penstock.store import BatchSize, EventStore, FileShelf, Start
from tests.unit.store.crash_writer import CLIENTS, START
from tests.unit.store.test_store_machine import are_bytes_right

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "10"))  # of each kind; a long run takes 500


def killed(folder: Path, kind: str, seed: int) -> tuple[int, dict[int, int]]:
    """Run the writer for a moment; gives the end of the last put and of the last acks that it spoke of."""
    lines = random.Random(seed).randrange(1, 120)
    command = [sys.executable, "-m", "tests.unit.store.crash_writer", str(folder), kind, str(seed)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as writer:
        put, acks = 0, dict[int, int]()
        for number, line in enumerate(writer.stdout or ()):
            match line.split():
                case ["put", offset]:
                    put = int(offset)
                case ["ack", client, offset]:
                    acks[int(client)] = int(offset)
                case _:
                    pass
            if number == lines:
                os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        assert writer.returncode == -signal.SIGKILL, "the writer ended by itself"
    return put, acks


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "mixed"])
def test_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    acked = dict.fromkeys(CLIENTS, 0)
    for seed in range(ROUNDS):
        put, acks = killed(tmp_path, kind, seed)
        acked |= acks
        with KeptMeta("d", FileKeeper("d", tmp_path), period_s=3600) as meta:
            cursors = {client: cursor.position for client in CLIENTS if (cursor := meta.cursor(client))}
        assert all(cursors[client].offset >= offset for client, offset in acked.items() if offset)
        shelf = FileShelf(tmp_path / "store", segment_bytes=4000, sync="none")
        store = EventStore(shelf, START)
        if kind == "file":
            assert store.latest.offset >= put, "what was put is gone"
        # From the lowest cursor that the store has, all is there, once and in order, byte for byte.
        lowest = min(cursors.values(), default=START)
        first = Start.at(lowest) if store.first <= lowest <= store.latest else Start.first()
        store.add_client("reader", first)
        if kind == "file" and cursors and len(cursors) == len(CLIENTS):
            assert store.first <= lowest, "what a client has not acked is gone"
        at = None
        while batch := store.get("reader", BatchSize(7)):
            for block in batch.blocks:
                assert at is None or block.start.offset == at
                assert are_bytes_right(block)
                at = block.end.offset
        shelf.close()
