"""The history of tables: every position comes back as it was, after any restart; what is damaged is named."""

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.model import Position, TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange, change_from_plain, change_to_plain
from penstock.schema.ddl import DdlError
from penstock.schema.dialect import ServerProfile, SqlMode, SqlSession
from penstock.schema.history import SchemaHistory
from tests.support.ddl_script import START, beginning, changes_from


def opened(folder: Path, every: int = 5) -> SchemaHistory:
    return SchemaHistory(folder, beginning, snapshot_every=every)


def at(offset: int, file: int = 1, epoch: int = 0) -> Position:
    return Position(f"binlog.{file:06}", offset, epoch=epoch)


def filled(folder: Path, count: int, every: int = 5) -> list[tuple[SchemaChange, Catalogue]]:
    """Every change, and the tables after it."""
    with opened(folder, every) as history:
        changes = islice(changes_from(history.catalogue, START), count)
        return [(change, history.record(change).catalogue) for change in changes]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.history"))


def test_every_position_comes_back(tmp_path: Path) -> None:
    made = filled(tmp_path, 40)
    assert len(files(tmp_path)) > 3
    with opened(tmp_path) as history:
        before = beginning()[1]
        assert history.catalogue_at(START) == before
        for change, catalogue in made:
            position = change.position
            assert history.catalogue_at(position) == catalogue
            assert history.catalogue_at(Position(position.file, position.offset - 1)) == before
            before = catalogue
        assert history.catalogue == before


