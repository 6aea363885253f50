"""How capture resumes, decided without a source: one case per way in which a log can have changed."""

import pytest

from penstock.capture.gap import Gap
from penstock.capture.log_identity import LogMatch
from penstock.capture.resume import (
    Fail,
    GapPlan,
    LostPosition,
    OnPurged,
    ResumeAtOldest,
    ResumeFacts,
    ResumeHere,
    ResumePlan,
    Skip,
    Translate,
    WaitForFiles,
    WaitForStandby,
    plan_gap,
    plan_resume,
)
from penstock.model import GtidSet, Position
from penstock.source import LogInventory

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
MINE = GtidSet.parse(f"{UUID}:1-50")
MARIADB = GtidSet.parse("0-1-50")
AT = Position("binlog.000007", 1000, epoch=1, gtids=MINE, timestamp=1_700_000_000)
PLAIN = Position("binlog.000007", 1000, epoch=1, timestamp=1_700_000_000)


def log(
    first: int = 5, last: int = 8, executed: GtidSet | None = MINE, size: int = 5000, end: int = 2000
) -> LogInventory:
    sizes = {f"binlog.{number:06}": size for number in range(first, last + 1)}
    return LogInventory("server", sizes, Position(f"binlog.{last:06}", end, gtids=executed), None)


def facts(
    position: Position = AT, match: LogMatch = LogMatch.SAME, inventory: LogInventory | None = None, **others: object
) -> ResumeFacts:
    given: dict[str, object] = {"epoch": 1, "window_s": 60.0} | others
    return ResumeFacts("db:3306", position, match=match, inventory=inventory or log(), **given)  # type: ignore[arg-type]


OTHER, RESET = LogMatch.OTHER_SERVER, LogMatch.RESET
MORE, LESS = GtidSet.parse(f"{UUID}:1-90"), GtidSet.parse(f"{UUID}:1-40")
LACKING = GtidSet.parse(f"{UUID}:41-50")
BEHIND = f"db:3306 does not have {LACKING.text} yet, which is captured already"
WAS_RESET = f"the log of db:3306 was reset, or lost its end: what came after {AT} may be lost"
SHORT = f"db:3306 ends at binlog.000006:2000, and {AT} was captured: waiting for what is missing"

