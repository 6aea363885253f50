"""How the store continues at a start, decided without a source: one case per way in which a log can have changed."""

from dataclasses import replace

import pytest

from penstock.capture.gap import Gap
from penstock.capture.log_identity import LogMatch
from penstock.capture.resume import LostPosition, OnPurged, ResumeFacts
from penstock.capture.start_plan import (
    KeepStore,
    LeaveToCapture,
    RestartStore,
    StartFacts,
    StartPlan,
    TranslateStore,
    choose_empty_start,
    needs_new_epoch,
    plan_start,
)
from penstock.model import GtidSet, Position
from penstock.source import LogInventory

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
CAPTURED, MORE, LESS = (GtidSet.parse(f"{UUID}:1-{last}") for last in (50, 90, 40))
NOTHING, GONE = GtidSet.parse(""), GtidSet.parse(f"{UUID}:51-60")
AT = Position("binlog.000007", 1000, epoch=1, gtids=CAPTURED, timestamp=1_700_000_000)
PLAIN = replace(AT, gtids=None)
EARLY, LATER, LAST = (Position(f"binlog.{number:06}", 500, epoch=1) for number in (5, 8, 9))
OTHER, RESET = LogMatch.OTHER_SERVER, LogMatch.RESET
POLICIES: tuple[OnPurged, ...] = ("stop", "latest", "repair")


def log(first: int = 5, last: int = 9, executed: GtidSet | None = CAPTURED, size: int = 5000) -> LogInventory:
    sizes = {f"binlog.{number:06}": size for number in range(first, last + 1)}
    return LogInventory("server", sizes, Position(f"binlog.{last:06}", 2000, gtids=executed), None)


PURGED = log(8, 9)


def start(
    latest: Position = AT,
    *cursors: Position,
    on_purged: OnPurged = "stop",
    match: LogMatch = LogMatch.SAME,
    inventory: LogInventory | None = None,
    epoch: int = 1,
    first: Position | None = None,
    gone: GtidSet | None = GONE,
    begins_in_log: bool = True,
) -> StartFacts:
    """Clients are numbered from 1. The store is empty unless it has a first position."""
    inventory = inventory or log()
    oldest = replace(inventory.oldest, epoch=epoch)
    facts = ResumeFacts("db:3306", latest, epoch, match, inventory, window_s=0.0)
    gap = Gap("db:3306", latest, inventory.oldest, 0, gone) if facts.is_same_log and latest < oldest else None
    return StartFacts(facts, first or latest, oldest, dict(enumerate(cursors, 1)), on_purged, begins_in_log, gap)


def gap_after(position: Position, gone: GtidSet | None = GONE) -> Gap:
    return Gap("db:3306", position, PURGED.oldest, 0, gone)


def lost(remedy: str, position: Position = AT, gone: GtidSet | None = GONE) -> LostPosition:
    return LostPosition(f"{gap_after(position, gone)}: {remedy}; SHOW BINARY LOGS lists what it has")


NO_CLIENT = "choose a later start, or remove the store's files if there are any"
SET_CLIENT = "say with `penstock position set` where client {} resumes"