def test_a_change_that_is_read_again_gives_what_it_gave(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        changes = islice(changes_from(history.catalogue, START), 30)
        applied = [(change, history.record(change)) for change in changes]
    sizes = [path.stat().st_size for path in files(tmp_path)]
    with opened(tmp_path) as history:
        for change, first in applied:
            assert history.record(change) == first
    assert [path.stat().st_size for path in files(tmp_path)] == sizes


def test_the_last_change_of_a_table_is_found_in_any_file(tmp_path: Path) -> None:
    table, other = TableName("d", "a"), TableName("d", "b")
    with opened(tmp_path, every=2) as history:
        statements = ["CREATE TABLE a (x INT)", *(f"CREATE TABLE t{i} (x INT)" for i in range(7))]
        statements += ["ALTER TABLE a MODIFY x BIGINT", "CREATE TABLE b (x INT)", "CREATE TABLE c (x INT)"]
        for number, text in enumerate(statements, 1):
            history.record(SchemaChange(at(number * 100), text, "d"))
        assert len(files(tmp_path)) > 3
        changes = [history.last_change_of(table, at(offset)) for offset in (99, 100, 850, 900, 1100)]
        assert [change and change.text for change in changes] == [
            None,
            statements[0],
            statements[0],
            *[statements[8]] * 2,
        ]
        assert history.last_change_of(other, at(950)) is None
        assert history.last_change_of(table, at(1)) is None


def test_the_last_change_of_a_column_is_told_from_others_of_its_table(tmp_path: Path) -> None:
    table = TableName("d", "a")
    with opened(tmp_path, every=2) as history:
        statements = ["CREATE TABLE a (x INT)", "ALTER TABLE a ADD y INT", "ALTER TABLE a MODIFY x BIGINT"]
        statements += ["ALTER TABLE a ADD z INT FIRST", "ALTER TABLE a DROP y"]
        for number, text in enumerate(statements, 1):
            history.record(SchemaChange(at(number * 100), text, "d"))
        changes = {column: history.last_change_of(table, at(900), column) for column in ("x", "y", "z", "none")}
    assert {column: change and change.text for column, change in changes.items()} == {
        "x": statements[2],
        "y": statements[4],
        "z": statements[3],
        "none": None,
    }


def test_another_log_is_recognised(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        history.record(SchemaChange(at(100), "CREATE TABLE a (x INT)", "d"))
        history.record(SchemaChange(at(200), "CREATE TABLE b (x INT)", "d"))
        with pytest.raises(SchemaError, match=r"has another statement at binlog\.000001:100: 'CREATE TABLE a"):
            history.record(SchemaChange(at(100), "CREATE TABLE other (x INT)", "d"))
        with pytest.raises(SchemaError, match=r"lacks the statement at binlog\.000001:150: CREATE TABLE c"):
            history.record(SchemaChange(at(150), "CREATE TABLE c (x INT)", "d"))
        assert not history.record(SchemaChange(at(150), "INSERT INTO a VALUES (1)", "d")).has_changed_tables


def test_what_is_not_understood_stops_its_table_alone(tmp_path: Path) -> None:
    a, b = TableName("d", "a"), TableName("d", "b")
    with opened(tmp_path) as history:
        for offset, text in ((100, "CREATE TABLE a (x INT)"), (200, "CREATE TABLE b (x INT)")):
            history.record(SchemaChange(at(offset), text, "d"))
        applied = history.record(SchemaChange(at(300), "ALTER TABLE a FROBNICATE", "d"))
        assert applied.unknown == {a}
        assert "FROBNICATE" in applied.problem
    with opened(tmp_path) as history:
        assert len(history.catalogue.schema_of(b).columns) == 1
        with pytest.raises(SchemaError, match=r"not known since this statement.*ALTER TABLE a FROBNICATE"):
            history.catalogue.schema_of(a)
        assert len(history.catalogue_at(at(299)).schema_of(a).columns) == 1


def test_what_names_no_table_is_an_error(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        with pytest.raises(DdlError):
            history.record(SchemaChange(at(100), "ALTER DATABASE d FROBNICATE", "d"))
        assert history.last == START


def test_before_the_beginning(tmp_path: Path) -> None:
    filled(tmp_path, 20)
    with opened(tmp_path) as history:
        history.compact(history.last)
        with pytest.raises(SchemaError, match=r"begins at binlog\.0.*what the tables were at binlog\.000001:4"):
            history.catalogue_at(START)


def test_compaction_keeps_what_is_needed(tmp_path: Path) -> None:
    made = filled(tmp_path, 40)
    needed, _ = made[22]
    with opened(tmp_path) as history:
        before = len(files(tmp_path))
        assert history.compact(at(1)) == 0
        assert history.compact(needed.position) > 0
        assert len(files(tmp_path)) < before
    with opened(tmp_path) as history:
        for change, catalogue in made[22:]:
            assert history.catalogue_at(change.position) == catalogue


def test_continuing_with_other_tables(tmp_path: Path) -> None:
    """After an upgrade, a failover or a repair."""
    with opened(tmp_path) as history:
        history.record(SchemaChange(at(100), "CREATE TABLE a (x TEXT CHARSET utf8mb4)", "d"))
        upgraded = Catalogue(ServerProfile(version=90000), history.catalogue.databases)
        history.restart(at(150), upgraded)
        history.record(SchemaChange(at(50, epoch=1), "DROP TABLE a", "d"))
        with pytest.raises(SchemaError, match=r"is at binlog\.000001:50 \(epoch 1\), after"):
            history.restart(at(40, epoch=1), upgraded)
    with opened(tmp_path) as history:
        assert history.catalogue_at(at(149)).server == ServerProfile()
        assert history.catalogue_at(at(150)) == upgraded
        assert history.catalogue_at(at(10, epoch=1)) == upgraded
        assert history.catalogue_at(at(50, epoch=1)).table_names() == []
        assert history.record(SchemaChange(at(150), "ALTER TABLE a FROBNICATE", "d")).catalogue == upgraded


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(SchemaError, match="is in use by another process"):
        opened(tmp_path)
    opened(tmp_path).close()


def test_a_first_reading_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> tuple[Position, Catalogue]:
        raise SchemaError("no privilege")

    with pytest.raises(SchemaError, match="no privilege"):
        SchemaHistory(tmp_path, fails)
    opened(tmp_path).close()


@pytest.mark.parametrize("zeros", [0, 1, 300])
def test_a_torn_tail_is_cut_and_reported(tmp_path: Path, zeros: int, caplog: pytest.LogCaptureFixture) -> None:
    made = filled(tmp_path, 9, every=100)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for size in (last + 1, last + 9, len(whole) - 1):
        path.write_bytes(whole[:size] + bytes(zeros))
        with opened(tmp_path, 100) as history:
            assert history.cut is not None
            assert (history.cut.path, history.cut.offset, history.cut.size_bytes) == (path, last, size - last + zeros)
            assert "ended within a change" in caplog.text
            lost = [change for change, _ in made if change.position > history.last]
            for change in lost:
                history.record(change)
        assert path.read_bytes() == whole


def test_damage_is_named(tmp_path: Path) -> None:
    """Whatever byte is changed, but in the last line's end: an error that names the file, never another history."""
    filled(tmp_path, 12, every=100)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    chance = random.Random(1)
    for offset in [0, 5, 9, last - 1, last, last + 10, *(chance.randrange(len(whole) - 1) for _ in range(60))]:
        broken = bytearray(whole)
        broken[offset] ^= 1 << chance.randrange(7)
        path.write_bytes(broken)
        with pytest.raises(SchemaError, match=f"{path.name} is damaged at offset"):
            opened(tmp_path)
    path.write_bytes(whole)
    opened(tmp_path).close()


def test_damage_in_an_older_file_is_named(tmp_path: Path) -> None:
    made = filled(tmp_path, 40)
    first, second, *_ = files(tmp_path)
    whole = first.read_bytes()
    end = whole.rstrip(b"\n").rfind(b"\n") + 1
    for broken in (whole[:-3], whole[:end], whole[:200] + b"x" + whole[201:]):
        first.write_bytes(broken)
        with opened(tmp_path) as history:
            assert history.catalogue == made[-1][1]
            with pytest.raises(SchemaError, match=rf"{first.name} is damaged"):
                history.catalogue_at(made[1][0].position)
    second.unlink()
    with pytest.raises(SchemaError, match=rf"{second.name} is missing"):
        opened(tmp_path)


def test_another_format(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (path,) = files(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(SchemaError, match="it has no catalogue"):
        opened(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, again = (SchemaChange(at(offset), f"CREATE TABLE t{offset} (x INT)", "d") for offset in (100, 200))
    real = os.pwrite

    def half(file: int, raw: bytes, at: int) -> int:
        if len(raw) < 20:
            raise OSError(28, "No space left on device")
        return real(file, raw[: len(raw) // 2], at)

    with opened(tmp_path) as history:
        history.record(change)
        monkeypatch.setattr(os, "pwrite", half)
        with pytest.raises(SchemaError, match="cannot be written: No space left on device"):
            history.record(again)
        assert history.catalogue.table_names() == [TableName("d", "t100")]
        monkeypatch.undo()
        history.record(again)
    with opened(tmp_path) as history:
        assert history.cut is None
        assert len(history.catalogue.table_names()) == 2


@given(
    st.builds(
        SchemaChange,
        st.builds(
            Position, st.just("binlog.000007"), st.integers(0, 2**40), st.integers(0, 2**32), st.integers(0, 500)
        ),
        st.text(),
        st.text(max_size=5),
        st.builds(
            SqlSession,
            st.sampled_from(SqlMode),
            st.none() | st.booleans(),
            st.text(max_size=4),
            st.text(max_size=4),
            st.integers(0, 2**32),
            st.integers(0, 4000),
        ),
        st.integers(0, 2**32),
    )
)
def test_changes_come_back(change: SchemaChange) -> None:
    assert change_from_plain(change_to_plain(change)) == change


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[str, int]]:
    kinds = st.sampled_from(["record", "record", "record", "restart", "tear", "snapshot", "compact", "again"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 10**6)), min_size=5, max_size=40))


@given(steps=lives(), every=st.integers(1, 8))
@settings(max_examples=60)
def test_any_life(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], every: int) -> None:
    """Restarts, torn ends, snapshots and compaction in any order: the history is that of a list kept beside it."""
    folder = tmp_path_factory.mktemp("life")
    history = opened(folder, every)
    model = [(START, history.catalogue, None)]
    for step, number in steps:
        if step == "record":
            change = next(_next_change(model))
            applied = history.record(change)
            if applied.catalogue is not model[-1][1]:
                model.append((change.position, applied.catalogue, change))
        elif step == "snapshot":
            history.snapshot()
        elif step == "compact":
            lowest = model[number % len(model)][0]
            history.compact(lowest)
            begin = history.first
            assert begin <= lowest
            model = [each for each in model if each[0] >= begin]
        elif step == "again" and len(model) > 1:
            position, _, change = model[1 + number % (len(model) - 1)]
            assert change is not None
            assert history.record(change).catalogue == history.catalogue_at(position)
        else:
            history.close()
            if step == "tear" and model[-1][2] is not None:
                path = files(folder)[-1]
                path.write_bytes(path.read_bytes() + b"0badc0de [1, 2"[: 1 + number % 14])
            history = opened(folder, every)
            assert (history.cut is None) == (step != "tear" or model[-1][2] is None)
        assert history.catalogue == model[-1][1]
    for position, catalogue, _ in model:
        assert history.catalogue_at(position) == catalogue
    history.close()


def _next_change(model: list[tuple[Position, Catalogue, SchemaChange | None]]) -> Iterator[SchemaChange]:
    after, catalogue, _ = model[-1]
    return changes_from(catalogue, after)
