"""The thread that follows a source's log into the store, and gets over what sources do.

A transient error reconnects from the last complete transaction, with back-off. A source that stays dead is left for its
standby. A log that is another one than it was is gone on with in a new epoch: by GTIDs, or by time and a while before
it. What a log no longer has is never jumped silently.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.binlog.events.block import Block
from penstock.binlog.rows.count import count_rows
from penstock.binlog.xa.resolver import XaResolver
from penstock.config import InstanceSettings
from penstock.errors import LogHoleError, PenstockError, PositionLostError, SourceBehindError, SourceConnectionError
from penstock.instance.counters import Counters
from penstock.instance.gap import Gap, gap_of
from penstock.instance.lineage import Kinship, Lineage
from penstock.instance.place import Places
from penstock.instance.prepared import PreparedTransactions
from penstock.instance.source_log import SourceLog
from penstock.instance.state import InstanceState, StateBook
from penstock.model import GtidSet, Position
from penstock.source import LogStream, Origin, Seen, origin_of
from penstock.store import EventStore

log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 15.0
_ROOM_TURN_S = 0.5
_SAFE_S = 5.0  # for a store to bring a block to the disk
_OVER = frozenset({InstanceState.STOPPED, InstanceState.FAILED})

Repair = Callable[[Gap], None]


Stage = Callable[[Block], Block]
"""What is done with a block before it is put."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What capture works with."""

    settings: InstanceSettings
    log: SourceLog
    lineage: Lineage
    store: EventStore
    states: StateBook
    counters: Counters
    prepared: PreparedTransactions
    stages: tuple[tuple[str, Stage], ...] = ()
    on_jump: Callable[[Position | None, Position], None] = lambda _before, _place: None
    """What comes next, at a place, follows from all before another one, or from nothing that came."""


