"""All destinations of a server, by name."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from penstock.config import GroupSettings, InstanceSettings
from penstock.errors import ConfigurationError, NotRunningError, PenstockError, UnknownDestinationError
from penstock.instance import Instance
from penstock.server.cluster import Cluster
from penstock.server.destination import Destination, ElectedDestination, LocalDestination
from penstock.server.expected import ExpectedDestinations
from penstock.server.parallel_stop import stop_in_parallel

log = logging.getLogger(__name__)

_WATCH_S = 1.0
_STOP_S = 60.0
_HALTED_WITH_ALL = "with the server, manually"
_CLOSING_TEXT = "this server is being stopped: open the stream again, on another server or when it is back"


class Destinations:
    """The destinations of a server: finds, starts, reloads and stops them. Any thread may call it; changes of one
    destination are made one after the other."""

    def __init__(
        self,
        groups: Sequence[GroupSettings] = (),
        *,
        expected: Callable[[], ExpectedDestinations] = ExpectedDestinations,
        make_instance: Callable[[InstanceSettings], Instance] = Instance,
    ) -> None:
        """Without a cluster all destinations run here, whatever ZooKeeper they name. Groups are known by name only.
        `expected` returns what is configured, so that a destination which is still starting is not called unknown."""
        self._groups = {group.destination: tuple(group.member_names.values()) for group in groups}
        self.cluster: Cluster | None = None
        self._get_expected, self._make_instance = expected, make_instance
        self._lock = threading.Lock()
        self._destinations: dict[str, Destination] = {}
        self._closing = threading.Event()
        self.is_halted = False  # manually, all of them
        self._thread = threading.Thread(target=self._watch_elected, name="penstock-destinations", daemon=True)

    @property
    def all(self) -> Mapping[str, Destination]:
        """Return all destinations by name."""
        with self._lock:
            return dict(self._destinations)

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Return the instances that run on this server, or ran last, by name."""
        return {
            name: destination.instance for name, destination in self.all.items() if destination.instance is not None
        }

    @property
    def starting(self) -> Mapping[str, str]:
        """Return the destinations that are configured and not started yet, with the reason why the last attempt
        failed."""
        starting, running = self._get_expected().starting, self.all
        return {name: problem for name, problem in starting.items() if name not in running}

    def running_instance(self, destination: str) -> Instance:
        """Return the instance that may serve clients of a destination now. Raises StartingError, NotRunningError or
        UnknownDestinationError."""
        if self._closing.is_set():
            raise NotRunningError(_CLOSING_TEXT)
        return self._require(destination).running_instance()

    def check_starting(self) -> None:
        """Raise StartingError when destinations are configured and none has been started yet."""
        expected = self._get_expected()
        names = sorted(expected.starting)
        if not self.all and (names or expected.unread is not None):
            absence = expected.explain_absence(names[0] if names else "")
            if absence is not None:
                raise absence

    def _require(self, destination: str) -> Destination:
        """Return a destination by name. Raises why it is not there."""
        known = self._find(destination)
        if known is not None:
            return known
        if destination in self._groups:
            members = ", ".join(self._groups[destination])
            raise ConfigurationError(
                f"'{destination}' is a group, for canal's clients only: here its members are {members}"
            )
        expected = self._get_expected()
        known = self._find(destination)  # it may have started before that was asked
        if known is not None:
            return known
        if self._closing.is_set():
            raise NotRunningError(_CLOSING_TEXT)
        absence = expected.explain_absence(destination)
        if absence is not None:
            raise absence
        names = ", ".join(sorted({*self.all, *expected.starting})) or "none"
        raise UnknownDestinationError(f"there is no destination '{destination}' on this server; it has: {names}")

    def _find(self, destination: str) -> Destination | None:
        """Return a destination by name, or None."""
        with self._lock:
            return self._destinations.get(destination)

    def start(self, settings: InstanceSettings) -> None:
        """Start a destination; with ZooKeeper, run for its election, which starts it when this server wins."""
        self._check_not_halted()
        destination = self._make_destination(settings)
        destination.start()
        with self._lock:
            if not self._closing.is_set():
                self._destinations[settings.destination] = destination
                if not self._thread.is_alive():
                    self._thread.start()
                return
        destination.stop()
        raise NotRunningError(_CLOSING_TEXT)

    def _make_destination(self, settings: InstanceSettings) -> Destination:
        """Return a destination that runs on this server, or on the one that is elected, as its settings say."""
        if self.cluster is None or settings.zookeeper is None:
            return LocalDestination(settings, self._make_instance)
        return ElectedDestination(settings, self.cluster, self._make_instance)

    def reload(self, settings: InstanceSettings) -> None:
        """Run a destination with other settings, without a restart if only its filter differs. If it cannot start with
        them, it continues with the old ones. What was stopped manually is started."""
        self._check_not_halted()
        with self._lock:
            old = self._destinations[settings.destination]
        if old.settings.zookeeper == settings.zookeeper:
            old.reload(settings)
            return
        self.stop(settings.destination)
        self.start(settings)

    def stop(self, name: str) -> None:
        """Stop a destination and forget it."""
        with self._lock:
            destination = self._destinations.pop(name, None)
        if destination is not None:
            destination.stop()

    # -- manually

    def halt(self, name: str) -> bool:
        """Stop a destination manually, until it is started manually or its settings change. False when it was stopped
        already."""
        return self._require(name).halt()

    def resume(self, name: str) -> bool:
        """Start a destination that was stopped manually. False when it was not."""
        return self._require(name).resume()

    def release(self, name: str) -> bool:
        """Give a destination up for another server, if there is one."""
        destination = self._require(name)
        if not isinstance(destination, ElectedDestination):
            raise ConfigurationError(f"destination '{name}' has no ZooKeeper: no other server could take it")
        return destination.release()

    def halt_all(self) -> None:
        """Stop all destinations manually; nothing starts until `resume_all`."""
        self.is_halted = True
        for destination in self.all.values():
            destination.halt(_HALTED_WITH_ALL)

    def resume_all(self) -> None:
        """Start the destinations that `halt_all` stopped. One that cannot start does not keep the others from
        starting."""
        self.is_halted = False
        for name, destination in self.all.items():
            if destination.halt_reason == _HALTED_WITH_ALL:
                try:
                    destination.resume()
                except PenstockError as error:
                    log.warning("destination restart failed destination=%s reason=%s", name, error)

    def _check_not_halted(self) -> None:
        """Raise NotRunningError while all destinations are stopped manually."""
        if self.is_halted:
            raise NotRunningError("the server was stopped manually: start it first")

    def close(self) -> None:
        """Serve and start nothing any more: clients are told to reconnect."""
        with self._lock:
            self._closing.set()

    def stop_all(self, timeout_s: float = _STOP_S) -> bool:
        """Stop all destinations in parallel, so that one whose source does not answer keeps no other from persisting
        its cursors. False when some have not ended in time."""
        self.close()
        unfinished = stop_in_parallel({name: partial(self.stop, name) for name in self.all}, timeout_s)
        for name in unfinished:
            log.warning("destination stop timed out destination=%s timeout_s=%g", name, timeout_s)
        if self.cluster is not None:
            self.cluster.close()
        return not unfinished

    def _watch_elected(self) -> None:
        """Release elected destinations whose instance has failed, so that another server takes them over. Runs in a
        thread of its own."""
        while not self._closing.wait(_WATCH_S):
            for destination in self.all.values():
                if isinstance(destination, ElectedDestination):
                    destination.release_if_failed()
