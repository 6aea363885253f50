"""Checks the source over a connection of its own: does it answer, and how long does it retain what is needed?"""

import logging
import threading
import time
from collections.abc import Callable

from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings
from penstock.errors import PenstockError
from penstock.model import Position
from penstock.source import LogInventory

log = logging.getLogger(__name__)

_RETENTION_EVERY_S = 60.0
_END_EVERY_S = 10.0


class Watchdog:
    """Checks the source of one instance over connections and in a thread of its own. With a standby it runs health
    checks, and calls `on_dead` when the source does not answer. It calls `on_oldest` with the position at which the
    source's binlog begins now."""

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
        self.inventory: LogInventory | None = None  # of the source's log, when it was looked at last
        self._is_warned = False

    def start(self) -> None:
        """Start the thread that asks the source."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread that asks the source, and wait for it."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        """Check the source periodically until stopped."""
        failover, failures, retention_at, end_at, problem = self._settings.failover, 0, 0.0, 0.0, ""
        has_standby = self._settings.standby is not None
        while not self._stopping.wait(failover.interval_s if has_standby else _END_EVERY_S):
            source = self._log.source
            try:
                if has_standby:
                    self._log.binlog_source.check_answers(failover.query, failover.interval_s)
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
                            "source health check failed destination=%s reason=%s", self._settings.destination, error
                        )
                    problem = str(error)
                    continue
                failures += 1
                log.warning(
                    "source does not answer destination=%s source=%s failures=%d reason=%s",
                    self._settings.destination, source.address, failures, error,
                )  # fmt: skip
                if failures >= failover.retries:
                    failures = 0
                    self._on_dead(f"{source.address} did not answer {failover.retries} times: {error}")

    def check_end(self) -> None:
        """Report a log that ends before what was captured of it: it was reset, and its server, which waits until the
        new log is as long, may not have said so."""
        known = self._latest()
        self.inventory = self._log.inventory()
        end = self._log.resolver.with_current_epoch(self.inventory.end)
        if known.epoch == self._log.epoch and end < known:
            self._on_dead(f"the log of {self._log.source.address} ends at {end}, and {known} was captured")

    def check_retention(self) -> float | None:
        """Return for how many hours the source still retains what is needed next; None when that is not known."""
        origin, needed = self._log.binlog_source, self._needed()
        inventory = self._log.inventory()
        self._on_oldest(self._log.resolver.with_current_epoch(inventory.oldest))
        retention_s = origin.retention_s()
        if not retention_s or needed.epoch != self._log.epoch:
            self.hours_left = None
            return None
        later = [name for name in inventory.files if Position(name, 0).file_number > needed.file_number]
        # A file's age counts from its last change: from when the next one began.
        ended_s = origin.file_identity(later[0]).began if later else self._clock()
        self.hours_left = max(0.0, (ended_s + retention_s - self._clock()) / 3600)
        self._warn_of_purge(self.hours_left, needed)
        return self.hours_left

    def _warn_of_purge(self, hours: float, needed: Position) -> None:
        """Warn once when the source will soon purge what is needed next."""
        is_short = hours < self._settings.retention_warning_h
        if is_short and not self._is_warned:
            log.warning(
                "source will soon purge binlog that is still needed destination=%s hours=%.1f position=%s: let clients"
                " ack, or let the source retain its binlog longer (binlog_expire_logs_seconds)",
                *(self._settings.destination, hours, needed),
            )
        self._is_warned = is_short
