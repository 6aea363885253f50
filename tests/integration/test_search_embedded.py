"""The embedded index and processes that are killed: the last commit stays whole, the lock does not stay."""

import json
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SinkUnavailableError
from penstock.search import WriteReport
from penstock.search.embedded import EmbeddedIndex
from tests.support.search_contract import CHAIR, FIELDS, LAMP, contents, table

BATCH = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with EmbeddedIndex.open(tmp_path) as index:
        index.prepare(FIELDS)
    return tmp_path


@contextmanager
def process(target: Any, folder: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """Run a function in a process of its own, which is killed at the end, whatever it does."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    child = spawn.Process(target=target, args=(folder, there))
    child.start()
    there.close()
    try:
        yield child, here
    finally:
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join(30)
        here.close()


def write_half(folder: Path, told: Connection) -> None:
    """Commit one batch, leave another uncommitted, and wait to be killed."""
    index = EmbeddedIndex.open(folder)
    index.write(table(("1", 2, CHAIR)))
    writer, reader = index._writer, index._reader
    assert writer is not None
    assert reader is not None
    writer.delete_documents_by_term("_id", "1")
    writer.add_document(reader.layout.build_document("2", 3, json.dumps(LAMP)))
    told.send("ready")
    signal.pause()


def write_for_ever(folder: Path, told: Connection) -> None:
    """Rewrite all documents again and again, each time with the next version, telling what has been written."""
    index = EmbeddedIndex.open(folder)
    first = max((version for version, _ in contents(index).values()), default=0) + 1
    for version in count(first):
        index.write(table(*((str(row), version, {"name": f"v{version}"}) for row in range(BATCH))))
        told.send(version)


def test_a_killed_writer_leaves_its_last_commit_and_no_lock(folder: Path) -> None:
    with process(write_half, folder) as (_, told):
        assert told.poll(60)
        with EmbeddedIndex.open(folder, read_only=True) as reader:
            assert contents(reader) == {"1": (2, CHAIR)}
        with pytest.raises(SinkUnavailableError, match=str(folder)):
            EmbeddedIndex.open(folder)
    with EmbeddedIndex.open(folder) as index:
        assert contents(index) == {"1": (2, CHAIR)}
        assert index.write(table(("2", 3, LAMP))) == WriteReport(written=1)


def test_a_writer_killed_at_any_moment_loses_nothing_it_has_told(folder: Path) -> None:
    last = 0
    for _ in range(4):
        with process(write_for_ever, folder) as (_, told):
            enough = last + random.randrange(3, 25)
            while last < enough:
                assert told.poll(60)
                last = told.recv()
        with EmbeddedIndex.open(folder, read_only=True) as index:
            versions = {version for version, _ in contents(index).values()}
            assert index.count() == BATCH
        assert len(versions) == 1
        assert versions.pop() >= last


def test_a_reader_in_another_process_sees_whole_batches(folder: Path) -> None:
    with process(write_for_ever, folder) as (_, told):
        assert told.poll(60)
        with EmbeddedIndex.open(folder, read_only=True) as reader:
            seen: list[int] = []
            while len(seen) < 20:
                told.recv()
                reader.refresh()
                shown = contents(reader)
                (version,) = {version for version, _ in shown.values()}
                assert set(shown) == {str(row) for row in range(BATCH)}
                assert len(reader.search(f"v{version}", BATCH)) == BATCH
                seen.append(version)
    assert seen == sorted(seen)
