"""A process that takes over works in files of its own, and resumes where the last one has ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.coordinate.term_files import find_ended_term, find_newest_checkpoint, find_newest_term, path_of_term
from penstock.errors import ConfigurationError
from penstock.model import Position
from penstock.search.dead_letters import DeadLetters, dead_letters_path
from penstock.search.index import Rejection
from penstock.spark.sync_state import SyncState
from penstock.spark.sync_terms import begin_term

START = Position("binlog.000001", 4)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "orders"


def write_batch(folder: Path, number: int, offset: dict[str, Any], *, is_done: bool = True) -> None:
    """Write what Spark leaves of a batch."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
    if is_done:
        (folder / "commits" / str(number)).write_text("v1\n{}")


def test_the_first_term_begins_with_nothing(root: Path) -> None:
    assert find_newest_checkpoint(root) == root
    checkpoint = begin_term(root, "orders", 1)
    assert checkpoint == root / "term-1" == find_newest_checkpoint(root)
    state = SyncState(checkpoint)
    assert (state.start, state.loaded, state.has_offsets) == (None, {}, False)


def test_the_next_one_resumes_after_the_last_batch_that_is_done(root: Path) -> None:
    before = SyncState(begin_term(root, "orders", 1))
    before.remember_start(START)
    before.remember_loaded("orders", START, "7f")
    folder, start = before.open_stream("shop[.]orders")
    assert (folder, start) == (root / "term-1", START.to_json())
    done = {"epoch": 0, "file": "binlog.000001", "offset": 900, "log": "1:17", "filter": "shop[.]orders"}
    write_batch(folder, 0, done)
    write_batch(folder, 1, done | {"offset": 1500}, is_done=False)
    state = SyncState(begin_term(root, "orders", 2))
    assert (state.loaded, state.load_id("orders")) == ({"orders": str(START)}, "7f")
    assert state.start == Position("binlog.000001", 900)
    # The identity of the log is carried along, so that a log of the same name from elsewhere is refused.
    assert state.open_stream("other") == (
        root / "term-2",
        {"epoch": 0, "file": "binlog.000001", "offset": 900, "log": "1:17"},
    )


def test_a_checkpoint_from_before_any_election_is_continued_and_a_run_without_continues_the_newest(root: Path) -> None:
    alone = SyncState(root)
    alone.make_folder()
    alone.remember_start(START)
    write_batch(alone.open_stream("t")[0], 3, {"file": "binlog.000002", "offset": 50})
    assert SyncState(begin_term(root, "orders", 5)).start == Position("binlog.000002", 50)
    assert find_newest_checkpoint(root) == path_of_term(root, 5)


def test_what_a_frozen_process_writes_late_counts_for_nobody(root: Path) -> None:
    frozen = SyncState(begin_term(root, "orders", 1))
    frozen.remember_start(START)
    frozen.remember_loading("orders", START)
    state = SyncState(begin_term(root, "orders", 2))
    frozen.remember_loaded("orders", START, "7f")
    write_batch(frozen.open_stream("t")[0], 0, {"file": "binlog.000001", "offset": 900})
    assert find_newest_term(root) == 2
    assert (state.loaded, state.loading_since("orders"), state.start) == ({}, START, START)
    assert SyncState(begin_term(root, "orders", 3)).start == START


def test_a_term_that_has_not_begun_when_its_process_ended_is_not_continued(root: Path) -> None:
    SyncState(begin_term(root, "orders", 1)).remember_start(START)
    path_of_term(root, 2).mkdir()
    dead_letters_path(path_of_term(root, 2)).write_bytes(b"half")
    assert SyncState(begin_term(root, "orders", 3)).start == START


def test_of_older_terms_one_is_kept(root: Path) -> None:
    for number in (1, 2, 4, 5):
        begin_term(root, "orders", number)
    assert {path.name.partition(".")[0] for path in root.iterdir()} == {"term-4", "term-5"}


@pytest.mark.parametrize("number", [4, 3])
def test_a_term_that_does_not_rise_is_refused(root: Path, number: int) -> None:
    begin_term(root, "orders", 4)
    told = rf"written in term 4 .* just begun term {number}: .* write 4 into its node /penstock/pipelines/orders/epoch"
    with pytest.raises(ConfigurationError, match=told):
        begin_term(root, "orders", number)


def test_the_checkpoint_of_another_pipeline_is_refused(root: Path) -> None:
    begin_term(root, "orders", 1)
    with pytest.raises(ConfigurationError, match=r"pipeline 'orders' has this checkpoint, and this one is 'other'"):
        begin_term(root, "other", 2)
    assert find_newest_term(root) == 1


def test_dead_letters_are_copied_also_from_a_process_in_the_middle_of_a_write(root: Path) -> None:
    before = dead_letters_path(begin_term(root, "orders", 1))
    with DeadLetters.open(before) as letters:
        letters.add("orders", [Rejection("1", "no number", 7)])
        with letters._write() as connection:
            connection.execute("UPDATE letter SET id = '2'")
            copy = dead_letters_path(begin_term(root, "orders", 2))
        with DeadLetters.open(copy) as copied:
            assert [letter.id for letter in copied.read_page()] == ["1"]
            copied.add("orders", [Rejection("3", "no number", 8)])
        assert [letter.id for letter in letters.read_page()] == ["2"]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_the_load_of_an_index_that_was_added_begins_again_where_it_began(root: Path) -> None:
    state = SyncState(begin_term(root, "orders", 1))
    state.remember_start(START)
    later = Position("binlog.000009", 99)
    state.remember_loading("customers", later)
    state = SyncState(begin_term(root, "orders", 2))
    assert state.loading_since("customers") == later
    state.remember_loaded("customers", later, "80")
    assert state.loading_since("customers") is None
    assert state.loaded == {"customers": str(later)}


def test_a_checkpoint_that_cannot_be_read_is_not_taken_for_a_new_one(root: Path) -> None:
    root.write_text("a file")
    with pytest.raises(ConfigurationError, match="cannot be read: Not a directory"):
        find_newest_checkpoint(root)
    assert find_ended_term(root) is None
