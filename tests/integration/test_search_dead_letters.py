"""Dead letters and a process that is killed: what was added before is there."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from penstock.search import Rejection
from penstock.search.dead_letters import DeadLetters

ROUNDS = 5


def add_for_ever(path: Path, told: Connection) -> None:
    """Add one letter after the other, and tell the number of each when it was added."""
    with DeadLetters.open(path) as letters:
        number = letters.count()
        while True:
            number += 1
            letters.add("product", [Rejection(str(number), "bad", number, None, "{}")], f"at {number}")
            told.send(number)


def test_what_was_added_before_a_kill_is_there(tmp_path: Path) -> None:
    path, spawn = tmp_path / "letters.sqlite", multiprocessing.get_context("spawn")
    with DeadLetters.open(path) as beside:  # a reader that stays open, as `penstock dlq` may
        for _ in range(ROUNDS):
            here, there = spawn.Pipe(duplex=False)
            child = spawn.Process(target=add_for_ever, args=(path, there))
            child.start()
            there.close()
            last = 0
            try:
                for _ in range(20):
                    assert here.poll(60)
                    last = here.recv()
            finally:
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
                child.join(30)
            while here.poll():
                try:
                    last = here.recv()
                except (EOFError, OSError):
                    break
            here.close()
            assert beside.count() >= last
            with DeadLetters.open(path) as letters:
                page = letters.read_page(limit=10**6)
            assert [letter.id for letter in page] == [str(number) for number in range(1, len(page) + 1)]
            assert len(page) in (last, last + 1)
            assert all(letter.position == f"at {letter.id}" for letter in page)