class Capture:
    """`run` is the thread's; the others may be called by anyone."""

    def __init__(self, parts: Parts, *, jitter: Callable[[], float], repair: Repair | None = None) -> None:
        self._parts, self._jitter, self._repair = parts, jitter, repair
        self.failure: PenstockError | None = None
        self.settled = threading.Event()  # the log flows, or never will
        self._stopping = threading.Event()
        self._awake = threading.Event()  # set: not paused
        self._awake.set()
        self._pause_reason = ""
        self._dead = ""  # why the source is taken for dead, although its log may still flow
        self._failures = 0  # since the log flowed last
        self._switched_at = -1e9
        self._lacking_since: float | None = None
        self._file = ""  # of which a block was put last
        self._put_at: float | None = None  # when something was put last
        self.is_caught_up = False  # nothing more waits at the source

    # -- by anyone

    def stop(self) -> None:
        self._stopping.set()
        self._awake.set()
        self._parts.log.stop()

    def pause(self, reason: str) -> None:
        """The log is not read until `resume`; what the store has is served."""
        self._pause_reason = reason
        self._awake.clear()
        self._parts.log.interrupt()

    def resume(self) -> None:
        self._dead = ""  # it may have come back meanwhile
        self._awake.set()

    def give_up_on(self, reason: str) -> None:
        """The source is dead, as far as others can tell."""
        if self._awake.is_set():
            self._dead = reason
            self._parts.log.interrupt()

    # -- the thread

    def run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            if not self._awake.is_set():
                self._enter(InstanceState.PAUSED, self._pause_reason)
                self.settled.set()
                self._awake.wait()
                continue
            self.is_caught_up = False
            try:
                self._follow()
                self._check_dead()
            except PositionLostError as error:
                if not self._get_over(error):
                    return
            except PenstockError as error:
                if self._stopping.is_set():
                    return
                if not error.transient:
                    self.fail(error)
                    return
                pause_s = _FIRST_PAUSE_S if not self._failures else min(2 * pause_s, _LONGEST_PAUSE_S)
                self._failures += isinstance(error, SourceConnectionError)
                if not self._has_switched(error):
                    self._parts.counters.reconnects += 1
                    is_behind = isinstance(error, SourceBehindError)
                    wait_s = (_FIRST_PAUSE_S if is_behind else pause_s) * (0.5 + self._jitter())
                    self._enter(InstanceState.SWITCHING if is_behind else InstanceState.RECONNECTING, str(error))
                    level = logging.DEBUG if is_behind else logging.WARNING  # that was said when the wait began
                    log.log(level, "reconnecting destination=%s in_s=%.1f reason=%s", self._destination, wait_s, error)
                    self._stopping.wait(wait_s)
            except Exception as error:
                log.debug("capture died", exc_info=error)
                self.fail(PenstockError(f"capture of '{self._destination}' died: {error!r}"))
                return

    @property
    def _destination(self) -> str:
        return self._parts.settings.destination

    def _enter(self, state: InstanceState, reason: str = "") -> None:
        self._parts.states.enter(state, reason, unless=_OVER)

    def fail(self, error: PenstockError) -> None:
        """For good: every consumer gets this error."""
        self.failure = self.failure or error
        self._parts.states.enter(InstanceState.FAILED, str(error), unless=frozenset({InstanceState.STOPPED}))
        self._parts.store.fail(error)
        self.settled.set()

    def _check_dead(self) -> None:
        reason, self._dead = self._dead, ""
        if reason:
            self._failures = self._parts.settings.failover.retries
            raise SourceConnectionError(reason)

    # -- following

    def _follow(self) -> None:
        parts = self._parts
        start, by_gtids = self._found(parts.store.discard_incomplete())
        parts.prepared.resume(start)
        resolver = XaResolver(parts.prepared)
        with parts.log.followed(start, by_gtids=by_gtids) as stream:
            blocks, waited_s = iter(stream), 0.0
            while True:
                began = parts.counters.clock()
                block = next(blocks, stream)
                self._count_time(began, stream.waited_s - waited_s)
                waited_s = stream.waited_s
                if block is stream or not self._awake.is_set() or self._dead:
                    return
                self._check_mark(stream)
                if stream.is_flowing:
                    self._failures = 0
                    self._enter(InstanceState.FOLLOWING)
                    self.settled.set()
                self.is_caught_up = block is None
                if isinstance(block, Block):
                    parts.counters.saw(block)
                    # A server that is asked by GTIDs sends the head of the file that the place is in.
                    own = block if block.start >= start else block.between(start, block.end)
                    for part in resolver.resolve(own):
                        if not self._put(part):
                            return
                    if own.boundaries.size:
                        parts.prepared.reach(own.end_of(int(own.boundaries[-1])))
                else:
                    parts.counters.lived()
                parts.prepared.tend(lambda: parts.store.acked)
                self._acknowledge(stream)

    def _count_time(self, began: float, waited_s: float) -> None:
        seconds = self._parts.counters.seconds
        seconds["source"] += waited_s
        seconds["index"] += self._parts.counters.clock() - began - waited_s

    def _check_mark(self, stream: LogStream) -> None:
        """Of each file, before anything of it is put."""
        mark, lineage, source = stream.mark, self._parts.lineage, self._parts.log.origin
        if mark is None or lineage.record.marks.get(mark.file) == mark:
            return
        if not lineage.is_known(mark):
            raise PositionLostError(f"{mark.file} of {source.address} is another file of that name than before")
        if not stream.is_continued:
            # As after a RESET: the server goes on in a file that does not follow the one that it has deleted.
            seen, before = source.look(), self._parts.store.latest
            if lineage.judge(seen, before, source.mark_of) is not Kinship.SAME:
                raise PositionLostError(f"the log of {source.address} began anew while it was read")
        lineage.note(mark)

    def _acknowledge(self, stream: LogStream) -> None:
        """With semi-sync, the commits that wait for what the store has, also after a crash."""
        if stream.semi_sync and stream.wants_ack:
            kept = self._parts.store.wait_until_safe(_SAFE_S)
            if kept is not None:
                stream.acknowledge(kept)

    def _put(self, block: Block) -> bool:
        """False when it is not to wait any longer."""
        parts = self._parts
        if not len(block):
            return True
        if block.file != self._file:
            # A server that was killed may have left a part of a transaction at the end of the file before.
            parts.store.discard_incomplete()
            self._file = block.file
        for name, stage in parts.stages:
            with parts.counters.timed(name):
                block = stage(block)
        if not len(block):
            return True
        parts.counters.kept_events += len(block)
        parts.counters.kept_rows += count_rows(block)
        self._put_at = time.time()
        with parts.counters.timed("store"):
            if parts.store.put(block, timeout_s=0):
                return True
            began = parts.counters.clock()
            self._enter(InstanceState.BLOCKED, parts.store.why_full)
            try:
                while not parts.store.put(block, timeout_s=_ROOM_TURN_S):
                    if self._stopping.is_set() or not self._awake.is_set() or self._dead:
                        return False
                    self._enter(InstanceState.BLOCKED, parts.store.why_full)
            finally:
                parts.counters.blocked_s += parts.counters.clock() - began
            self._enter(InstanceState.FOLLOWING)
            return True

    # -- finding the place

    def _found(self, start: Position) -> tuple[Position, bool]:
        """Where to go on, and whether by its GTIDs: in the log that was followed, or in the one that has its place."""
        parts, source = self._parts, self._parts.log.origin
        seen = source.look()
        kinship = parts.lineage.judge(seen, start, source.mark_of)
        if self._stopping.is_set():
            raise SourceConnectionError(f"instance '{self._destination}' was stopped")
        if kinship is Kinship.SAME and start.epoch == parts.lineage.epoch:
            self._check_there(start, seen)
            parts.lineage.adopt(source.address, seen.server)
            return start, source.takes_gtids and parts.lineage.record.by_gtids and start.gtids is not None
        self._enter(InstanceState.SWITCHING, f"{source.address} has {kinship.value}")
        if kinship is Kinship.ANEW:
            self._wait_for_copies(start, seen)
            raise PositionLostError(self._anew(start))
        gtids = self._usable_gtids(start, seen, source)
        by_gtids = gtids is not None and source.takes_gtids
        epoch = parts.lineage.epoch + (kinship is not Kinship.SAME)
        places = Places(source, epoch, parts.settings.failover.window_s)
        place = places.after(gtids) if gtids is not None else places.by_time(start, not_after=self._put_at)
        if kinship is not Kinship.SAME:
            parts.lineage.rise(source.address, seen.server, by_gtids=by_gtids)
        parts.on_jump(start if by_gtids else None, place)  # by time, statements may come twice
        parts.store.go_on_at(place, parts.log.translated)
        log.warning(
            "going on in another log destination=%s source=%s before=%s now=%s by=%s",
            self._destination, source.address, start, place, "GTIDs" if by_gtids else "position",
        )  # fmt: skip
        return place, by_gtids

    def _check_there(self, start: Position, seen: Seen) -> None:
        size = seen.sizes.get(start.file)
        if size is None:
            raise PositionLostError(f"it has no file {start.file}")
        if start.file != seen.end.file and start.offset > size:
            raise PositionLostError(
                f"{start.file} ends at {size}: the server has lost the end of its log, as in a crash"
            )

    def _usable_gtids(self, start: Position, seen: Seen, source: Origin) -> GtidSet | None:
        """After which to go on; None when time must do. A standby may lack for a while what was captured already: then
        it is waited for."""
        if start.gtids is None or not start.gtids.ranges or seen.end.gtids is None:
            return None
        lacking = start.gtids.minus(seen.end.gtids)
        if not lacking.ranges:
            self._lacking_since = None
            is_taken = not start.gtids.is_mariadb or not source.takes_gtids or self._takes_gtids(start, source)
            return start.gtids if is_taken else None
        now, window_s = time.monotonic(), self._parts.settings.failover.window_s
        if self._lacking_since is None:
            self._lacking_since = now
            log.warning(
                "the server that is followed now is behind destination=%s source=%s lacks=%s: waiting up to %g s",
                self._destination, source.address, lacking.text, window_s,
            )  # fmt: skip
        if now - self._lacking_since < window_s:
            raise SourceBehindError(f"{source.address} does not have {lacking.text} yet, which is captured already")
        log.error(
            "captured, and not on the server that is followed now destination=%s source=%s gtids=%s: compare the data",
            self._destination, source.address, lacking.text,
        )  # fmt: skip
        self._lacking_since = None
        # MariaDB refuses GTIDs that it does not have. Those that MySQL lacks are not waited for any more.
        return None if start.gtids.is_mariadb else start.gtids.minus(lacking)

    def _takes_gtids(self, start: Position, source: Origin) -> bool:
        """A MariaDB whose numbers have passed ours may have got there by transactions of its own."""
        try:
            with source.stream(start, by_gtids=True, verify=False) as stream:
                return any(stream.is_flowing for _ in stream)
        except PositionLostError as error:
            log.error(  # noqa: TRY400 - the reason is in its text
                "the log is not that of the source destination=%s source=%s: %s; going on by time: compare the data",
                self._destination, source.address, error,
            )  # fmt: skip
            return False

    # -- switching

    def _has_switched(self, error: PenstockError) -> bool:
        """To the other server, if there is one, it answers, and the last switch is long enough ago."""
        parts, failover = self._parts, self._parts.settings.failover
        others = [one for one in parts.settings.sources if one is not parts.log.source]
        since_s = time.monotonic() - self._switched_at
        if not others or self._failures < failover.retries or since_s < failover.floor_s:
            return False
        (other,) = others
        try:
            origin = origin_of(other)
            origin.answers(failover.query, failover.interval_s)
            origin.check(is_standby=True)
        except PenstockError as problem:
            log.warning("no switch destination=%s reason=%s; and %s", self._destination, error, problem)
            return False
        self._enter(InstanceState.SWITCHING, f"to {other.address}: {error}")
        self._switched_at, self._failures, self._dead = time.monotonic(), 0, ""
        parts.counters.switches += 1
        parts.log.switch_to(other)
        return True

    # -- gaps

    def _anew(self, start: Position) -> str:
        address = self._parts.log.origin.address
        return f"the log of {address} began anew, or lost its end: what came after {start} may be lost"

    def _get_over(self, error: PositionLostError) -> bool:
        """What the log no longer has: by policy. False when it stops."""
        try:
            return self._get_over_gap(error)
        except PenstockError as problem:
            if problem.transient:
                self._enter(InstanceState.RECONNECTING, str(problem))
                return not self._stopping.wait(_FIRST_PAUSE_S)
            self.fail(problem)
            return False

    def _get_over_gap(self, error: PositionLostError) -> bool:
        parts, source = self._parts, self._parts.log.origin
        start, seen = parts.store.latest, source.look()
        kinship = parts.lineage.judge(seen, start, source.mark_of)
        if isinstance(error, LogHoleError):
            seen = seen.after(start.file)
        else:
            self._wait_for_copies(start, seen)
        if not self._is_gone(start, seen, kinship):
            self.fail(error)
            return False
        is_same = kinship is Kinship.SAME and start.epoch == parts.lineage.epoch
        is_cut = is_same and start.file_number >= seen.oldest.file_number
        # It may have been noticed by what the source answered, before it was looked at.
        reason = self._anew(start) if kinship is Kinship.ANEW else str(error)
        gap = gap_of(source, start if is_same else replace(start, gtids=None), seen, reason)
        if gap.is_empty and is_same and not is_cut:
            log.info("nothing is missing destination=%s: %s", self._destination, gap)
            parts.store.go_on_at(replace(seen.oldest, epoch=start.epoch, gtids=start.gtids, timestamp=start.timestamp))
            return True
        text = f"{source.address} has lost the end of its log, {start} was captured: {error}" if is_cut else str(gap)
        match parts.settings.on_purged:
            case "stop":
                remedy = "compare the data, then say with on_purged: latest, or `penstock position set`, where to go on"
                self.fail(PositionLostError(f"{text}: {remedy}"))
                return False
            case "repair" if self._repair is None:
                self.fail(PositionLostError(f"{text}: and nothing is there that could repair it"))
                return False
            case "repair" if self._repair is not None:
                self._repair(gap)
            case _:
                log.error("changes are skipped destination=%s: %s", self._destination, text)
        first = self._first_new(start, seen, source) if is_cut or kinship is Kinship.ANEW else seen.end
        epoch = parts.lineage.epoch
        if is_cut or kinship is not Kinship.SAME:
            is_anew = kinship is Kinship.ANEW
            epoch = parts.lineage.rise(source.address, seen.server, by_gtids=False, is_anew=is_anew)
        place = replace(first, epoch=epoch)
        parts.on_jump(None, place)
        parts.store.go_on_at(place)
        return True

    def _wait_for_copies(self, start: Position, seen: Seen) -> None:
        """Somebody who brings the files of a log may take one away for a moment."""
        source = self._parts.log.origin
        is_short = replace(seen.end, epoch=start.epoch) < start
        if source.is_copied and is_short and self._parts.lineage.has_files_of(seen, source.mark_of):
            raise SourceConnectionError(
                f"{source.address} ends at {seen.end}, and {start} was captured: waiting for what is missing"
            )

    def _first_new(self, start: Position, seen: Seen, source: Origin) -> Position:
        """Of a log that began anew all is new; of one that lost its end, what is in the last file may be."""
        known = self._parts.lineage.record.marks.get(start.file)
        if start.file in seen.sizes and known is not None and source.mark_of(start.file) == known:
            return replace(seen.oldest, file=start.file)
        return seen.oldest

    def _is_gone(self, start: Position, seen: Seen, kinship: Kinship) -> bool:
        """Not only refused for another reason."""
        if kinship is not Kinship.SAME or start.epoch != self._parts.lineage.epoch:
            return True
        size = seen.sizes.get(start.file)
        return size is None or (start.file != seen.end.file and start.offset > size) or start.offset > max(
            size, seen.end.offset
        )  # fmt: skip
