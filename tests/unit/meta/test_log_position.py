"""Where capture resumes: each store of positions, and the one that falls back to another."""

from pathlib import Path

import pytest

from penstock.errors import CoordinationError, FencedError, MetaError
from penstock.meta import (
    Cursor,
    CursorPositions,
    FailoverPositions,
    FilePositions,
    LogPositions,
    MemoryPositions,
    MetaManager,
)
from tests.support.meta_values import at

ONE, TWO = Cursor(at(100, epoch=1)), Cursor(at(200, epoch=1))


class Broken(MemoryPositions):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def load(self) -> Cursor | None:
        if self.error:
            raise self.error
        return super().load()

    def save(self, cursor: Cursor) -> None:
        if self.error:
            raise self.error
        super().save(cursor)


def managers(folder: Path) -> list[LogPositions]:
    return [MemoryPositions(), FilePositions("d", folder), FailoverPositions(MemoryPositions(), MemoryPositions())]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_was_saved_last_is_there(tmp_path: Path, number: int) -> None:
    manager = managers(tmp_path)[number]
    assert manager.load() is None
    manager.save(ONE)
    manager.save(TWO)
    assert manager.load() == TWO


def test_a_file_outlives_its_manager(tmp_path: Path) -> None:
    FilePositions("d", tmp_path).save(ONE)
    assert FilePositions("d", tmp_path).load() == ONE
    assert (tmp_path / "d" / "parse.dat").exists()


def test_a_damaged_file_is_not_taken_for_none(tmp_path: Path) -> None:
    FilePositions("d", tmp_path).save(ONE)
    (tmp_path / "d" / "parse.dat").write_bytes(b"")
    with pytest.raises(MetaError, match=r"parse\.dat holds no position"):
        FilePositions("d", tmp_path).load()


def test_the_lowest_cursor_of_those_that_have_subscribed() -> None:
    meta = MetaManager("d")
    positions = CursorPositions(meta.lowest_cursor)
    assert positions.load() is None
    for client, cursor in ((1, TWO), (2, ONE)):
        meta.subscribe(client)
        meta.update_cursor(client, cursor)
    positions.save(Cursor(at(900)))
    assert positions.load() == ONE
    meta.unsubscribe(2)
    assert positions.load() == TWO


class TestFailover:
    def test_the_second_is_asked_when_the_first_has_none(self) -> None:
        first, second = MemoryPositions(), MemoryPositions()
        second.save(ONE)
        assert FailoverPositions(first, second).load() == ONE

    @pytest.mark.parametrize("error", [MetaError("no"), CoordinationError("away")])
    def test_the_second_stands_in_for_a_broken_one(self, error: Exception) -> None:
        first, second = Broken(error), MemoryPositions()
        positions = FailoverPositions(first, second)
        positions.save(ONE)
        assert (second.load(), positions.load()) == (ONE, ONE)
        first.error = None
        positions.save(TWO)
        assert positions.load() == TWO
        assert second.load() == ONE

    def test_not_known_is_not_none(self) -> None:
        with pytest.raises(CoordinationError, match="away"):
            FailoverPositions(Broken(CoordinationError("away")), MemoryPositions()).load()

    def test_who_was_replaced_does_not_write_elsewhere(self) -> None:
        second = MemoryPositions()
        with pytest.raises(FencedError):
            FailoverPositions(Broken(FencedError("replaced")), second).save(ONE)
        assert second.load() is None