RESUME: dict[str, tuple[ResumeFacts, ResumePlan]] = {
    "the same log, by GTIDs": (facts(), ResumeHere(by_gtids=True)),
    "the same log, without GTIDs": (facts(PLAIN, inventory=log(executed=None)), ResumeHere(by_gtids=False)),
    "the same log, of a source that takes no GTIDs": (facts(takes_gtids=False), ResumeHere(by_gtids=False)),
    "the same log, whose GTIDs mean others": (facts(by_gtids=False), ResumeHere(by_gtids=False)),
    "the end of the file that is written to may be ahead of its size": (
        facts(inventory=log(last=7, size=900, end=1000)),
        ResumeHere(by_gtids=True),
    ),
    "a failover by GTIDs": (facts(match=OTHER, inventory=log(executed=MORE)), Translate(MINE, raises_epoch=True)),
    "a failover of MariaDB by GTIDs must be probed": (
        facts(
            Position("b.000007", 1000, epoch=1, gtids=MARIADB),
            OTHER,
            log(executed=GtidSet.parse("0-1-60")),
        ),
        Translate(MARIADB, raises_epoch=True, needs_probe=True),
    ),
    "a failover of MariaDB whose files are read": (
        facts(Position("b.000007", 1000, epoch=1, gtids=MARIADB), OTHER, log(executed=MARIADB), takes_gtids=False),
        Translate(MARIADB, raises_epoch=True),
    ),
    "a standby that is behind": (facts(match=OTHER, inventory=log(executed=LESS)), WaitForStandby(LACKING, BEHIND)),
    "a standby that is still behind": (
        facts(match=OTHER, inventory=log(executed=LESS), lacking_s=59.9),
        WaitForStandby(LACKING, BEHIND),
    ),
    "a standby that stays behind": (
        facts(match=OTHER, inventory=log(executed=LESS), lacking_s=60.0),
        Translate(LESS, raises_epoch=True, lost=LACKING),
    ),
    "a standby that nobody waits for": (
        facts(match=OTHER, inventory=log(executed=LESS), window_s=0.0),
        Translate(LESS, raises_epoch=True, lost=LACKING),
    ),
    "a MariaDB standby that stays behind": (
        facts(
            Position("b.000007", 1000, epoch=1, gtids=MARIADB),
            OTHER,
            log(executed=GtidSet.parse("0-1-40")),
            lacking_s=99.0,
        ),
        Translate(None, raises_epoch=True, lost=MARIADB.minus(GtidSet.parse("0-1-40"))),
    ),
    "a standby without GTIDs": (facts(match=OTHER, inventory=log(executed=None)), Translate(None, raises_epoch=True)),
    "a position without GTIDs": (facts(PLAIN, OTHER), Translate(None, raises_epoch=True)),
    "the epoch was raised already": (facts(epoch=2), Translate(MINE, raises_epoch=False)),
    "the epoch was raised already, without GTIDs": (facts(PLAIN, epoch=2), Translate(None, raises_epoch=False)),
    "the epoch was raised already, and the server is behind": (
        facts(epoch=2, inventory=log(executed=LESS)),
        WaitForStandby(LACKING, BEHIND),
    ),
    "the epoch was raised already, and then another server answers": (
        facts(epoch=2, match=OTHER, inventory=log(executed=MORE)),
        Translate(MINE, raises_epoch=True),
    ),
    "a log that was reset": (facts(match=RESET, inventory=log(1, 1)), LostPosition(WAS_RESET)),
    "a reset of a folder whose files are complete": (facts(match=RESET, is_copied=True), LostPosition(WAS_RESET)),
    "a folder that is being copied": (facts(match=RESET, inventory=log(5, 6), is_copied=True), WaitForFiles(SHORT)),
    "a folder that lost its end, and that nobody copies into": (
        facts(match=RESET, inventory=log(5, 6)),
        LostPosition(WAS_RESET),
    ),
    "the server lost the end of its log": (
        facts(inventory=log(size=900)),
        LostPosition("binlog.000007 ends at 900: the server has lost the end of its log, as in a crash"),
    ),
    "the file was purged": (facts(inventory=log(8, 9)), LostPosition("it has no file binlog.000007")),
    "the file was purged, without GTIDs": (
        facts(PLAIN, inventory=log(8, 9, executed=None)),
        LostPosition("it has no file binlog.000007"),
    ),
}


@pytest.mark.parametrize("case", RESUME)
def test_what_the_source_has_decides_how_capture_resumes(case: str) -> None:
    given, expected = RESUME[case]
    assert plan_resume(given) == expected


def gap_after(position: Position, inventory: LogInventory, gone: GtidSet | None) -> Gap:
    return Gap("db:3306", position, inventory.oldest, 0, gone)


NOTHING, GONE = GtidSet.parse(""), GtidSet.parse(f"{UUID}:51-60")
PURGED = log(8, 9)
STOP = "compare the data, then say with on_purged: latest, or `penstock position set`, where to resume"
LOST_END = f"db:3306 has lost the end of its log, {AT} was captured: refused"


def skip(
    problem: str, to: str, *, raises_epoch: bool = False, is_reset: bool = False, is_repaired: bool = False
) -> Skip:
    return Skip(problem, to, raises_epoch, is_reset, is_repaired)  # type: ignore[arg-type]


def text(position: Position = AT, inventory: LogInventory = PURGED, gone: GtidSet | None = GONE) -> str:
    return str(gap_after(position, inventory, gone))


