"""Dead letters: the newest version of what was refused, until it is written, superseded or dropped."""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError, SinkError
from penstock.search import Rejection, WriteReport
from penstock.search.dead_letters import DeadLetter, DeadLetters, dead_letters_path
from tests.support.search_contract import table


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return dead_letters_path(tmp_path / "deep/product")


@pytest.fixture
def letters(path: Path, clock: Clock) -> Iterator[DeadLetters]:
    with DeadLetters.open(path, clock=clock) as letters:
        yield letters


def refuse(key: str, version: int, document: str | None = "{}", routing: str | None = None) -> Rejection:
    return Rejection(key, f"bad {version}", version, routing, document)


def held(letters: DeadLetters) -> list[tuple[str, str | None, int]]:
    return [(letter.id, letter.routing, letter.version) for letter in letters.read_page()]


def test_a_letter_has_everything_that_a_retry_needs(letters: DeadLetters, path: Path) -> None:
    letters.add(
        "product", [Rejection('日本 "x"\n', "bad date", 2**63 - 1, "fr", '{"a": 1}')], "binlog.000007:4", "0-1-7"
    )
    letters.add("product", [refuse("2", 0, None)])
    whole = DeadLetter(
        1,
        "product",
        '日本 "x"\n',
        2**63 - 1,
        "fr",
        '{"a": 1}',
        "bad date",
        "binlog.000007:4",
        "0-1-7",
        1000.0,
        1000.0,
        1,
    )
    gone = DeadLetter(2, "product", "2", 0, None, None, "bad 0", "", "", 1000.0, 1000.0, 1)
    assert letters.read_page() == [whole, gone]
    assert letters.get(1) == whole
    assert letters.get(3) is None
    assert letters.count() == 2
    with DeadLetters.open(path) as again:
        assert again.read_page() == [whole, gone]


@pytest.mark.parametrize(("version", "newest", "reason"), [(4, 5, "bad 5"), (5, 5, "bad 5"), (6, 6, "bad 6")])
def test_the_newest_version_counts(letters: DeadLetters, clock: Clock, version: int, newest: int, reason: str) -> None:
    letters.add("product", [refuse("1", 5, '{"v": 5}')], "at 5")
    clock.now += 10
    letters.add("product", [refuse("1", version, f'{{"v": {version}}}')], f"at {version}")
    (letter,) = letters.read_page()
    assert (letter.number, letter.version, letter.reason, letter.attempts) == (1, newest, reason, 2)
    assert (letter.document, letter.position) == (f'{{"v": {newest}}}', f"at {newest}")
    assert (letter.first_at, letter.last_at) == (1000.0, 1010.0)


def test_indexes_and_routings_have_letters_of_their_own(letters: DeadLetters) -> None:
    for index, routing in (("product", None), ("product", "fr"), ("brand", None)):
        letters.add(index, [refuse("1", 5, routing=routing)])
    assert (letters.count(), letters.count("product"), letters.count("brand"), letters.count("x")) == (3, 2, 1, 0)
    assert [letter.number for letter in letters.read_page(index="brand")] == [3]


def test_a_new_routing_replaces_older_letters(letters: DeadLetters) -> None:
    letters.add("product", [refuse("1", 5, routing="old")])
    letters.add("product", [refuse("1", 6, routing="new")])
    letters.add("product", [refuse("1", 4, routing="older")])
    assert held(letters) == [("1", "new", 6), ("1", "older", 4)]


def test_pages_follow_each_other(letters: DeadLetters) -> None:
    letters.add("product", [refuse(str(row), 1) for row in range(25)])
    pages = [letters.read_page(limit=10), letters.read_page(10, 10), letters.read_page(20, 10), letters.read_page(25)]
    assert [[letter.number for letter in page] for page in pages] == [
        [*range(1, 11)],
        [*range(11, 21)],
        [*range(21, 26)],
        [],
    ]


@pytest.mark.parametrize("count", [3, 3000])
def test_what_is_written_in_time_is_forgotten(letters: DeadLetters, count: int) -> None:
    """Few letters are looked through, many are looked up."""
    letters.add("product", [refuse(str(row), 5) for row in range(count)])
    letters.add("brand", [refuse("0", 5)])
    assert letters.forget_superseded("product", {}) == 0
    assert letters.forget_superseded("product", {"0": 4, "x": 9}) == 0
    assert letters.forget_superseded("product", {"0": 5, "1": 9, "2": 4, "x": 9}) == 2
    assert letters.count("product") == count - 2
    assert letters.count("brand") == 1


