"""What a full disk writes into the log: one warning when it begins, one when it ends, however often one tries."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock.meta.persistent_manager
import penstock.store.tiered_storage
from penstock.disk import WriteWarnings
from penstock.errors import MetaError
from penstock.meta import FileMetaBackend, PersistentMetaManager
from penstock.store import EventStore, FileStorage, TieredStorage
from penstock.testing import poll_until
from tests.support.store_blocks import START, blocks_of, transaction

_TRIES = 20
_DEADLINE_S = 30.0


class FullDisk:
    """Counts what is tried, and refuses it while it is full."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real, self.is_full, self.tries = real, True, 0

    def __call__(self, *arguments: Any) -> Any:
        self.tries += 1
        if self.is_full:
            raise OSError(28, os.strerror(28))
        return self._real(*arguments)


def poll(condition: Callable[[], bool]) -> bool:
    return poll_until(condition, _DEADLINE_S)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage().split(" reason")[0] for record in caplog.records]


def test_a_mixed_store_that_has_room_in_memory_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(penstock.store.tiered_storage, "_DISK_RETRY_S", 0.001)
    disk = FullDisk(os.pwritev)
    monkeypatch.setattr(os, "pwritev", disk)
    store = EventStore(TieredStorage(1 << 20, FileStorage(tmp_path, destination="shop", sync="none")), START)
    store.add_client("slow")
    store.add_client("other")
    blocks = iter(blocks_of(*[transaction(3)] * 400))
    # Over the half of the memory, so that the oldest is to move, and every put still has room there.
    while store.size_bytes <= 1 << 19:
        assert store.put(next(blocks), 0)
    assert poll(lambda: disk.tries > 0)
    for wanted in range(2, _TRIES):
        assert poll(lambda wanted=wanted: disk.tries >= wanted)
        assert store.put(next(blocks), 0)
    disk.is_full = False
    assert poll(lambda: len(lines()) > 1)
    assert lines() == [
        "blocks not moved to files destination=shop",
        "blocks moved to files again destination=shop",
    ]
    store.stop()


def test_a_file_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    disk = FullDisk(os.fdatasync)
    monkeypatch.setattr(os, "fdatasync", disk)
    storage = FileStorage(tmp_path, destination="shop", sync="interval", interval_s=0.001)
    storage._synced_s = time.time() + 1000  # the thread is to sync, not the put
    store = EventStore(storage, START)
    store.add_client("one")
    store.put(blocks_of(transaction()))
    assert poll(lambda: disk.tries >= _TRIES)
    disk.is_full = False
    assert poll(lambda: len(lines()) > 1)
    assert lines() == ["store not synced destination=shop", "store synced again destination=shop"]
    store.stop()


def test_cursors_that_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    monkeypatch.setattr(penstock.meta.persistent_manager, "_RETRY_S", 0.001)
    meta = PersistentMetaManager("shop", FileMetaBackend("shop", tmp_path), period_s=0.001)
    meta.start()
    disk = FullDisk(os.fsync)
    monkeypatch.setattr(os, "fsync", disk)
    with pytest.raises(MetaError):
        meta.subscribe(1001)  # at once, or not at all
    assert poll(lambda: disk.tries >= _TRIES)
    disk.is_full = False
    assert poll(lambda: len(lines()) > 1)
    assert lines() == ["cursors not persisted destination=shop", "cursors persisted again destination=shop"]
    meta.stop()


def test_a_disk_with_a_little_room_now_and_then_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    warnings = WriteWarnings(logging.getLogger("test"), "full", "not full", clock=lambda: now)
    for second in range(180):
        now = float(second)
        warnings.report_failure("no space")
        if second % 2:
            warnings.report_success()
    assert [record.getMessage() for record in caplog.records] == ["full reason=no space", "not full"] * 3
