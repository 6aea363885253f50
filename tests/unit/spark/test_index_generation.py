"""How a sync job takes over the index of a build: from where it follows, and what stays for a rollback."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model import Position
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import Rejection
from penstock.spark.checkpoint_lock import lock_build
from penstock.spark.index_generation import (
    FinishedBuild,
    TakeOver,
    build_checkpoint,
    is_refused,
    letters_before,
    read_take_over,
    refuse_build,
    remember_following,
    remember_spec,
    remove_abandoned_build,
    remove_build,
    watch_builds,
)
from penstock.spark.sync_state import SyncState

HASH = "hash of the spec"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def load(state: SyncState, offset: int, load_id: str) -> None:
    """Let a state have an index that is loaded, and followed up to an offset."""
    position = Position("binlog.000001", offset)
    state.make_folder()
    state.remember_start(position)
    state.remember_loaded("product", position, load_id)


def build(root: Path, offset: int, promotion: str | None = "p1") -> SyncState:
    """Let there be a build that is done."""
    state = SyncState(build_checkpoint(root))
    load(state, offset, "new")
    state.remember_generation("product", "2")
    content = {"index": "product", "spec": HASH, "kind": "build"}
    state.update_build(lambda _: content if promotion is None else {**content, "promotion": promotion})
    return state


def take_over(root: Path, state: SyncState) -> None:
    done = FinishedBuild.find(root, state)
    assert done is not None
    with DeadLetters.open(state.dead_letters) as letters:
        done.hand_over(state, letters)


@pytest.mark.parametrize(
    ("own", "built", "has_others", "start"),
    [(100, 300, False, 300), (300, 100, False, 100), (100, 300, True, 100), (300, 100, True, 100)],
)
def test_changes_are_followed_from_where_nothing_is_missing(
    root: Path, own: int, built: int, has_others: bool, start: int
) -> None:
    """The new index has all up to the end of its build; other indexes of the job have all up to its own end."""
    state = SyncState(root)
    load(state, own, "old")
    if has_others:
        state.remember_loaded("other", Position("binlog.000001", own), "other")
    remember_spec(state, "product", HASH)
    build(root, built)
    take_over(root, state)
    assert (state.generation("product"), state.load_id("product")) == ("2", "new")
    assert state.applied_to == Position("binlog.000001", start)
    assert state.open_stream("d\\.product") == (root / "stream-1", Position("binlog.000001", start).to_json())
    content = state.read_build()
    assert content["pending"] == {"product": Position("binlog.000001", own).to_json()}
    before = content["previous"]["product"]
    assert (before["generation"], before["load_id"], before["spec"]) == ("", "old", HASH)
    assert Position.from_json(before["offset"]) == Position("binlog.000001", own)


def test_an_index_that_is_being_loaded_needs_the_changes_since_its_begin(root: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    state.remember_loading("other", Position("binlog.000001", 100))
    build(root, 300)
    take_over(root, state)
    assert state.applied_to == Position("binlog.000001", 100)


def test_dead_letters_of_the_index_before_stay_when_a_take_over_is_killed(root: Path) -> None:
    state, built = SyncState(root), build(root, 300)
    load(state, 100, "old")
    with DeadLetters.open(state.dead_letters) as letters, DeadLetters.open(built.dead_letters) as new:
        letters.add("product", [Rejection("1", "of the index before", 5)])
        new.add("product", [Rejection("2", "of the build", 7)])
        done = FinishedBuild.find(root, state)
        assert done is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "adopt", kill)
            with pytest.raises(KeyboardInterrupt):
                done.hand_over(state, letters)
        done.hand_over(state, letters)
        assert [letter.id for letter in letters.read_page(0, 10, "product")] == ["2"]
    with DeadLetters.open(letters_before(state)) as before:
        assert [letter.id for letter in before.read_page(0, 10, "product")] == ["1"]


def kill(*_: object) -> None:
    """End what calls it, as a signal would."""
    raise KeyboardInterrupt


def test_the_index_before_may_have_a_batch_that_was_stopped(root: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    (root / "offsets").mkdir()
    planned = Position("binlog.000001", 170)
    (root / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(planned.to_json())}\n")
    build(root, 150)
    take_over(root, state)
    assert state.read_build()["pending"] == {"product": planned.to_json()}


def test_a_job_that_has_loaded_nothing_begins_with_the_build(root: Path) -> None:
    state = SyncState(root)
    state.make_folder()
    build(root, 300)
    take_over(root, state)
    assert (state.applied_to, state.read_build()["pending"]) == (Position("binlog.000001", 300), {"product": None})
    assert "product" not in state.read_build()["previous"]


def test_dead_letters_of_the_build_replace_those_of_the_index_before(root: Path) -> None:
    state, built = SyncState(root), build(root, 300)
    load(state, 100, "old")
    with DeadLetters.open(state.dead_letters) as letters:
        letters.add("product", [Rejection("1", "too old", 5)])
        letters.add("other", [Rejection("1", "not ours", 5)])
    with DeadLetters.open(built.dead_letters) as letters:
        letters.add("product", [Rejection("2", "no number", 7, "r", "{}", before_transform=True)], "binlog.000001:9")
    take_over(root, state)
    with DeadLetters.open(state.dead_letters) as letters:
        (letter,) = letters.read_page(0, 10, "product")
        assert (letter.id, letter.reason, letter.version, letter.routing) == ("2", "no number", 7, "r")
        assert (letter.document, letter.before_transform, letter.position) == ("{}", True, "binlog.000001:9")
        assert letters.count("other") == 1


def test_the_steps_of_a_take_over_are_known_to_both(root: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    look = watch_builds(root, state)
    assert (look(), read_take_over(root)) == (None, TakeOver.NONE)
    build(root, 300, promotion=None)
    assert (look(), read_take_over(root)) == (None, TakeOver.NONE), "it is not done"
    built = build(root, 300)
    done = FinishedBuild.find(root, state)
    assert done is not None
    assert not is_refused(state, done)
    refuse_build(state, done)
    assert (read_take_over(root), is_refused(state, done)) == (TakeOver.REFUSED, True)
    take_over(root, state)
    assert (read_take_over(root), FinishedBuild.find(root, state)) == (TakeOver.ADOPTED, None)
    remember_following(state)
    assert read_take_over(root) is TakeOver.FOLLOWED
    built.update_build(lambda content: {**content, "promotion": "p2"})
    assert read_take_over(root) is TakeOver.NONE, "another build"
    remove_build(root)
    assert list(root.parent.glob("checkpoint.build*")) == []
    assert state.generation("product") == "2"


def test_what_a_term_hands_over_names_the_generation(root: Path) -> None:
    state, term = SyncState(root), SyncState(root / "term-1")
    load(state, 100, "old")
    build(root, 300)
    take_over(root, state)
    term.take_over(state.hand_over("product"))
    assert (term.generation("product"), term.read_build()) == ("2", state.read_build())


def test_a_build_fits_to_the_spec_that_a_job_uses(root: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    build(root, 300)
    done = FinishedBuild.find(root, state)
    assert done is not None

    def fits(spec_hash: str, index: str = "product") -> bool:
        plan: Any = SimpleNamespace(spec_hash=spec_hash, spec=SimpleNamespace(index=index))
        return done.fits([plan])

    assert (fits(HASH), fits("another"), fits(HASH, "another")) == (True, False, False)


def test_a_build_that_nobody_runs_is_removed_when_it_is_followed(root: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    build(root, 300)
    take_over(root, state)
    remove_abandoned_build(root)
    assert build_checkpoint(root).exists(), "it is not followed yet"
    remember_following(state)
    with lock_build(build_checkpoint(root)):
        remove_abandoned_build(root)
        assert build_checkpoint(root).exists(), "a process has it"
    remove_abandoned_build(root)
    assert not build_checkpoint(root).exists()