STARTS: dict[str, tuple[StartFacts, StartPlan]] = {
    "the same log": (start(AT, AT), KeepStore()),
    "the same log, without GTIDs": (start(PLAIN, inventory=log(executed=None)), KeepStore()),
    "the store has what the log no longer has": (start(LATER, AT, inventory=PURGED, first=EARLY), KeepStore()),
    "a client needs what neither has": (start(LATER, AT, LAST, inventory=PURGED), KeepStore((1,))),
    "a cursor of an earlier epoch is looked up in its own log": (
        start(replace(LATER, epoch=2), AT, inventory=PURGED, epoch=2), KeepStore(),
    ),
    "purged, and GTIDs prove that nothing is missing": (start(AT, AT, inventory=PURGED, gone=NOTHING), KeepStore()),
    "purged, and another client needs less": (
        start(AT, AT, LAST, LATER, inventory=PURGED), RestartStore(LATER, (1,), gap_after(AT)),
    ),
    "purged with GTIDs, for all clients": (start(AT, AT, EARLY, inventory=PURGED), lost(SET_CLIENT.format("1, 2"))),
    "purged with GTIDs, without clients": (start(AT, inventory=PURGED), lost(NO_CLIENT)),
    "purged without GTIDs": (
        start(PLAIN, PLAIN, inventory=PURGED, gone=None), lost(SET_CLIENT.format(1), PLAIN, None),
    ),
    "the server lost the end of its log": (start(AT, AT, inventory=log(size=900)), KeepStore()),
    "a failover by GTIDs": (start(match=OTHER, inventory=log(executed=MORE)), LeaveToCapture()),
    "a standby that is behind": (start(match=OTHER, inventory=log(executed=LESS)), LeaveToCapture()),
    "a standby without GTIDs": (start(match=OTHER, inventory=log(executed=None)), LeaveToCapture()),
    "a log that was reset": (start(match=RESET, inventory=log(1, 1)), LeaveToCapture()),
    "a copied folder in flight": (start(match=RESET, inventory=log(5, 6)), LeaveToCapture()),
    "the epoch was raised already": (start(epoch=2), TranslateStore()),
    "the epoch was raised already, without GTIDs": (start(PLAIN, epoch=2), TranslateStore()),
    "the epoch was raised already, and the server is behind": (
        start(epoch=2, inventory=log(executed=LESS)), TranslateStore(),
    ),
    "the epoch was raised already, and its log was purged": (start(epoch=2, inventory=PURGED), TranslateStore()),
    "the epoch was raised already, and then another server answers": (start(epoch=2, match=OTHER), LeaveToCapture()),
    "the store is of an epoch that is not known": (start(replace(AT, epoch=2)), LeaveToCapture()),
    "the store is in the new log, and capture was saved in the old one": (
        start(AT, inventory=PURGED, begins_in_log=False), LeaveToCapture(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_what_the_source_has_decides_how_the_store_continues(case: str) -> None:
    facts, expected = STARTS[case]
    assert plan_start(facts) == expected


@pytest.mark.parametrize("on_purged", POLICIES)
def test_only_the_policy_stop_refuses_to_start_in_a_purged_log(on_purged: OnPurged) -> None:
    plan = plan_start(start(AT, AT, inventory=PURGED, on_purged=on_purged))
    assert plan == (lost(SET_CLIENT.format(1)) if on_purged == "stop" else KeepStore())


@pytest.mark.parametrize("case", [case for case, (_, plan) in STARTS.items() if not isinstance(plan, LostPosition)])
@pytest.mark.parametrize("on_purged", ["latest", "repair"])
def test_other_policies_leave_gaps_to_capture(case: str, on_purged: OnPurged) -> None:
    facts, expected = STARTS[case]
    if isinstance(expected, (KeepStore, RestartStore)):
        expected = KeepStore()
    assert plan_start(replace(facts, on_purged=on_purged)) == expected


@pytest.mark.parametrize("match", LogMatch)
def test_another_log_begins_an_epoch_at_once_only_without_a_position_to_resume_at(match: LogMatch) -> None:
    assert needs_new_epoch(match, None) == (match is not LogMatch.SAME)
    assert not needs_new_epoch(match, AT)


@pytest.mark.parametrize(
    ("cursors", "limit_bytes", "expected"),
    [
        ([], 100, EARLY),
        ([EARLY, LAST], 10**6, EARLY),
        ([EARLY, LATER, LAST], 10_000, LATER),
        ([EARLY, LAST], 10_000, LAST),
        ([replace(EARLY, file="binlog.000001"), LAST], 10**6, LAST),
        ([replace(LAST, epoch=0), LATER], 10**6, LATER),
        ([EARLY, replace(LAST, epoch=2)], 10, EARLY),
    ],
    ids=[
        "no cursor", "all are near", "one is far", "the last alone", "a file that is gone", "an earlier epoch",
        "the others are in another log",
    ],
)  # fmt: skip
def test_an_empty_store_does_not_begin_at_the_cursor_of_a_client_far_behind(
    cursors: list[Position], limit_bytes: int, expected: Position
) -> None:
    inventory = log()

    def bytes_between(low: Position, high: Position) -> int:
        return (high.file_number - low.file_number) * 5000 + high.offset - low.offset

    is_in_log = lambda cursor: cursor.file in inventory.sizes  # noqa: E731
    assert choose_empty_start(EARLY, cursors, is_in_log, bytes_between, limit_bytes) == expected
