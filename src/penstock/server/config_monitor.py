"""Keeps the running instances equal to the configuration in a folder or at canal-admin.

New: start. Changed: the difference is logged, reload. Wrong: what runs stays, and the error is shown until it is
corrected. Gone: stop. Every `scan_s` all is read; in between, a quick look every half second notices changes sooner.
"""

import logging
import threading
import time
import traceback
from collections.abc import Container

from penstock.backoff import Backoff
from penstock.config import ConfigSnapshot, InstanceSettings, ServerSettings
from penstock.config.canal.misspelling import describe_misspellings
from penstock.config.canal.rules import IgnoredKey
from penstock.config.masking import describe_differences
from penstock.config.snapshot import SERVER
from penstock.errors import PenstockError
from penstock.server.config_source import ConfigSource
from penstock.server.descriptors import DescriptorBudget, log_budget, plan_descriptors
from penstock.server.destination_reconciler import DestinationReconciler, ReconciledDestinations
from penstock.server.expected import ExpectedDestinations

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_BACKOFF = Backoff(1.0, 60.0, spread=0.5)


class ConfigMonitor:
    """Reads the configuration again and again, and reconciles each destination with it. One thread reads; each
    destination has a thread that starts, reloads and stops it. `stop` leaves what runs as it is."""

    def __init__(
        self,
        conf: ConfigSource,
        destinations: ReconciledDestinations,
        scan_s: float,
        *,
        look_s: float = _LOOK_S,
        backoff: Backoff = _BACKOFF,
        retries: bool = True,
    ) -> None:
        """`scan_s` is the time between two full reads; 0 reads once, at the start. Every `look_s` a cheap check looks
        for changes. Without `retries` each destination is tried once."""
        self._conf, self._destinations = conf, destinations
        self._scan_s, self._look_s, self._backoff = scan_s, look_s, backoff
        self._retries = retries
        self._stopping = threading.Event()
        self._scanning = threading.Lock()  # one scan at a time; protects the two below
        self._ignored: dict[str, tuple[IgnoredKey, ...]] = {}
        self._budget: DescriptorBudget | None = None
        self._lock = threading.Lock()  # protects the five below
        self._reconcilers: dict[str, DestinationReconciler] = {}
        self._errors: dict[str, str] = {}
        self._notices = frozenset[str]()  # names of those that are no mistake
        self._has_scanned = False
        self._server: ServerSettings | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-config-monitor", daemon=True)

    @property
    def problems(self) -> dict[str, str]:
        """Return what is wrong, by destination and `(server)`: settings that are wrong, or a destination that cannot
        follow them."""
        with self._lock:
            problems = {name: reconciler.problem for name, reconciler in self._reconcilers.items()}
            return {name: problem for name, problem in problems.items() if problem} | self._errors

    @property
    def config_errors(self) -> dict[str, str]:
        """Return the problems that somebody has to fix; not files that are being written, and not changes that wait for
        a restart."""
        with self._lock:
            notices = self._notices
        return {name: problem for name, problem in self.problems.items() if name not in notices}

    @property
    def unreconciled(self) -> list[str]:
        """Return the destinations that do not run as configured yet; before the first scan, `(server)`."""
        with self._lock:
            if not self._has_scanned:
                return [SERVER]
            return sorted(name for name, reconciler in self._reconcilers.items() if not reconciler.is_reconciled)

    @property
    def expected(self) -> ExpectedDestinations:
        """Return the destinations whose running state does not match their configuration yet."""
        with self._lock:
            if not self._has_scanned:
                return ExpectedDestinations(unread=self._errors.get(SERVER, ""))
            starting = {
                name: reconciler.problem or ""
                for name, reconciler in self._reconcilers.items()
                if reconciler.is_starting
            }
            others = {name: text for name, text in self._errors.items() if name not in {SERVER, *self._reconcilers}}
            being_written = {name: text for name, text in others.items() if name in self._notices}
            wrong = {name: text for name, text in others.items() if name not in being_written}
            return ExpectedDestinations(starting | being_written, wrong)

    @property
    def has_scanned(self) -> bool:
        """Return whether the configuration was read at least once."""
        with self._lock:
            return self._has_scanned

    @property
    def start_errors(self) -> dict[str, Exception]:
        """Return the errors of the destinations that could not be started, reloaded or stopped at the last attempt."""
        with self._lock:
            errors = {name: reconciler.error for name, reconciler in self._reconcilers.items()}
        return {name: error for name, error in errors.items() if error is not None}

    def wait_for_attempts(self) -> None:
        """Wait until every destination of the last scan was started, has failed to, or is not tried any more."""
        with self._lock:
            reconcilers = list(self._reconcilers.values())
        for reconciler in reconcilers:
            reconciler.wait_for_attempt()

    @property
    def is_reconciled(self) -> bool:
        """Return whether everything that the last scan found runs as configured."""
        with self._lock:
            return all(reconciler.is_reconciled for reconciler in self._reconcilers.values())

    def start(self) -> None:
        """Start the thread that reads the configuration."""
        self._thread.start()

    def stop(self, timeout_s: float = 10) -> None:
        """Stop reading and reconciling; what runs keeps running."""
        until = time.monotonic() + timeout_s
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        with self._lock:
            reconcilers = list(self._reconcilers.values())
        for reconciler in reconcilers:
            reconciler.close()
        for reconciler in reconcilers:
            reconciler.join(max(0.0, until - time.monotonic()))

    def scan(self) -> None:
        """Read the configuration now, and tell each destination what to run."""
        with self._scanning:
            try:
                self._apply_snapshot(self._conf.read())
            except PenstockError as error:
                self._note_scan_failure(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next scan may do better
                # What it says may have a value in it, and that may be a secret.
                where = "".join(traceback.format_tb(error.__traceback__))
                problem = f"the configuration cannot be followed ({type(error).__name__}; the log says where)"
                if self._note_scan_failure(problem):
                    log.error("reading the configuration failed error=%s\n%s", type(error).__name__, where)  # noqa: TRY400 - without its text

    def _apply_snapshot(self, snapshot: ConfigSnapshot) -> None:
        """Record the errors of a snapshot, and tell each destination what to run."""
        errors = {name: instance.error for name, instance in snapshot.instances.items() if instance.error is not None}
        server_changes = self._describe_server_changes(snapshot.server)
        self._set_notices(frozenset([*server_changes, *snapshot.unsettled]))
        self._set_errors({**server_changes, **errors, **snapshot.unsettled}, snapshot.unsettled)
        self._warn_about_ignored_keys(
            {SERVER: snapshot.ignored} | {name: instance.ignored for name, instance in snapshot.instances.items()}
        )
        self._check_descriptors(snapshot)
        for name, instance in snapshot.instances.items():
            if instance.settings is not None:
                self._reconcile(name, instance.settings)
        self._stop_removed(snapshot.instances)
        with self._lock:
            self._has_scanned = True

    def _note_scan_failure(self, problem: str) -> bool:
        """Record that the configuration could not be read; return whether that is a new problem."""
        with self._lock:
            before = self._errors.get(SERVER)
        self._set_notices(self._notices - {SERVER})
        self._set_errors({**self._errors_without(SERVER), SERVER: problem})
        return problem != before

    def _set_notices(self, notices: frozenset[str]) -> None:
        """Set the names of the problems that are not mistakes."""
        with self._lock:
            self._notices = notices

    def _run(self) -> None:
        self.scan()
        if not self._scan_s:
            return
        scanned = time.monotonic()
        while not self._stopping.is_set():
            self._conf.wait(self._stopping, min(self._look_s, self._scan_s))
            if self._stopping.is_set():
                return
            if time.monotonic() - scanned >= self._scan_s or self._may_have_changed():
                self.scan()
                scanned = time.monotonic()

    def _may_have_changed(self) -> bool:
        """Return whether a cheap check sees a change, or fails."""
        try:
            return self._conf.has_changed()
        except Exception:  # noqa: BLE001 - the scan says what is wrong, if something is
            return True

    def _reconcile(self, name: str, settings: InstanceSettings) -> None:
        """Tell the reconciler of a destination what to run, and log what has changed."""
        reconciler = self._reconcilers.get(name)
        before = None if reconciler is None else reconciler.target
        if before is None:
            log.info("destination configured destination=%s source=%s", name, settings.source.address)
        elif before != settings:
            changes = "; ".join(describe_differences(before, settings))
            log.info("destination settings changed destination=%s changes=%s", name, changes)
        if reconciler is None or not reconciler.set_target(settings):
            reconciler = DestinationReconciler(name, self._destinations, self._backoff, retries=self._retries)
            with self._lock:
                self._reconcilers[name] = reconciler
            reconciler.set_target(settings)

    def _stop_removed(self, names: Container[str]) -> None:
        """Stop the destinations that are no longer configured."""
        for name, reconciler in list(self._reconcilers.items()):
            if name in names:
                continue
            if reconciler.target is not None:
                log.info("destination removed from config destination=%s", name)
            if not reconciler.set_target(None):
                with self._lock:
                    del self._reconcilers[name]

    def _describe_server_changes(self, settings: ServerSettings) -> dict[str, str]:
        """Return a notice if the server's own settings have changed: ports and groups only change at the next start."""
        with self._lock:
            first = self._server = self._server or settings
        changed = describe_differences(first.without_instances, settings.without_instances)
        return {SERVER: f"changed, and counts from the next start: {'; '.join(changed)}"} if changed else {}

    def _warn_about_ignored_keys(self, ignored: dict[str, tuple[IgnoredKey, ...]]) -> None:
        """Log the settings that were ignored, once for each change of them, and those that look misspelled."""
        for name, keys in ignored.items():
            if keys and self._ignored.get(name) != keys:
                log.warning("config keys ignored destination=%s keys=%s", name, ",".join(key for key, _ in keys))
                for text in describe_misspellings(keys):
                    log.warning("unknown config key destination=%s reason=%s", name, text)
        self._ignored = ignored

    def _check_descriptors(self, snapshot: ConfigSnapshot) -> None:
        """Warn when the configured instances need more file descriptors than the process may have, once for each
        change."""
        configured = [instance.settings for instance in snapshot.instances.values() if instance.settings is not None]
        budget = plan_descriptors(snapshot.server, configured)
        if budget != self._budget:
            log_budget(budget)
        self._budget = budget

    def _errors_without(self, name: str) -> dict[str, str]:
        """Return the recorded errors of all but one name."""
        with self._lock:
            return {key: error for key, error in self._errors.items() if key != name}

    def _set_errors(self, errors: dict[str, str], transient: Container[str] = ()) -> None:
        """Record the configuration errors by destination, and log those that are new and those that are resolved.
        Errors of the names in `transient` may be gone at the next scan: they are logged as INFO, others as WARNING."""
        with self._lock:
            before, self._errors = self._errors, errors
        for name, error in errors.items():
            if before.get(name) != error:
                level = logging.INFO if name in transient else logging.WARNING
                log.log(level, "destination does not run as configured destination=%s reason=%s", name, error)
        for name in before.keys() - errors.keys():
            log.info("destination configuration valid again destination=%s: it is applied now", name)
