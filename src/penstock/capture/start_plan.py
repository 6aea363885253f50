"""Decides how the store of an instance continues at a start, from plain data: nothing is asked or changed here.

`plan_resume` decides what the source's log means for the end of the store; a start acts on it before anything is
captured:

| `plan_resume` says                       | a start                                                              |
|------------------------------------------|----------------------------------------------------------------------|
| ResumeHere                               | KeepStore, naming clients whose next changes were purged             |
| LostPosition in the log that is followed | with `on_purged: stop` RestartStore at the first cursor that the log |
|                                          | has, else LostPosition; KeepStore otherwise: capture closes the gap  |
| Translate in the current epoch           | TranslateStore: the source was switched, the store has none of it yet|
| Translate into a new epoch, WaitFor…,    | LeaveToCapture: its thread waits, fails over or closes the gap       |
| LostPosition in a log that was reset     |                                                                      |
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.capture.gap import Gap
from penstock.capture.log_identity import LogMatch
from penstock.capture.resume import LostPosition, OnPurged, ResumeFacts, ResumeHere, Translate, plan_resume
from penstock.model import Position


@dataclass(frozen=True, slots=True)
class StartFacts:
    """The plain data that decides how a store continues at a start.

    plan = plan_start(StartFacts(resume_facts, first, oldest, cursors, "stop"))
    """

    resume: ResumeFacts  # of the position at which the store ends
    first: Position  # where the store begins
    oldest: Position  # where the source's log begins
    cursors: Mapping[int, Position]  # by client
    on_purged: OnPurged
    begins_in_log: bool = True  # an empty store would begin in the log that the source has now
    gap: Gap | None = None  # between the end of the store and the log; None when the log begins before that

    @property
    def is_in_log(self) -> bool:
        """Return whether the store continues in the log that the source has now, without a switch."""
        return self.begins_in_log and self.resume.is_same_log


@dataclass(frozen=True, slots=True)
class KeepStore:
    """The decision that the store continues as it is. The changes that `lost_clients` need next were purged."""

    lost_clients: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartStore:
    """The decision that the store begins again, empty, at a later position: the changes that `lost_clients` need next
    were purged, and other clients resume."""

    position: Position
    lost_clients: tuple[int, ...]
    gap: Gap


@dataclass(frozen=True, slots=True)
class TranslateStore:
    """The decision that the store continues at the corresponding position of the log that the source has now."""


@dataclass(frozen=True, slots=True)
class LeaveToCapture:
    """The decision that the capture thread finds the position to resume at: it may have to wait for that."""


StartPlan = KeepStore | RestartStore | TranslateStore | LeaveToCapture | LostPosition


def plan_start(facts: StartFacts) -> StartPlan:
    """Return how the store continues when the instance starts."""
    match plan_resume(facts.resume):
        case Translate() if facts.resume.is_older_epoch:
            return TranslateStore()
        case ResumeHere() | LostPosition() if facts.is_in_log:
            if facts.on_purged != "stop":
                return KeepStore()  # capture skips or repairs the gap
            return KeepStore(_find_lost_clients(facts)) if facts.gap is None else _plan_purged(facts, facts.gap)
        case _:
            return LeaveToCapture()


def _find_lost_clients(facts: StartFacts) -> tuple[int, ...]:
    """Return the clients whose next changes neither the store nor the log has."""
    begin = min(facts.oldest, facts.first)
    return tuple(
        client_id
        for client_id, position in facts.cursors.items()
        if position < begin and position.epoch == facts.oldest.epoch
    )


def _plan_purged(facts: StartFacts, gap: Gap) -> KeepStore | RestartStore | LostPosition:
    """Plan for a log that begins after the end of the store: only a client that needs what was purged is stopped."""
    if gap.is_empty:
        return KeepStore()  # capture resumes where the log begins
    lost = tuple(client_id for client_id, position in facts.cursors.items() if position < facts.oldest)
    later = [position for position in facts.cursors.values() if position >= facts.oldest]
    if later:
        return RestartStore(min(later), lost, gap)
    remedy = "choose a later start, or remove the store's files if there are any"
    if lost:
        remedy = f"say with `penstock position set` where client {', '.join(map(str, lost))} resumes"
    return LostPosition(f"{gap}: {remedy}; SHOW BINARY LOGS lists what it has")


def needs_new_epoch(match: LogMatch, saved: Position | None) -> bool:
    """Return whether a start begins a new epoch at once: the log is another one, and there is no position to resume at
    that would have to be translated."""
    return match is not LogMatch.SAME and saved is None


def choose_empty_start(
    start: Position,
    cursors: Iterable[Position],
    is_in_log: Callable[[Position], bool],
    bytes_between: Callable[[Position, Position], int],
    limit_bytes: int,
) -> Position:
    """Return where an empty store begins: not at the cursor of a client that is farther behind the others than
    `limit_bytes`, because they would wait until all of that was read again. Such a client is served from the source's
    log."""
    latest = max(cursors := [*cursors], default=start)
    if latest.epoch != start.epoch:
        return start
    near = [
        cursor
        for cursor in cursors
        if cursor.epoch == latest.epoch and is_in_log(cursor) and bytes_between(cursor, latest) <= limit_bytes
    ]
    return max(start, min(near, default=start))
