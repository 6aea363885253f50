"""Positions in a log as people write them."""

from datetime import UTC, datetime

import pytest

from penstock.errors import ConfigurationError
from penstock.model import GtidSet, Position
from penstock.model.start_point import Moment, StartWord, is_fixed, parse_point, parse_start

NOW = datetime(2026, 11, 15, 12, 30, 0, 250_000, UTC)


def us(*parts: int) -> Moment:
    return Moment(round(datetime(*parts, tzinfo=UTC).timestamp() * 1_000_000))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", us(2026, 11, 15, 12, 30, 0, 250_000)),
        ("-10m", us(2026, 11, 15, 12, 20, 0, 250_000)),
        ("-1.5h", us(2026, 11, 15, 11, 0, 0, 250_000)),
        ("-2D", us(2026, 11, 13, 12, 30, 0, 250_000)),
        ("10:00", us(2026, 11, 15, 10)),
        ("9:05:07", us(2026, 11, 15, 9, 5, 7)),
        ("2026-11-15", us(2026, 11, 15)),
        ("2026-11-15 10:00", us(2026, 11, 15, 10)),
        ("2026-11-15T10:00:00.123456Z", us(2026, 11, 15, 10, 0, 0, 123_456)),
        ("2026-11-15T10:00+02:00", us(2026, 11, 15, 8)),
    ],
)
def test_times(text: str, moment: Moment) -> None:
    assert parse_point(text, NOW) == moment


def test_positions_and_gtids() -> None:
    assert parse_point("binlog.000007:4", NOW) == Position("binlog.000007", 4)
    assert parse_point("mysql-bin.000007:1234", NOW) == Position("mysql-bin.000007", 1234)
    assert parse_point("0-1-25", NOW) == GtidSet.parse("0-1-25")
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
    assert parse_point(gtid, NOW) == GtidSet.parse(gtid)


def test_a_gtid_that_looks_like_a_date_can_be_marked() -> None:
    assert parse_point("gtid:2026-11-15", NOW) == GtidSet.parse("2026-11-15")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "25:00", "binlog:4", "binlog.000007", "-10x", "2026-11-15 lunch"]
)
def test_what_is_not_a_position_is_said_with_examples(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"binlog\.000007:4.*-10m"):
        parse_point(text, NOW)


@pytest.mark.parametrize("word", list(StartWord), ids=lambda word: word.value)
def test_a_start_may_be_a_word(word: StartWord) -> None:
    assert parse_start(f" {word.value.upper()} ", NOW) is word
    with pytest.raises(ConfigurationError, match="is not a position in a log"):
        parse_point(word.value, NOW)


@pytest.mark.parametrize("text", ["-10m", "now", "10:00", "2026-11-15 10:00", "2026-11-15T10:00+02:00"])
def test_a_time_may_say_that_it_is_one(text: str) -> None:
    assert parse_start(f"time:{text}", NOW) == parse_start(text, NOW) == parse_point(text, NOW)


@pytest.mark.parametrize("text", ["time:yesterday", "time:", "time:binlog.000007:4", "time:0-1-8", f"time:-{10**400}s"])
def test_what_says_that_it_is_a_time_must_be_one(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no time"):
        parse_start(text, NOW)


def test_the_former_word_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match="did you mean earliest"):
        parse_start("first", NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", False), ("stored", False), ("latest", False), ("-10m", False), ("time:-1h", False),
        ("time:now", False), ("10:00", False), ("binlog.000007:4", True), ("gtid:0-1-8", True),
        ("time:2026-11-15T10:00:00Z", True),
    ],
)  # fmt: skip
def test_only_what_never_moves_is_asked_for_again(text: str, expected: bool) -> None:
    assert is_fixed(text) is expected
