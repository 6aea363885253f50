"""A look at the source from outside of the log: does it answer, and how long does it keep what is needed?"""

import logging
import threading
import time
from collections.abc import Callable

from penstock.config import InstanceSettings
from penstock.errors import PenstockError
from penstock.instance.source_log import SourceLog
from penstock.model import Position
from penstock.source import Seen

log = logging.getLogger(__name__)

_RETENTION_EVERY_S = 60.0
_END_EVERY_S = 10.0


class Watchdog:
    """Of one instance, in a thread of its own. With a standby it asks the source all the time, and `on_dead` is called
    when that does not answer; `on_oldest` gets the place where its log begins."""

    def __init__(
        self,
        settings: InstanceSettings,
        source_log: SourceLog,
        needed: Callable[[], Position],
        latest: Callable[[], Position],
        on_dead: Callable[[str], None],
        on_oldest: Callable[[Position], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._log, self._needed, self._latest = settings, source_log, needed, latest
        self._on_dead, self._on_oldest = on_dead, on_oldest
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-watchdog-{settings.destination}", daemon=True)
        self.hours_left: float | None = None  # that the source keeps what is needed; None when for ever, or not known
        self.seen: Seen | None = None  # of the source's log, when it was looked at last
        self._is_warned = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        failover, failures, retention_at, end_at, problem = self._settings.failover, 0, 0.0, 0.0, ""
        has_standby = self._settings.standby is not None
        while not self._stopping.wait(failover.interval_s if has_standby else _END_EVERY_S):
            source = self._log.source
            try:
                if has_standby:
                    self._log.origin.answers(failover.query, failover.interval_s)
                failures = 0
                if time.monotonic() - end_at >= _END_EVERY_S:
                    end_at = time.monotonic()
                    self.check_end()
                if time.monotonic() - retention_at >= _RETENTION_EVERY_S:
                    retention_at = time.monotonic()
                    self.check_retention()
            except PenstockError as error:
                if source is not self._log.source:
                    continue  # it was left meanwhile
                if not error.transient or not has_standby:
                    if str(error) != problem:
                        log.warning(
                            "the source was not looked at destination=%s: %s", self._settings.destination, error
                        )
                    problem = str(error)
                    continue
                failures += 1
                log.warning("no answer source=%s failures=%d reason=%s", source.address, failures, error)
                if failures >= failover.retries:
                    failures = 0
                    self._on_dead(f"{source.address} did not answer {failover.retries} times: {error}")

    def check_end(self) -> None:
        """A log that ends before what was captured of it began anew, and its server may not have said so: it waits
        until the new one is as long."""
        known = self._latest()
        self.seen = self._log.look()
        end = self._log.places.placed(self.seen.end)
        if known.epoch == self._log.epoch and end < known:
            self._on_dead(f"the log of {self._log.source.address} ends at {end}, and {known} was captured")

    def check_retention(self) -> float | None:
        """How many hours the source still keeps what is needed next."""
        origin, needed = self._log.origin, self._needed()
        seen = self._log.look()
        self._on_oldest(self._log.places.placed(seen.oldest))
        kept_s = origin.kept_s()
        if not kept_s or needed.epoch != self._log.epoch:
            self.hours_left = None
            return None
        later = [name for name in seen.files if Position(name, 0).file_number > needed.file_number]
        # A file's age counts from its last change: from when the next one began.
        ended_s = origin.mark_of(later[0]).began if later else self._clock()
        self.hours_left = max(0.0, (ended_s + kept_s - self._clock()) / 3600)
        self._warn(self.hours_left, needed)
        return self.hours_left

    def _warn(self, hours: float, needed: Position) -> None:
        is_short = hours < self._settings.retention_warning_h
        if is_short and not self._is_warned:
            log.warning(
                "the log is kept for %.1f more hours from where it is needed destination=%s position=%s: let clients"
                " ack, or keep it longer with binlog_expire_logs_seconds",
                hours,
                self._settings.destination,
                needed,
            )
        self._is_warned = is_short
