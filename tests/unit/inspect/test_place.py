"""Places in a log as people write them."""

from datetime import UTC, datetime

import pytest

from penstock.errors import ConfigurationError
from penstock.inspect.place import Moment, parse_place
from penstock.model import GtidSet, Position

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
    assert parse_place(text, NOW) == moment


def test_positions_and_gtids() -> None:
    assert parse_place("binlog.000007:4", NOW) == Position("binlog.000007", 4)
    assert parse_place("mysql-bin.000007:1234", NOW) == Position("mysql-bin.000007", 1234)
    assert parse_place("0-1-25", NOW) == GtidSet.parse("0-1-25")
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
    assert parse_place(gtid, NOW) == GtidSet.parse(gtid)


def test_a_gtid_that_looks_like_a_date_can_be_marked() -> None:
    assert parse_place("gtid:2026-11-15", NOW) == GtidSet.parse("2026-11-15")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "25:00", "binlog:4", "binlog.000007", "-10x", "2026-11-15 lunch"]
)
def test_what_is_no_place_is_said_with_examples(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"binlog\.000007:4.*-10m"):
        parse_place(text, NOW)
