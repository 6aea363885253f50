from dataclasses import replace

from penstock.capture.gap import Gap
from penstock.model import GtidSet, Position

UUID = "b4e7a3f0-0000-11f1-8000-000000000001"
START = Position("binlog.000003", 1234, 1_794_000_000)
OLDEST = Position("binlog.000007", 4)


def test_it_is_named_in_files_gtids_and_time() -> None:
    gap = Gap("db:3306", START, OLDEST, 1_794_003_600, GtidSet.parse(f"{UUID}:5-9"), "1236")
    assert str(gap) == (
        "db:3306 no longer has what follows binlog.000003:1234: its log begins at binlog.000007:4; missing are files 3"
        f" to 6, the first of them from 1234 on; GTIDs {UUID}:5-9; the time from 2026-11-06 21:20:00 UTC to"
        " 2026-11-06 22:20:00 UTC (1236)"
    )
    assert not gap.is_empty


def test_what_is_not_known_is_not_made_up() -> None:
    gap = Gap("db:3306", Position("binlog.000003", 4), OLDEST, 0, None)
    assert "GTID" not in str(gap)
    assert "from an unknown moment to an unknown moment" in str(gap)
    assert not gap.is_empty


def test_none_is_missing() -> None:
    start = replace(START, gtids=GtidSet.parse("0-1-7"))
    gap = Gap("db:3306", start, OLDEST, 1, GtidSet({}))
    assert gap.is_empty
    assert not Gap("db:3306", replace(START, gtids=GtidSet({})), OLDEST, 1, GtidSet({})).is_empty, "no proof"
    assert "no GTID is missing" in str(gap)


def test_mariadbs_numbers() -> None:
    gone = GtidSet.parse("0-1-9,3-1-4").minus(GtidSet.parse("0-1-7"))
    assert "GTIDs 0-…-8 to 9, 3-…-0 to 4" in str(Gap("db:3306", START, OLDEST, 1, gone))