GAPS: dict[str, tuple[ResumeFacts, GtidSet | None, OnPurged, GapPlan]] = {
    "purged, and GTIDs prove that nothing is missing": (facts(inventory=PURGED), NOTHING, "stop", ResumeAtOldest()),
    "purged with GTIDs: stop": (facts(inventory=PURGED), GONE, "stop", Fail(f"{text()}: {STOP}")),
    "purged with GTIDs: latest": (facts(inventory=PURGED), GONE, "latest", skip(text(), "end")),
    "purged with GTIDs: repair": (facts(inventory=PURGED), GONE, "repair", skip(text(), "end", is_repaired=True)),
    "purged without GTIDs: stop": (
        facts(PLAIN, inventory=PURGED), None, "stop", Fail(f"{text(PLAIN, gone=None)}: {STOP}"),
    ),
    "purged without GTIDs: latest": (
        facts(PLAIN, inventory=PURGED), None, "latest", skip(text(PLAIN, gone=None), "end"),
    ),
    "purged without GTIDs: repair": (
        facts(PLAIN, inventory=PURGED), None, "repair", skip(text(PLAIN, gone=None), "end", is_repaired=True),
    ),
    "a log that was reset: repair": (
        facts(match=RESET, inventory=log(1, 1)), None, "repair",
        skip(
            text(inventory=log(1, 1), gone=None),
            "replaced part", raises_epoch=True, is_reset=True, is_repaired=True,
        ),
    ),
    "a log that was reset: latest": (
        facts(match=RESET, inventory=log(1, 1)), None, "latest",
        skip(text(inventory=log(1, 1), gone=None), "replaced part", raises_epoch=True, is_reset=True),
    ),
    "a log that was reset: stop": (
        facts(match=RESET, inventory=log(1, 1)), None, "stop", Fail(f"{text(inventory=log(1, 1), gone=None)}: {STOP}"),
    ),
    "the server lost the end of its log: stop": (
        facts(inventory=log(size=900)), NOTHING, "stop", Fail(f"{LOST_END}: {STOP}"),
    ),
    "the server lost the end of its log: latest": (
        facts(inventory=log(size=900)), NOTHING, "latest", skip(LOST_END, "replaced part", raises_epoch=True),
    ),
    "the server lost the end of its log: repair": (
        facts(inventory=log(size=900)), NOTHING, "repair",
        skip(LOST_END, "replaced part", raises_epoch=True, is_repaired=True),
    ),
    "the end of the last file is lost": (
        facts(inventory=log(last=7, size=900, end=900)), NOTHING, "latest",
        skip(LOST_END, "replaced part", raises_epoch=True),
    ),
    "another server that has purged it: latest": (
        facts(match=OTHER, inventory=PURGED), None, "latest", skip(text(gone=None), "end", raises_epoch=True),
    ),
    "another server that has purged it: stop": (
        facts(match=OTHER, inventory=PURGED), None, "stop", Fail(f"{text(gone=None)}: {STOP}"),
    ),
    "another server that has purged it: repair": (
        facts(match=OTHER, inventory=PURGED), None, "repair",
        skip(text(gone=None), "end", raises_epoch=True, is_repaired=True),
    ),
    "the epoch was raised already: stop": (
        facts(epoch=2, inventory=PURGED), None, "stop", Fail(f"{text(gone=None)}: {STOP}"),
    ),
    "the epoch was raised already: latest": (
        facts(epoch=2, inventory=PURGED), None, "latest", skip(text(gone=None), "end"),
    ),
    "a folder that is being copied": (facts(inventory=log(5, 6), is_copied=True), None, "latest", WaitForFiles(SHORT)),
    "refused for another reason": (facts(), None, "latest", Fail()),
}  # fmt: skip


@pytest.mark.parametrize("case", GAPS)
def test_what_is_gone_is_skipped_only_as_the_policy_says(case: str) -> None:
    given, gone, on_purged, expected = GAPS[case]
    gap = gap_after(given.position, given.inventory, gone)
    assert plan_gap(given, gap, "refused", on_purged, can_repair=True) == expected


@pytest.mark.parametrize("case", [case for case, (_, _, on_purged, _) in GAPS.items() if on_purged == "repair"])
def test_a_repair_without_anybody_to_do_it_stops(case: str) -> None:
    given, gone, on_purged, planned = GAPS[case]
    plan = plan_gap(given, gap_after(given.position, given.inventory, gone), "refused", on_purged, can_repair=False)
    assert isinstance(planned, Skip)
    assert plan == Fail(f"{planned.problem}: and nothing is there that could repair it")


def test_a_hole_in_a_folder_is_not_waited_for() -> None:
    after = log(8, 9)
    plan = plan_gap(
        facts(inventory=after, is_copied=True), gap_after(AT, after, GONE), "refused", "latest", is_hole=True
    )
    assert plan == skip(text(), "end")
