"""How a sync job takes over the index of a build: from where it follows, and what stays for a rollback."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model import Position
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import Rejection
from penstock.spark.index_generation import (
    FinishedBuild,
    TakeOver,
    build_checkpoint,
    hash_spec,
    read_take_over,
    refuse_build,
    remember_following,
    remember_spec,
    remove_build,
    watch_builds,
)
from penstock.spark.sync_state import SyncState

SPEC = "index: product\nalias: products\nroot: {table: d.product, fields: [name], joins: {a: {on: {a: b}}}}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "product.yml"
    file.write_text(SPEC)
    return file


def load(state: SyncState, offset: int, load_id: str) -> None:
    """Let a state have an index that is loaded, and followed up to an offset."""
    position = Position("binlog.000001", offset)
    state.make_folder()
    state.remember_start(position)
    state.remember_loaded("product", position, load_id)


def build(root: Path, spec: Path, offset: int, promotion: str | None = "p1") -> SyncState:
    """Let there be a build that is done."""
    state = SyncState(build_checkpoint(root))
    load(state, offset, "new")
    state.remember_generation("product", "2")
    content = {"index": "product", "spec": hash_spec(spec), "kind": "build"}
    state.remember_build(content if promotion is None else {**content, "promotion": promotion})
    return state


def take_over(root: Path, state: SyncState) -> None:
    done = FinishedBuild.find(root, state)
    assert done is not None
    with DeadLetters.open(state.dead_letters) as letters:
        done.hand_over(state, letters)


@pytest.mark.parametrize(("own", "built", "start"), [(100, 300, 100), (300, 100, 100), (200, 200, 200)])
def test_changes_are_followed_from_the_earlier_end(root: Path, spec: Path, own: int, built: int, start: int) -> None:
    state = SyncState(root)
    load(state, own, "old")
    remember_spec(state, "product", spec)
    build(root, spec, built)
    take_over(root, state)
    assert (state.generation("product"), state.load_id("product")) == ("2", "new")
    assert state.applied_to == Position("binlog.000001", start)
    assert state.open_stream("d\\.product") == (root / "stream-1", Position("binlog.000001", start).to_json())
    content = state.read_build()
    assert content["pending"] == {"product": Position("binlog.000001", own).to_json()}
    before = content["previous"]["product"]
    assert (before["generation"], before["load_id"], before["spec"]) == ("", "old", hash_spec(spec))
    assert Position.from_json(before["offset"]) == Position("binlog.000001", own)


def test_a_job_that_has_loaded_nothing_begins_with_the_build(root: Path, spec: Path) -> None:
    state = SyncState(root)
    state.make_folder()
    build(root, spec, 300)
    take_over(root, state)
    assert (state.applied_to, state.read_build()["pending"]) == (Position("binlog.000001", 300), {"product": None})
    assert "product" not in state.read_build()["previous"]


def test_dead_letters_of_the_build_replace_those_of_the_index_before(root: Path, spec: Path) -> None:
    state, built = SyncState(root), build(root, spec, 300)
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


def test_the_steps_of_a_take_over_are_known_to_both(root: Path, spec: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    look = watch_builds(root, state)
    assert (look(), read_take_over(root)) == (None, TakeOver.NONE)
    build(root, spec, 300, promotion=None)
    assert (look(), read_take_over(root)) == (None, TakeOver.NONE), "it is not done"
    built = build(root, spec, 300)
    done = FinishedBuild.find(root, state)
    assert done is not None
    refuse_build(state, done)
    assert read_take_over(root) is TakeOver.REFUSED
    take_over(root, state)
    assert (read_take_over(root), FinishedBuild.find(root, state)) == (TakeOver.ADOPTED, None)
    remember_following(state)
    assert read_take_over(root) is TakeOver.FOLLOWED
    built.remember_build({**built.read_build(), "promotion": "p2"})
    assert read_take_over(root) is TakeOver.NONE, "another build"
    remove_build(root)
    assert list(root.parent.glob("checkpoint.build*")) == []
    assert state.generation("product") == "2"


def test_what_a_term_hands_over_names_the_generation(root: Path, spec: Path) -> None:
    state, term = SyncState(root), SyncState(root / "term-1")
    load(state, 100, "old")
    build(root, spec, 300)
    take_over(root, state)
    term.take_over(state.hand_over("product"))
    assert (term.generation("product"), term.read_build()) == ("2", state.read_build())


def test_a_build_fits_to_the_same_spec_whatever_its_comments(root: Path, spec: Path, tmp_path: Path) -> None:
    state = SyncState(root)
    load(state, 100, "old")
    build(root, spec, 300)
    done = FinishedBuild.find(root, state)
    assert done is not None

    def fits(text: str, index: str = "product") -> bool:
        (tmp_path / "other.yml").write_text(text)
        plan: Any = SimpleNamespace(file=tmp_path / "other.yml", spec=SimpleNamespace(index=index))
        return done.fits([plan])

    assert fits("# a comment\n" + SPEC)
    assert not fits(SPEC.replace("[name]", "[name, stock]"))
    assert not fits(SPEC, "another")
