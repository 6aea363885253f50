"""The instance config monitor: what a folder or a manager says is what runs.

New: start. Changed: the difference is logged, reload. Wrong: what runs stays, and the error is kept until it is mended.
Gone: stop. Every `scan_s` all is read; in between, a quick look every half second notices changes sooner.
"""

import logging
import threading
import time
import traceback
from collections.abc import Container

from penstock.backoff import Backoff
from penstock.config import InstanceSettings, ServerSettings, Snapshot
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
    """Has a thread that looks, and one for each destination that acts. `stop` leaves what runs as it is."""

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
        """With a `scan_s` of 0 there is one scan, at the start. Without `retries` each destination is tried once."""
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
        """By destination, and `(server)`: what is wrong with settings, or with what runs by them."""
        with self._lock:
            found = {name: reconciler.problem for name, reconciler in self._reconcilers.items()}
            return {name: problem for name, problem in found.items() if problem} | self._errors

    @property
    def config_errors(self) -> dict[str, str]:
        """Of the problems, those that somebody has to mend; not what is just being written, or waits for a restart."""
        with self._lock:
            notices = self._notices
        return {name: problem for name, problem in self.problems.items() if name not in notices}

    @property
    def waiting(self) -> list[str]:
        """Destinations that are not yet as they are wanted; before the first scan, the server as a whole."""
        with self._lock:
            if not self._has_scanned:
                return [SERVER]
            return sorted(name for name, reconciler in self._reconcilers.items() if not reconciler.is_settled)

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
            written = {name: text for name, text in others.items() if name in self._notices}
            wrong = {name: text for name, text in others.items() if name not in written}
            return ExpectedDestinations(starting | written, wrong)

    @property
    def has_scanned(self) -> bool:
        """Whether the configuration was read at least once."""
        with self._lock:
            return self._has_scanned

    @property
    def start_errors(self) -> dict[str, Exception]:
        """The error of the last attempt, by destination, of those that could not be started, reloaded or stopped."""
        with self._lock:
            found = {name: reconciler.error for name, reconciler in self._reconcilers.items()}
        return {name: error for name, error in found.items() if error is not None}

    def wait_for_attempts(self) -> None:
        """Wait until every destination of the last scan was started, has failed to, or is not tried any more."""
        with self._lock:
            reconcilers = list(self._reconcilers.values())
        for reconciler in reconcilers:
            reconciler.wait_for_attempt()

    @property
    def is_settled(self) -> bool:
        """All that was wanted at the last scan is there."""
        with self._lock:
            return all(reconciler.is_settled for reconciler in self._reconcilers.values())

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 10) -> None:
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
        """Read all now, and want what it says."""
        with self._scanning:
            try:
                self._follow(self._conf.read())
            except PenstockError as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next scan may do better
                # What it says may have a value in it, and that may be a secret.
                where = "".join(traceback.format_tb(error.__traceback__))
                problem = f"the configuration cannot be followed ({type(error).__name__}; the log says where)"
                if self._failed(problem):
                    log.error("config scan failed error=%s\n%s", type(error).__name__, where)  # noqa: TRY400 - without its text

    def _follow(self, found: Snapshot) -> None:
        errors = {name: one.error for name, one in found.instances.items() if one.error is not None}
        of_server = self._of_server(found.server)
        self._note(frozenset([*of_server, *found.unsettled]))
        self._keep({**of_server, **errors, **found.unsettled}, found.unsettled)
        self._report({SERVER: found.ignored} | {name: one.ignored for name, one in found.instances.items()})
        self._check_descriptors(found)
        for name, one in found.instances.items():
            if one.settings is not None:
                self._want(name, one.settings)
        self._stop_all_but(found.instances)
        with self._lock:
            self._has_scanned = True

    def _failed(self, problem: str) -> bool:
        """Whether that is new."""
        with self._lock:
            before = self._errors.get(SERVER)
        self._note(self._notices - {SERVER})
        self._keep({**self._errors_but(SERVER), SERVER: problem})
        return problem != before

    def _note(self, notices: frozenset[str]) -> None:
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
        try:
            return self._conf.has_changed()
        except Exception:  # noqa: BLE001 - the scan says what is wrong, if something is
            return True

    def _want(self, name: str, settings: InstanceSettings) -> None:
        reconciler = self._reconcilers.get(name)
        before = None if reconciler is None else reconciler.wanted
        if before is None:
            log.info("destination configured destination=%s source=%s", name, settings.source.address)
        elif before != settings:
            changes = "; ".join(describe_differences(before, settings))
            log.info("destination settings changed destination=%s changes=%s", name, changes)
        if reconciler is None or not reconciler.want(settings):
            reconciler = DestinationReconciler(name, self._destinations, self._backoff, retries=self._retries)
            with self._lock:
                self._reconcilers[name] = reconciler
            reconciler.want(settings)

    def _stop_all_but(self, names: Container[str]) -> None:
        for name, reconciler in list(self._reconcilers.items()):
            if name in names:
                continue
            if reconciler.wanted is not None:
                log.info("destination removed from config destination=%s", name)
            if not reconciler.want(None):
                with self._lock:
                    del self._reconcilers[name]

    def _of_server(self, settings: ServerSettings) -> dict[str, str]:
        """What it listens on, and who is in a group, is not changed while it runs."""
        with self._lock:
            first = self._server = self._server or settings
        changed = describe_differences(first.own, settings.own)
        return {SERVER: f"changed, and counts from the next start: {'; '.join(changed)}"} if changed else {}

    def _report(self, ignored: dict[str, tuple[IgnoredKey, ...]]) -> None:
        for name, keys in ignored.items():
            if keys and self._ignored.get(name) != keys:
                log.warning("config keys ignored destination=%s keys=%s", name, ",".join(key for key, _ in keys))
                for text in describe_misspellings(keys):
                    log.warning("config key misspelled destination=%s reason=%s", name, text)
        self._ignored = ignored

    def _check_descriptors(self, found: Snapshot) -> None:
        """Warn when what is configured now does not fit into the process, once for each change of that."""
        wanted = [one.settings for one in found.instances.values() if one.settings is not None]
        budget = plan_descriptors(found.server, wanted)
        if budget != self._budget:
            log_budget(budget)
        self._budget = budget

    def _errors_but(self, name: str) -> dict[str, str]:
        with self._lock:
            return {key: error for key, error in self._errors.items() if key != name}

    def _keep(self, errors: dict[str, str], passing: Container[str] = ()) -> None:
        """`passing` are those of which the next look may say something else."""
        with self._lock:
            before, self._errors = self._errors, errors
        for name, error in errors.items():
            if before.get(name) != error:
                level = logging.INFO if name in passing else logging.WARNING
                log.log(level, "destination differs from config destination=%s reason=%s", name, error)
        for name in before.keys() - errors.keys():
            log.info("destination matches config again destination=%s", name)
