"""Why a document differs, by its version and the changes of its rows in the log."""

import pytest

from penstock.document.difference import Difference
from penstock.document.difference_cause import DocumentHistory, ExaminedLog, LoggedChange, find_cause
from penstock.model import Position
from penstock.model import Sequence as ChangeSequence
from penstock.model.difference_kind import DifferenceKind


def sequence(offset: int, file: int = 7, epoch: int = 0) -> int:
    return int(ChangeSequence(epoch, file, offset))


def change(offset: int) -> LoggedChange:
    return LoggedChange(
        sequence(offset), "shop.orders", "update", f"binlog.000007:{offset}", "0-1-8", "2026-11-18 14:03:11"
    )


WHOLE = ExaminedLog(Position("binlog.000005", 4), Position("binlog.000007", 9000), is_whole=True)
NEWEST = ExaminedLog(Position("binlog.000007", 4), Position("binlog.000007", 9000), is_whole=False)
LATER = ExaminedLog(Position("binlog.000007", 4, epoch=1), Position("binlog.000007", 9000, epoch=1), is_whole=True)
MISSED = "and it lacks update of shop.orders at binlog.000007:800 (GTID 0-1-8, 2026-11-18 14:03:11 UTC)"


@pytest.mark.parametrize(
    ("version", "offsets", "part", "cause", "text"),
    [
        (sequence(500), [500, 800], WHOLE, "missed", f"its version is that of binlog.000007:500, {MISSED}"),
        (
            sequence(500),
            [900, 500, 800],
            WHOLE,
            "missed",
            f"its version is that of binlog.000007:500, {MISSED} and 1 more",
        ),
        (sequence(500, 3), [800], NEWEST, "missed", MISSED),
        (sequence(800), [500, 800], WHOLE, "foreign", "that of the last change of its rows, update of shop.orders"),
        (sequence(800), [500], WHOLE, "foreign", "since its version, binlog.000007:800, at which it was loaded"),
        (sequence(500, 6), [], NEWEST, "unknown", "since binlog.000007:4; the log before that was not looked at"),
        (sequence(500, 3), [], WHOLE, "unknown", "since binlog.000005:4; the log does not go back further"),
        (1, [800], WHOLE, "foreign", "version 1 is no position of the log, which ends at binlog.000007:9000"),
        (sequence(9001), [], WHOLE, "foreign", "is no position of the log"),
        (sequence(5, 7, 1), [], WHOLE, "foreign", "is no position of the log"),
        (sequence(5), [], LATER, "unknown", "the log does not go back further"),
        (None, [800], WHOLE, "missed_or_foreign", "the last change of its rows is update of shop.orders"),
        (None, [], WHOLE, "foreign", "nobody has changed its rows in the log, which begins at binlog.000005:4"),
        (None, [], NEWEST, "unknown", "nobody has changed its rows since binlog.000007:4"),
    ],
)
def test_the_version_and_the_log_tell_why(
    version: int | None, offsets: list[int], part: ExaminedLog, cause: str, text: str
) -> None:
    history = DocumentHistory(version)
    for offset in offsets:
        history.add(change(offset))
    kind = DifferenceKind.MISSING if version is None else DifferenceKind.STALE
    result = find_cause(Difference("7", kind, "", version), history, part)
    assert (result.cause, result.id) == (cause, "7")
    assert text in str(result)
