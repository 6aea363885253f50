"""Decides how capture resumes, from plain data: no source is asked here, and nothing is changed.

| the source has                                   | plan                                                      |
|--------------------------------------------------|-----------------------------------------------------------|
| the log that was followed, with the position     | ResumeHere                                                |
| that log, without the position                   | LostPosition; plan_gap then decides by `on_purged`        |
| the log of another server, or an older epoch     | Translate: by GTIDs, else by time                         |
| another server that lacks captured transactions  | WaitForStandby for `window_s`, then Translate without them|
| a log that was reset or lost its end             | LostPosition, or WaitForFiles while a copied folder is incomplete |
"""

from dataclasses import dataclass, replace
from typing import Literal

from penstock.capture.gap import Gap
from penstock.capture.log_identity import LogMatch
from penstock.model import GtidSet, Position
from penstock.source import LogInventory

OnPurged = Literal["stop", "latest", "repair"]


@dataclass(frozen=True, slots=True)
class ResumeFacts:
    """The plain data that a plan to resume depends on.

    plan = plan_resume(ResumeFacts("db:3306", position, 1, LogMatch.SAME, inventory))
    """

    address: str
    position: Position  # the end of the last transaction that was captured
    epoch: int  # of the log that is followed
    match: LogMatch
    inventory: LogInventory
    takes_gtids: bool = True  # the source can be asked to send what follows a set of GTIDs
    by_gtids: bool = True  # GTIDs of earlier epochs name the same transactions in this log
    is_copied: bool = False  # the source is a folder that somebody copies files of this log into
    lacking_s: float = 0.0  # how long the source has been seen to lack captured transactions
    window_s: float = 60.0  # how long a standby may lack them

    @property
    def is_same_log(self) -> bool:
        """Return whether the position belongs to the log that the source has now."""
        return self.match is LogMatch.SAME and self.position.epoch == self.epoch

    @property
    def is_older_epoch(self) -> bool:
        """Return whether the source was switched to this log before, and the position belongs to the log before
        that."""
        return self.match is LogMatch.SAME and self.position.epoch < self.epoch


@dataclass(frozen=True, slots=True)
class ResumeHere:
    """The decision to resume at the position itself."""

    by_gtids: bool


@dataclass(frozen=True, slots=True)
class WaitForFiles:
    """The decision to wait until a folder has all files of its log again."""

    reason: str


@dataclass(frozen=True, slots=True)
class WaitForStandby:
    """The decision to wait until the standby database has received every transaction that was captured already."""

    lacking: GtidSet
    reason: str


@dataclass(frozen=True, slots=True)
class Translate:
    """The decision to find the corresponding position in the log that the source has now."""

    gtids: GtidSet | None  # after which to resume; None for the time of the position
    raises_epoch: bool
    needs_probe: bool = False  # only the source can tell whether it accepts the GTIDs; by time if it does not
    lost: GtidSet | None = None  # captured, and not on this server


@dataclass(frozen=True, slots=True)
class LostPosition:
    """The finding that the log no longer has what follows the position."""

    reason: str


@dataclass(frozen=True, slots=True)
class ResumeAtOldest:
    """The decision to resume where the log begins now: GTIDs prove that nothing is missing."""


@dataclass(frozen=True, slots=True)
class Skip:
    """The decision to resume after the gap, as `on_purged` says; `is_repaired` has the gap repaired first."""

    problem: str
    to: Literal["end", "replaced part"]
    raises_epoch: bool
    is_reset: bool
    is_repaired: bool


@dataclass(frozen=True, slots=True)
class Fail:
    """The decision that capture cannot resume by itself. When `problem` is empty, the error that led here says why."""

    problem: str = ""


ResumePlan = ResumeHere | WaitForFiles | WaitForStandby | Translate | LostPosition
GapPlan = WaitForFiles | ResumeAtOldest | Skip | Fail


def plan_resume(facts: ResumeFacts) -> ResumePlan:
    """Decide how to resume at a saved position: there, by GTIDs, by time, or not at all. The source may have another
    binlog by now, after a failover or a reset, or may have purged it."""
    position = facts.position
    if facts.is_same_log:
        missing = _describe_missing(facts)
        if missing:
            return LostPosition(missing)
        return ResumeHere(facts.takes_gtids and facts.by_gtids and position.gtids is not None)
    if facts.match is LogMatch.RESET:
        return _plan_wait_for_files(facts) or LostPosition(describe_reset(facts))
    return _plan_translation(facts)


