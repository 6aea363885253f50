"""The embedded index beyond the contract: one writer, many readers, tombstones, and what survives."""

import time
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigurationError, SinkError, SinkUnavailableError
from penstock.search import FieldKind, IndexLayout, WriteReport
from penstock.search.delivery import RetryClock
from penstock.search.embedded import EmbeddedIndex
from penstock.spark.sync_progress import SyncProgress
from tests.support.search_contract import CHAIR, FIELDS, LAMP, contents, search_ids, table


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep/index"


def prepared(folder: Path, **settings: Any) -> EmbeddedIndex:
    index = EmbeddedIndex.open(folder, **settings)
    index.prepare(FIELDS)
    return index


def test_a_write_is_searchable_when_it_returns(folder: Path) -> None:
    with prepared(folder) as index:
        index.write(table(("1", 1, LAMP)))
        assert search_ids(index, "tele") == {"1"}


def test_everything_survives_reopening(folder: Path) -> None:
    with prepared(folder) as index:
        index.write(table(("1", 5, LAMP), ("2", 5, CHAIR)))
        index.write(table(("2", 6, None)))
    with EmbeddedIndex.open(folder) as index:
        assert contents(index) == {"1": (5, LAMP)}
        assert search_ids(index, "tele stock:7") == {"1"}
        assert index.write(table(("1", 4, CHAIR), ("2", 5, CHAIR))) == WriteReport(stale=2)


def test_a_second_writer_is_refused_with_the_folder(folder: Path) -> None:
    with prepared(folder), pytest.raises(SinkUnavailableError, match=rf"{folder} is being written by somebody else"):
        EmbeddedIndex.open(folder)
    EmbeddedIndex.open(folder).close()


def test_a_reader_sees_commits_after_refresh(folder: Path) -> None:
    with prepared(folder) as writer, EmbeddedIndex.open(folder, read_only=True) as reader:
        writer.write(table(("1", 1, LAMP)))
        assert reader.count() == 0
        reader.refresh()
        assert reader.count() == 1
        assert search_ids(reader, "tele") == {"1"}
        reader.prepare(FIELDS)
        with pytest.raises(SinkError, match="reading only"):
            reader.write(table(("2", 1, LAMP)))


def test_a_reader_keeps_its_view_while_the_writer_merges(folder: Path) -> None:
    with prepared(folder) as writer:
        writer.write(table(("1", 0, LAMP)))
        with EmbeddedIndex.open(folder, read_only=True) as reader:
            for version in range(1, 20):
                writer.write(table(("1", version, CHAIR), (f"x{version}", 0, CHAIR)))
            assert contents(reader) == {"1": (0, LAMP)}
            reader.refresh()
            assert reader.count() == 20