def test_a_report_adds_what_was_refused_and_forgets_what_was_written(letters: DeadLetters) -> None:
    letters.add("product", [refuse("1", 5), refuse("2", 5), refuse("3", 9), refuse("4", 5)])
    batch = table(("1", 6, "{}"), ("2", 6, "{"), ("3", 6, "{}"), ("5", 6, "["))
    assert letters.record_report("product", batch, WriteReport(2, rejected=(refuse("2", 6), refuse("5", 6)))) == 2
    assert held(letters) == [("2", None, 6), ("3", None, 9), ("4", None, 5), ("5", None, 6)]
    assert [letter.attempts for letter in letters.read_page()] == [2, 1, 1, 1]


def test_a_delete_under_the_old_routing_does_not_forget_the_refused_document(letters: DeadLetters) -> None:
    batch = table(("1", 6, None, "old"), ("1", 6, "{", "new"))
    for _ in range(2):  # as when the batch is repeated after a crash
        letters.record_report("product", batch, WriteReport(deleted=1, rejected=(refuse("1", 6, "{", "new"),)))
        assert held(letters) == [("1", "new", 6)]


def test_a_retry_settles_the_letters_it_has_read_and_no_newer_ones(letters: DeadLetters) -> None:
    letters.add("product", [refuse("1", 5), refuse("2", 5), refuse("3", 5), refuse("4", 5)])
    first, two, three, four = letters.read_page()
    letters.add("product", [refuse("2", 6), refuse("4", 6)])
    letters.settle([first, two], [(three, "still bad"), (four, "still bad")])
    assert held(letters) == [("2", None, 6), ("3", None, 5), ("4", None, 6)]
    assert [(letter.reason, letter.attempts) for letter in letters.read_page(2)] == [("still bad", 2), ("bad 6", 2)]


def test_dropped_letters_leave_their_numbers_unused(letters: DeadLetters) -> None:
    letters.add("product", [refuse("1", 5), refuse("2", 5)])
    assert letters.drop([2, 7]) == 1
    assert letters.drop([]) == 0
    letters.add("product", [refuse("3", 5)])
    assert [letter.number for letter in letters.read_page()] == [1, 3]


def test_only_the_owner_can_read_them(letters: DeadLetters, path: Path) -> None:
    letters.add("product", [refuse("1", 5)])
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_commits_are_synced(letters: DeadLetters) -> None:
    settings = [letters._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
    assert settings == [2, "wal"]


def test_several_threads_and_connections_write(letters: DeadLetters, path: Path) -> None:
    def add(name: str, target: DeadLetters) -> None:
        for row in range(20):
            target.add("product", [refuse(f"{name}{row}", 1)])

    with DeadLetters.open(path) as other:
        threads = [
            threading.Thread(target=add, args=(name, target))
            for name, target in (("a", letters), ("b", letters), ("c", other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert letters.count() == 60


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a database at all " * 100)
    with pytest.raises(ConfigurationError, match=f"{text} does not hold the dead letters"):
        DeadLetters.open(text)
    other = tmp_path / "other"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE thing (x)")
    with pytest.raises(ConfigurationError, match="format 0"):
        DeadLetters.open(other)
    with pytest.raises(SinkError, match="cannot be opened"):
        DeadLetters.open(text / "below")


def test_a_letter_says_whether_its_document_is_from_before_a_transform(letters: DeadLetters) -> None:
    letters.add("product", [replace(refuse("1", 5), before_transform=True), refuse("2", 5)])
    assert [letter.before_transform for letter in letters.read_page()] == [True, False]
    letters.add("product", [refuse("1", 4), replace(refuse("2", 6), before_transform=True)])
    assert [letter.before_transform for letter in letters.read_page()] == [True, True], "that of the newest version"


def test_letters_of_the_format_before_transforms_are_read(path: Path) -> None:
    with DeadLetters.open(path) as letters:
        letters.add("product", [refuse("1", 5, '{"a":1}', "fr")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE letter DROP COLUMN before_transform")
        connection.execute("PRAGMA user_version = 1")
    for _ in range(2):
        with DeadLetters.open(path) as letters:
            (letter,) = letters.read_page()
            assert (letter.id, letter.routing, letter.document) == ("1", "fr", '{"a":1}')
            assert not letter.before_transform