def _describe_missing(facts: ResumeFacts) -> str:
    """Return why the log that was followed does not have the position, or an empty text."""
    position, inventory = facts.position, facts.inventory
    size = inventory.sizes.get(position.file)
    if size is None:
        return f"it has no file {position.file}"
    if position.file != inventory.end.file and position.offset > size:
        return f"{position.file} ends at {size}: the server has lost the end of its log, as in a crash"
    return ""


def describe_reset(facts: ResumeFacts) -> str:
    """Return what a log that was reset, or lost its end, means for what was captured."""
    return f"the log of {facts.address} was reset, or lost its end: what came after {facts.position} may be lost"


def _plan_wait_for_files(facts: ResumeFacts) -> WaitForFiles | None:
    """Plan to wait for files: whoever copies a log into a folder may take a file away for a moment."""
    if not facts.is_copied or not log_ends_before(facts.inventory, facts.position):
        return None
    return WaitForFiles(
        f"{facts.address} ends at {facts.inventory.end}, and {facts.position} was captured: waiting for what is missing"
    )


def log_ends_before(inventory: LogInventory, position: Position) -> bool:
    """Return whether a log ends before a position, ignoring their epochs."""
    return replace(inventory.end, epoch=position.epoch) < position


def _plan_translation(facts: ResumeFacts) -> WaitForStandby | Translate:
    """Plan to find the position by its GTIDs, or by its time when there are none; wait while the standby lacks
    transactions."""
    gtids, executed, raises_epoch = facts.position.gtids, facts.inventory.end.gtids, facts.match is not LogMatch.SAME
    if gtids is None or not gtids.ranges or executed is None:
        return Translate(None, raises_epoch)
    lacking = gtids.minus(executed)
    if not lacking.ranges:
        return Translate(gtids, raises_epoch, needs_probe=gtids.is_mariadb and facts.takes_gtids)
    if facts.lacking_s < facts.window_s:
        text = f"{facts.address} does not have {lacking.text} yet, which is captured already"
        return WaitForStandby(lacking, text)
    # MariaDB refuses GTIDs that it does not have. MySQL is asked for what follows those that it has.
    return Translate(None if gtids.is_mariadb else gtids.minus(lacking), raises_epoch, lost=lacking)


def plan_gap(
    facts: ResumeFacts, gap: Gap, error: str, on_purged: OnPurged, *, can_repair: bool = False, is_hole: bool = False
) -> GapPlan:
    """Return what to do about a position that the source refused with `error`. With `is_hole` a file in the middle of
    the log is missing, and the inventory has only those after it."""
    waiting = None if is_hole else _plan_wait_for_files(facts)
    if waiting is not None:
        return waiting
    if not _is_gone(facts):
        return Fail()
    is_cut = facts.is_same_log and facts.position.file_number >= facts.inventory.oldest.file_number
    if gap.is_empty and facts.is_same_log and not is_cut:
        return ResumeAtOldest()
    problem = str(gap)
    if is_cut:
        problem = f"{facts.address} has lost the end of its log, {facts.position} was captured: {error}"
    if on_purged == "stop":
        remedy = "compare the data, then say with on_purged: latest, or `penstock position set`, where to resume"
        return Fail(f"{problem}: {remedy}")
    if on_purged == "repair" and not can_repair:
        return Fail(f"{problem}: and nothing is there that could repair it")
    is_reset = facts.match is LogMatch.RESET
    return Skip(
        problem,
        "replaced part" if is_cut or is_reset else "end",
        raises_epoch=is_cut or facts.match is not LogMatch.SAME,
        is_reset=is_reset,
        is_repaired=on_purged == "repair",
    )


def _is_gone(facts: ResumeFacts) -> bool:
    """Return whether the log does not have the position; if it has, the source refused it for another reason."""
    if not facts.is_same_log or _describe_missing(facts):
        return True
    return facts.position.offset > max(facts.inventory.sizes[facts.position.file], facts.inventory.end.offset)