class FailingCommit:
    """A writer whose disk is full at the moment of the commit."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def commit(self) -> None:
        raise ValueError("No space left on device")


def test_a_failed_write_leaves_nothing_behind(folder: Path) -> None:
    with prepared(folder) as index:
        index.write(table(("1", 1, LAMP)))
        whole = index._writer
        index._writer = FailingCommit(whole)
        with pytest.raises(SinkError, match=rf"{folder} did not take a write: No space"):
            index.write(table(("1", 2, CHAIR), ("2", 1, CHAIR), ("3", 1, None)))
        index._writer = whole
        index.write(table(("4", 1, CHAIR)))
        assert contents(index) == {"1": (1, LAMP), "4": (1, CHAIR)}
        assert index.write(table(("1", 2, CHAIR), ("2", 1, CHAIR))) == WriteReport(written=2)


def test_tombstones_are_purged_after_their_retention(folder: Path) -> None:
    clock = Clock()
    with prepared(folder, clock=clock, tombstone_retention_s=3600.0) as index:
        index.write(table(("old", 5, None), ("kept", 5, LAMP)))
        clock.now += 3000
        index.write(table(("young", 5, None)))
        assert index.write(table(("old", 4, LAMP))) == WriteReport(stale=1)
        clock.now += 700
        assert index.write(table()) == WriteReport()
        reader = index._reader
        assert reader is not None
        assert reader.count_tombstones_until(int(clock.now)) == 1
        assert index.write(table(("old", 4, LAMP), ("young", 4, LAMP))) == WriteReport(written=1, stale=1)
        assert set(contents(index)) == {"kept", "old"}


@pytest.mark.parametrize("jump_s", [2 * 86_400.0, -2 * 86_400.0])
def test_tombstones_outlast_a_clock_that_is_set(folder: Path, jump_s: float) -> None:
    """Forward and back again, or back and forward again: what was deleted an hour ago is remembered in any case."""
    for step, key in ((0.0, "first"), (jump_s, "second"), (-jump_s, "third")):
        clock = Clock()
        clock.now += step
        with prepared(folder, clock=clock) as index:
            index.write(table((key, 5, None)))
            clock.now += 3600
            index.write(table())
    with prepared(folder) as index:
        late = table(*((key, 4, LAMP) for key in ("first", "second", "third")))
        assert index.write(late) == WriteReport(stale=3)


def test_no_decision_of_an_index_depends_on_the_date() -> None:
    assert signature(EmbeddedIndex.open).parameters["clock"].default is time.monotonic
    assert RetryClock().clock is time.monotonic
    assert signature(SyncProgress).parameters["clock"].default is time.monotonic


def test_purging_waits_for_its_turn(folder: Path) -> None:
    clock = Clock()
    start = clock.now
    left: dict[int, int] = {}
    with prepared(folder, clock=clock, tombstone_retention_s=3600.0) as index:
        reader = index._reader
        assert reader is not None
        for after in (0, 50, 3600, 3700, 3750):
            clock.now = start + after
            index.write(table((f"deleted at {after}", 5, None)))
            left[after] = reader.count_tombstones_until(int(clock.now))
    assert left == {0: 1, 50: 2, 3600: 2, 3700: 3, 3750: 3}


def test_what_is_not_there_is_explained(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"no index in {folder}"):
        EmbeddedIndex.open(folder, read_only=True)
    with EmbeddedIndex.open(folder) as index:
        with pytest.raises(SinkError, match="prepare it first"):
            index.write(table(("1", 1, LAMP)))
        with pytest.raises(SinkError, match="prepare it first"):
            index.search("x")
        index.prepare(FIELDS)
    for call in (index.count, lambda: index.write(table(("1", 1, LAMP))), lambda: index.prepare(FIELDS)):
        with pytest.raises(SinkError, match="closed"):
            call()
    index.close()


@pytest.mark.parametrize(
    "content", [None, "{", "[]", '{"format":1}', '{"format":1,"fields":{"a":"colour"}}', '{"format":9}']
)
def test_a_folder_of_somebody_else_is_refused(folder: Path, content: str | None) -> None:
    prepared(folder).close()
    file = folder / "penstock.json"
    file.unlink()
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=str(folder)):
        EmbeddedIndex.open(folder)


def test_a_crash_while_creating_is_repaired_by_preparing(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "penstock.json").write_text('{"format":1,"fields":{"other":"text"}}')
    with prepared(folder) as index:
        index.write(table(("1", 1, LAMP)))
        assert search_ids(index, "lamp") == {"1"}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("creme", {"1"}),
        ("CRÈME", {"1"}),
        ("日本", {"2"}),
        ("本", {"2"}),
        ("テス", {"2"}),
        ("strasse", {"1"}),
        ("한국", {"2"}),
    ],
)
def test_words_of_many_languages(folder: Path, text: str, ids: set[str]) -> None:
    with prepared(folder) as index:
        index.write(table(("1", 1, {"name": "Crème Straße"}), ("2", 1, {"name": "日本語 テスト 한국어"})))
        assert search_ids(index, text) == ids


def test_more_than_fifty_words_begin_alike(folder: Path) -> None:
    with prepared(folder) as index:
        index.write(table(*((str(row), 1, {"name": f"lamp{row}"}) for row in range(200))))
        assert len(index.search("lam", 1000)) == 200


def test_an_index_without_text_fields_finds_no_words(folder: Path) -> None:
    with EmbeddedIndex.open(folder) as index:
        index.prepare({"sku": FieldKind.KEYWORD})
        index.write(table(("1", 1, LAMP)))
        assert search_ids(index, "lamp") == set()
        assert search_ids(index, 'sku:"LA-1 x"') == {"1"}
        assert search_ids(index, "") == {"1"}


def test_an_epoch_survives_reopening(folder: Path) -> None:
    with prepared(folder) as index:
        index.claim_epoch(3)
        index.write(table(("1", 1, LAMP)))
    with prepared(folder) as index:
        with pytest.raises(SinkError, match="epoch 3"):
            index.claim_epoch(2)
        assert contents(index) == {"1": (1, LAMP)}
    with EmbeddedIndex.open(folder, read_only=True) as index, pytest.raises(SinkError, match="reading only"):
        index.claim_epoch(4)


def test_a_layout_changes_nothing(folder: Path) -> None:
    layout = IndexLayout(frozenset({"brand"}), {"properties": {"name": {"type": "keyword"}}}, {"number_of_shards": 3})
    with EmbeddedIndex.open(folder) as index:
        for _ in range(2):
            index.prepare(FIELDS, layout)
        index.write(table(("1", 1, LAMP)))
        assert search_ids(index, "tele") == {"1"}
        assert [page.column("id").to_pylist() for page in index.find_ids("brand.country", ["DE", "FR"])] == [["1"]]


def test_an_alias_is_a_link_that_readers_follow_when_it_is_moved(tmp_path: Path) -> None:
    with prepared(tmp_path / "one") as first, prepared(tmp_path / "two") as two:
        first.write(table(("1", 1, LAMP)))
        two.write(table(("1", 1, CHAIR), ("2", 1, CHAIR)))
        assert first.add_alias("names") == ("one",)
        assert two.add_alias("names") == ("one",), "it is left where it leads to"
        with EmbeddedIndex.open(tmp_path / "names", read_only=True) as reader:
            assert (reader.count(), reader.get("1")) == (1, LAMP)
            assert two.move_alias("names") == ("one",)
            reader.refresh()
            assert (reader.count(), reader.get("1")) == (2, CHAIR)
            two.write(table(("3", 1, LAMP)))
            reader.refresh()
            assert reader.count() == 3
        with pytest.raises(ConfigurationError, match="is not an alias"):
            two.move_alias("one")
