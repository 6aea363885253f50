"""The first load of an index, and what is said of an index that was loaded before."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.document.write import DocumentTotals
from penstock.errors import ConfigurationError, SinkUnavailableError
from penstock.model import Position
from penstock.spark.sync_run import SyncRun
from penstock.spark.sync_terms import SyncTerm

START = Position("binlog.000001", 4)
GRAPH: Any = SimpleNamespace(root=SimpleNamespace(key=(), table=SimpleNamespace(name="d.product")))
PLAN: Any = SimpleNamespace(spec=SimpleNamespace(index="product"), spec_hash="hash")
CLIENT: Any = SimpleNamespace(file_identity=lambda _: "1-1700000000")


class LoadedIndex:
    """An index that remembers its load, and has no documents."""

    def __init__(self, failures: int = 0, documents: int = 0) -> None:
        self.load_id, self._failures, self._documents = "", failures, documents

    def refresh(self) -> None:
        if self._failures:
            self._failures -= 1
            raise SinkUnavailableError("it restarts")

    def begin_load(self) -> None: ...

    def end_load(self) -> None:
        self.refresh()

    def count(self) -> int:
        self.refresh()
        return self._documents

    def remember_load(self, load_id: str) -> None:
        self.load_id = load_id

    def read_load_id(self) -> str:
        return self.load_id


class CountedLoads:
    def __init__(self) -> None:
        self.loads = 0
        self.graph = GRAPH

    def load_all(self, *_: Any, **__: Any) -> DocumentTotals:
        self.loads += 1
        return DocumentTotals()


@pytest.fixture(autouse=True)
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.sync_run.estimate_documents", lambda *_: 0)
    monkeypatch.setattr("penstock.spark.sync_run.remember_spec", lambda *_: None)


def open_run(folder: Path) -> SyncRun:
    settings = SimpleNamespace(checkpoint=folder, source=None)
    job: Any = SimpleNamespace(settings=settings, plans=[])
    output: Any = SimpleNamespace(tell=lambda _: None)
    return SyncRun(job, SyncTerm(folder, threading.Event()), output)


def test_an_index_that_was_empty_when_it_was_loaded_is_followed_after_a_restart(tmp_path: Path) -> None:
    index, sync = LoadedIndex(), CountedLoads()
    for _ in range(3):
        open_run(tmp_path / "checkpoint")._load_once(PLAN, sync, index, CLIENT, START)  # type: ignore[arg-type]
    assert sync.loads == 1


def test_an_index_that_is_away_when_its_load_ends_is_waited_for(tmp_path: Path) -> None:
    index, sync = LoadedIndex(failures=1), CountedLoads()
    run = open_run(tmp_path / "checkpoint")
    run._load_once(PLAN, sync, index, CLIENT, START)  # type: ignore[arg-type]
    assert index.load_id == run._state.load_id("product") != ""
    assert sync.loads == 1


def test_an_index_that_was_deleted_and_made_again_is_refused_each_time(tmp_path: Path) -> None:
    sync = CountedLoads()
    open_run(tmp_path / "checkpoint")._load_once(PLAN, sync, LoadedIndex(), CLIENT, START)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"'product' is not the one that .*\.begin\.json says was loaded"):
            open_run(tmp_path / "checkpoint")._load_once(PLAN, sync, LoadedIndex(), CLIENT, START)  # type: ignore[arg-type]
    assert sync.loads == 1


def test_an_index_that_is_away_when_it_is_to_be_empty_is_waited_for(tmp_path: Path) -> None:
    run = open_run(tmp_path / "checkpoint")
    assert run._check_new(PLAN, LoadedIndex(failures=1))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="index 'product' holds 3 documents"):
        run._check_new(PLAN, LoadedIndex(failures=1, documents=3))  # type: ignore[arg-type]
    run._stopped.set()
    assert not run._check_new(PLAN, LoadedIndex())  # type: ignore[arg-type]
