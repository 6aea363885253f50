"""The thread that follows a source's log into the store, and gets over what sources do.

A transient error reconnects from the last complete transaction, with back-off. A source that stays dead is left for its
standby. `Recovery` finds where to resume; what a log no longer has is never skipped silently.
"""

import logging
import threading
import time
from collections.abc import Callable

from penstock.backoff import Backoff
from penstock.binlog.events.block import Block
from penstock.binlog.rows.count import count_rows
from penstock.binlog.xa.resolver import XaResolver
from penstock.capture.context import CaptureContext, Repair
from penstock.capture.log_identity import LogMatch
from penstock.capture.recovery import Recovery
from penstock.capture.state import InstanceState
from penstock.errors import PenstockError, PositionLostError, SourceBehindError, SourceConnectionError
from penstock.source import LogStream, open_source

log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 15.0
_ROOM_TURN_S = 0.5
_SAFE_S = 5.0  # for a store to bring a block to the disk
_OVER = frozenset({InstanceState.STOPPED, InstanceState.FAILED})


class Capture:
    """The capture loop of one instance: reads the source's log and puts blocks into the store. `run` is the thread; any
    thread may call the other methods.

        capture = Capture(context, jitter=random.random)
        threading.Thread(target=capture.run).start()
    """

    def __init__(self, context: CaptureContext, *, jitter: Callable[[], float], repair: Repair | None = None) -> None:
        self._context = context
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, spread=0.5, random=jitter)
        self.failure: PenstockError | None = None
        self.settled = threading.Event()  # the log flows, or never will
        self._stopping = threading.Event()
        self._awake = threading.Event()  # set: not paused
        self._awake.set()
        self._pause_reason = ""
        self._dead = ""  # why the source is taken for dead, although its log may still flow
        self._failures = 0  # since the log flowed last
        self._switched_at = -1e9
        self._file = ""  # of which a block was put last
        self._recovery = Recovery(context, is_stopping=self._stopping.is_set, repair=repair)
        self.is_caught_up = False  # nothing more waits at the source

    # -- by anyone

    def stop(self) -> None:
        """End capture soon; the thread that runs `run` returns."""
        self._stopping.set()
        self._awake.set()
        self._context.log.stop()

    def pause(self, reason: str) -> None:
        """Stop reading the log until `resume`; what the store has is still served."""
        self._pause_reason = reason
        self._awake.clear()
        self._context.log.interrupt()

    def resume(self) -> None:
        """Read the log again after `pause`."""
        self._dead = ""  # it may have come back meanwhile
        self._awake.set()

    def mark_source_dead(self, reason: str) -> None:
        """Treat the source as dead, because the watchdog found that it does not answer."""
        if self._awake.is_set():
            self._dead = reason
            self._context.log.interrupt()

    # -- the thread

    def run(self) -> None:
        """Follow the log until `stop` or an error that ends capture: reconnect, switch to the standby, pause and
        resume."""
        attempts = 1
        while not self._stopping.is_set():
            if not self._awake.is_set():
                self._enter_state(InstanceState.PAUSED, self._pause_reason)
                self.settled.set()
                self._awake.wait()
                continue
            self.is_caught_up = False
            try:
                self._follow_log()
                self._raise_if_source_dead()
            except PositionLostError as error:
                if not self._recover_from_gap(error):
                    return
            except PenstockError as error:
                if self._stopping.is_set():
                    return
                if not error.transient:
                    self.fail(error)
                    return
                attempts = attempts + 1 if self._failures else 1
                self._failures += isinstance(error, SourceConnectionError)
                if not self._switch_to_standby(error):
                    self._context.counters.reconnects += 1
                    is_behind = isinstance(error, SourceBehindError)
                    delay_s = self._backoff.delay_s(1 if is_behind else attempts)
                    self._enter_state(InstanceState.SWITCHING if is_behind else InstanceState.RECONNECTING, str(error))
                    level = logging.DEBUG if is_behind else logging.WARNING  # that was said when the wait began
                    log.log(
                        level,
                        "reconnect scheduled destination=%s delay_s=%.1f reason=%s",
                        self._destination,
                        delay_s,
                        error,
                    )
                    self._stopping.wait(delay_s)
            except Exception as error:
                log.debug("capture failed unexpectedly destination=%s", self._destination, exc_info=error)
                self.fail(PenstockError(f"capture of '{self._destination}' died: {error!r}"))
                return

    @property
    def _destination(self) -> str:
        """Return the name of the instance."""
        return self._context.settings.destination

    def _enter_state(self, state: InstanceState, reason: str = "") -> None:
        """Enter a state, unless capture has ended."""
        self._context.states.enter(state, reason, unless=_OVER)

    def fail(self, error: PenstockError) -> None:
        """End capture for good: every consumer gets this error."""
        self.failure = self.failure or error
        self._context.states.enter(InstanceState.FAILED, str(error), unless=frozenset({InstanceState.STOPPED}))
        self._context.store.fail(error)
        self.settled.set()

    def _raise_if_source_dead(self) -> None:
        """Raise SourceConnectionError if the watchdog found the source dead."""
        reason, self._dead = self._dead, ""
        if reason:
            self._failures = self._context.settings.failover.retries
            raise SourceConnectionError(reason)

    # -- following

    def _follow_log(self) -> None:
        """Read the log from where to resume, and put its blocks into the store until something interrupts that."""
        context = self._context
        start, by_gtids = self._recovery.resume(context.store.discard_incomplete())
        context.prepared.resume(start)
        resolver = XaResolver(context.prepared)
        with context.log.open_for_capture(start, by_gtids=by_gtids) as stream:
            blocks, waited_s = iter(stream), 0.0
            while True:
                began = context.counters.clock()
                block = next(blocks, stream)
                self._count_read_time(began, stream.waited_s - waited_s)
                waited_s = stream.waited_s
                if block is stream or not self._awake.is_set() or self._dead:
                    return
                self._check_file_identity(stream)
                if stream.is_flowing:
                    self._failures = 0
                    self._enter_state(InstanceState.FOLLOWING)
                    self.settled.set()
                self.is_caught_up = block is None
                if isinstance(block, Block):
                    context.counters.count_block(block)
                    # A server that is asked by GTIDs sends the head of the file that the position is in.
                    own = block if block.start >= start else block.between(start, block.end)
                    for part in resolver.resolve(own):
                        if not self._put_block(part):
                            return
                    if own.boundaries.size:
                        context.prepared.set_resolved(own.end_of_event(int(own.boundaries[-1])))
                else:
                    context.counters.count_heartbeat()
                context.prepared.save_and_forget(lambda: context.store.acked)
                self._acknowledge_persisted(stream)

    def _count_read_time(self, began: float, waited_s: float) -> None:
        """Count the time of one read: `waited_s` for the source, the rest for indexing."""
        seconds = self._context.counters.seconds
        seconds["source"] += waited_s
        seconds["index"] += self._context.counters.clock() - began - waited_s

    def _check_file_identity(self, stream: LogStream) -> None:
        """Check the identity of each log file before anything of it is put into the store."""
        mark, identity, source = stream.file_identity, self._context.identity, self._context.log.binlog_source
        if mark is None or identity.record.files.get(mark.file) == mark:
            return
        if not identity.is_known_file(mark):
            raise PositionLostError(f"{mark.file} of {source.address} is another file of that name than before")
        if not stream.is_continued:
            # As after a RESET: the server continues in a file that does not follow the one that it has deleted.
            inventory, before = source.inventory(), self._context.store.latest
            if identity.compare(inventory, before, source.file_identity) is not LogMatch.SAME:
                raise PositionLostError(f"the log of {source.address} was reset while it was read")
        identity.save_file(mark)

    def _acknowledge_persisted(self, stream: LogStream) -> None:
        """Acknowledge to a semi-sync source what the store has persisted, so that the commits that wait for it
        return."""
        if stream.semi_sync and stream.wants_ack:
            kept = self._context.store.wait_until_durable(_SAFE_S)
            if kept is not None:
                stream.acknowledge(kept)

    def _put_block(self, block: Block) -> bool:
        """Put a block into the store; return False when the wait for room was interrupted."""
        context = self._context
        if not len(block):
            return True
        if block.file != self._file:
            # A server that was killed may have left a part of a transaction at the end of the file before.
            context.store.discard_incomplete()
            self._file = block.file
        for name, stage in context.stages:
            with context.counters.measure(name):
                block = stage(block)
        if not len(block):
            return True
        context.counters.kept_events += len(block)
        if context.counters.kept_rows is not None:
            context.counters.kept_rows += count_rows(block)
        self._recovery.put_at = time.time()
        with context.counters.measure("store"):
            if context.store.put(block, timeout_s=0):
                return True
            began = context.counters.clock()
            self._enter_state(InstanceState.BLOCKED, context.store.why_full)
            try:
                while not context.store.put(block, timeout_s=_ROOM_TURN_S):
                    if self._stopping.is_set() or not self._awake.is_set() or self._dead:
                        return False
                    self._enter_state(InstanceState.BLOCKED, context.store.why_full)
            finally:
                context.counters.blocked_s += context.counters.clock() - began
            self._enter_state(InstanceState.FOLLOWING)
            return True

    # -- switching

    def _switch_to_standby(self, error: PenstockError) -> bool:
        """Switch to the other server and return True; False if there is none, it does not answer, or the last switch is
        too recent."""
        context, failover = self._context, self._context.settings.failover
        others = [source for source in context.settings.sources if source is not context.log.source]
        since_s = time.monotonic() - self._switched_at
        if not others or self._failures < failover.retries or since_s < failover.floor_s:
            return False
        (other,) = others
        try:
            origin = open_source(other, self._context.settings.destination)
            origin.check_answers(failover.query, failover.interval_s)
            origin.check(is_standby=True)
        except PenstockError as problem:
            log.warning(
                "switch to standby failed destination=%s primary_error=%s standby_error=%s",
                self._destination,
                error,
                problem,
            )
            return False
        self._enter_state(InstanceState.SWITCHING, f"to {other.address}: {error}")
        self._switched_at, self._failures, self._dead = time.monotonic(), 0, ""
        context.counters.switches += 1
        context.log.switch_to(other)
        return True

    # -- gaps

    def _recover_from_gap(self, error: PositionLostError) -> bool:
        """Resume after what the log no longer has, as `on_purged` says; return False when capture ends."""
        try:
            self._recovery.close_gap(error)
        except PenstockError as problem:
            if problem.transient:
                self._enter_state(InstanceState.RECONNECTING, str(problem))
                return not self._stopping.wait(_FIRST_PAUSE_S)
            self.fail(problem)
            return False
        return True
