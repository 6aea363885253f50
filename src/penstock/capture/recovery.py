"""Finds where capture resumes after a start, a reconnect, a failover or a loss.

It asks the source, lets the pure functions of `resume` decide, and does what they decided.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from penstock.capture.context import CaptureContext, Repair
from penstock.capture.gap import describe_gap
from penstock.capture.log_identity import LogMatch
from penstock.capture.position_resolver import PositionResolver
from penstock.capture.resume import (
    Fail,
    LostPosition,
    ResumeAtOldest,
    ResumeFacts,
    ResumeHere,
    Skip,
    Translate,
    WaitForFiles,
    WaitForStandby,
    describe_reset,
    log_ends_before,
    plan_gap,
    plan_resume,
)
from penstock.capture.state import InstanceState
from penstock.errors import LogHoleError, NotRunningError, PositionLostError, SourceBehindError, SourceConnectionError
from penstock.model import GtidSet, Position
from penstock.source import BinlogSource, LogInventory

log = logging.getLogger(__name__)

_OVER = frozenset({InstanceState.STOPPED, InstanceState.FAILED})


class Recovery:
    """Decides and carries out how capture resumes, for the capture thread alone.

    recovery = Recovery(context, is_stopping=stopping.is_set)
    position, by_gtids = recovery.resume(store.discard_incomplete())
    """

    def __init__(
        self, context: CaptureContext, *, is_stopping: Callable[[], bool], repair: Repair | None = None
    ) -> None:
        self._context, self._is_stopping, self._repair = context, is_stopping, repair
        self._lacking_since: float | None = None  # when the source was first seen to lack captured transactions
        self.put_at: float | None = None  # when something was put into the store last, in seconds since 1970

    @property
    def _destination(self) -> str:
        """Return the name of the instance."""
        return self._context.settings.destination

    def resume(self, start: Position) -> tuple[Position, bool]:
        """Return the position at which to resume after `start`, and whether to request it from the source by its
        GTIDs."""
        context, source = self._context, self._context.log.binlog_source
        facts = self._collect_facts(start, source, source.inventory())
        if self._is_stopping():
            raise NotRunningError(f"instance '{self._destination}' was stopped")
        if not facts.is_same_log:
            reason = f"{source.address} has {facts.match.value}"
            context.states.enter(InstanceState.SWITCHING, reason, unless=_OVER)
        match plan_resume(facts):
            case ResumeHere(by_gtids):
                context.identity.save_server(source.address, facts.inventory.server)
                return start, by_gtids
            case LostPosition(reason):
                raise PositionLostError(reason)
            case WaitForFiles(reason):
                raise SourceConnectionError(reason)
            case WaitForStandby(lacking, reason):
                self._log_lacking(lacking, source.address)
                raise SourceBehindError(reason)
            case Translate() as plan:
                return self._translate(facts, plan, source)

    def _collect_facts(self, position: Position, source: BinlogSource, inventory: LogInventory) -> ResumeFacts:
        """Return all that the plan for resuming at a position depends on."""
        identity, settings = self._context.identity, self._context.settings
        since = self._lacking_since
        is_short = log_ends_before(inventory, position)
        return ResumeFacts(
            source.address,
            position,
            identity.epoch,
            identity.compare(inventory, position, source.file_identity),
            inventory,
            takes_gtids=source.takes_gtids,
            by_gtids=identity.record.by_gtids,
            is_copied=source.is_copied and is_short and identity.shares_files_with(inventory, source.file_identity),
            lacking_s=0.0 if since is None else time.monotonic() - since,
            window_s=settings.failover.window_s,
        )

    def _log_lacking(self, lacking: GtidSet, address: str) -> None:
        """Note and log when the standby was first found to lack transactions that were captured."""
        if self._lacking_since is not None:
            return
        self._lacking_since = time.monotonic()
        log.warning(
            "waiting for standby to catch up destination=%s source=%s missing_gtids=%s timeout_s=%g",
            self._destination, address, lacking.text, self._context.settings.failover.window_s,
        )  # fmt: skip

    def _translate(self, facts: ResumeFacts, plan: Translate, source: BinlogSource) -> tuple[Position, bool]:
        """Carry out a plan to translate: return the position in the new log, and whether to request it by GTIDs."""
        context, start, gtids = self._context, facts.position, plan.gtids
        self._lacking_since = None
        if plan.lost is not None:
            log.error(
                "captured transactions missing on the new source destination=%s source=%s gtids=%s: compare the target"
                " with the source",
                self._destination, source.address, plan.lost.text,
            )  # fmt: skip
        if plan.needs_probe and not self._accepts_gtids(start, source):
            gtids = None
        by_gtids = gtids is not None and source.takes_gtids
        resolver = PositionResolver(
            source, facts.epoch + plan.raises_epoch, facts.window_s, destination=self._destination
        )
        if gtids is not None:
            position = resolver.find_after_gtids(gtids)
        else:
            position = resolver.find_at_time_of(start, not_after=self.put_at)
        if plan.raises_epoch:
            context.identity.raise_epoch(source.address, facts.inventory.server, by_gtids=by_gtids)
        context.on_jump(start if by_gtids else None, position)  # by time, statements may be read twice
        context.store.continue_at(position, context.log.translate)
        log.warning(
            "resuming in another binlog destination=%s source=%s previous=%s position=%s by=%s",
            self._destination, source.address, start, position, "GTIDs" if by_gtids else "position",
        )  # fmt: skip
        return position, by_gtids

    def _accepts_gtids(self, start: Position, source: BinlogSource) -> bool:
        """Return whether a MariaDB has the GTIDs of `start` from the same history: other transactions of that server
        may have used the same numbers."""
        try:
            with source.stream(start, by_gtids=True, verify=False) as stream:
                return any(stream.is_flowing for _ in stream)
        except PositionLostError as error:
            log.error(  # noqa: TRY400 - the reason is in its text
                "GTIDs not usable destination=%s source=%s reason=%s: resuming by time; compare the target with the"
                " source",
                self._destination, source.address, error,
            )  # fmt: skip
            return False

    def close_gap(self, error: PositionLostError) -> None:
        """Move the store past what the log no longer has, as `on_purged` says; raise when capture cannot resume."""
        context, source = self._context, self._context.log.binlog_source
        start, inventory = context.store.latest, source.inventory()
        facts = self._collect_facts(start, source, inventory)
        is_hole = isinstance(error, LogHoleError)
        if is_hole:
            facts = replace(facts, inventory=inventory.without_files_up_to(start.file))
        # A reset may have been noticed by what the source answered, before its inventory was taken.
        reason = describe_reset(facts) if facts.match is LogMatch.RESET else str(error)
        missing_after = start if facts.is_same_log else replace(start, gtids=None)
        gap = describe_gap(source, missing_after, facts.inventory, reason)
        settings = context.settings
        can_repair = self._repair is not None
        match plan_gap(facts, gap, str(error), settings.on_purged, can_repair=can_repair, is_hole=is_hole):
            case WaitForFiles(text):
                raise SourceConnectionError(text)
            case Fail(problem):
                raise PositionLostError(problem) if problem else error
            case ResumeAtOldest():
                log.info(
                    "gap in the binlog has no transactions destination=%s gap=%s: nothing is lost",
                    self._destination,
                    gap,
                )
                oldest = facts.inventory.oldest
                context.store.continue_at(
                    replace(oldest, epoch=start.epoch, gtids=start.gtids, timestamp=start.timestamp)
                )
            case Skip() as plan:
                if plan.is_repaired and self._repair is not None:
                    self._repair(gap)
                else:
                    log.error(
                        "changes skipped destination=%s after=%s reason=%s: compare the target with the source",
                        *(self._destination, start, plan.problem),
                    )
                self._skip(facts, plan, source)

    def _skip(self, facts: ResumeFacts, plan: Skip, source: BinlogSource) -> None:
        """Carry out a plan to skip: resume after the gap, in a new epoch if the log was replaced."""
        context, inventory = self._context, facts.inventory
        first = inventory.end if plan.to == "end" else self._find_replaced_part(facts, source)
        epoch = facts.epoch
        if plan.raises_epoch:
            epoch = context.identity.raise_epoch(
                source.address, inventory.server, by_gtids=False, is_reset=plan.is_reset
            )
        position = replace(first, epoch=epoch)
        context.on_jump(None, position)
        context.store.continue_at(position)

    def _find_replaced_part(self, facts: ResumeFacts, source: BinlogSource) -> Position:
        """Return where what is new begins: a log that was reset is new as a whole; in one that lost its end, the file
        that it ended in may have new events."""
        file, inventory = facts.position.file, facts.inventory
        known = self._context.identity.record.files.get(file)
        if file in inventory.sizes and known is not None and source.file_identity(file) == known:
            return replace(inventory.oldest, file=file)
        return inventory.oldest
