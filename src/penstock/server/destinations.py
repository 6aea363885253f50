"""The destinations of a server, by name."""

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
from penstock.server.finish import finish_all

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_STOP_S = 60.0
_WITH_ALL = "with the server, by hand"
_CLOSING = "this server is being stopped: open the stream again, on another server or when it is back"


class Destinations:
    """Any thread may call it; those that change one destination come one after the other."""

    def __init__(
        self,
        groups: Sequence[GroupSettings] = (),
        *,
        expected: Callable[[], ExpectedDestinations] = ExpectedDestinations,
    ) -> None:
        """Without a cluster all destinations run here, whatever ZooKeeper they name. Groups are known by name only.
        `expected` says what is configured: of that it is not said that there is no such destination."""
        self._groups = {one.destination: tuple(one.member_names.values()) for one in groups}
        self.cluster: Cluster | None = None
        self._expected = expected
        self._lock = threading.Lock()
        self._found: dict[str, Destination] = {}
        self._closing = threading.Event()
        self.is_halted = False  # by hand, all of them
        self._thread = threading.Thread(target=self._look, name="penstock-destinations", daemon=True)

    @property
    def all(self) -> Mapping[str, Destination]:
        with self._lock:
            return dict(self._found)

    @property
    def instances(self) -> Mapping[str, Instance]:
        """That run here, or have run last."""
        return {name: one.instance for name, one in self.all.items() if one.instance is not None}

    @property
    def starting(self) -> Mapping[str, str]:
        """Destinations that are configured and do not run yet, and why their last try failed."""
        found = self._expected().starting
        running = self.all
        return {name: problem for name, problem in found.items() if name not in running}

    def instance(self, destination: str) -> Instance:
        """That may serve now; raises why there is none."""
        if self._closing.is_set():
            raise NotRunningError(_CLOSING)
        return self._named(destination).running()

    def check_starting(self) -> None:
        """Raise StartingError when destinations are configured and none has been started yet."""
        expected = self._expected()
        names = sorted(expected.starting)
        if not self.all and (names or expected.unread is not None):
            absence = expected.describe_absence(names[0] if names else "")
            if absence is not None:
                raise absence

    def _named(self, destination: str) -> Destination:
        found = self._find(destination)
        if found is not None:
            return found
        if destination in self._groups:
            members = ", ".join(self._groups[destination])
            raise ConfigurationError(
                f"'{destination}' is a group, for canal's clients only: here its members are {members}"
            )
        expected = self._expected()
        found = self._find(destination)  # it may have started before that was asked
        if found is not None:
            return found
        if self._closing.is_set():
            raise NotRunningError(_CLOSING)
        absence = expected.describe_absence(destination)
        if absence is not None:
            raise absence
        known = ", ".join(sorted({*self.all, *expected.starting})) or "none"
        raise UnknownDestinationError(f"there is no destination '{destination}' on this server; it has: {known}")

    def _find(self, destination: str) -> Destination | None:
        with self._lock:
            return self._found.get(destination)

    def start(self, settings: InstanceSettings) -> None:
        self._check_open()
        made = self._made(settings)
        made.start()
        with self._lock:
            if not self._closing.is_set():
                self._found[settings.destination] = made
                if not self._thread.is_alive():
                    self._thread.start()
                return
        made.stop()
        raise NotRunningError(_CLOSING)

    def _made(self, settings: InstanceSettings) -> Destination:
        if self.cluster is None or settings.zookeeper is None:
            return LocalDestination(settings)
        return ElectedDestination(settings, self.cluster)

    def reload(self, settings: InstanceSettings) -> None:
        """Without a restart, if only the filter is another one. One that cannot start leaves the old one running. What
        was stopped by hand starts."""
        self._check_open()
        with self._lock:
            old = self._found[settings.destination]
        if old.settings.zookeeper == settings.zookeeper:
            old.reload(settings)
            return
        self.stop(settings.destination)
        self.start(settings)

    def stop(self, name: str) -> None:
        with self._lock:
            found = self._found.pop(name, None)
        if found is not None:
            found.stop()

    # -- by hand

    def halt(self, name: str) -> bool:
        """Stop it until it is started by hand, or its settings change. False when it was stopped already."""
        return self._named(name).halt()

    def resume(self, name: str) -> bool:
        """False when it was not stopped by hand."""
        return self._named(name).resume()

    def release(self, name: str) -> bool:
        """Let another server have it, if there is one."""
        found = self._named(name)
        if not isinstance(found, ElectedDestination):
            raise ConfigurationError(f"destination '{name}' has no ZooKeeper: no other server could take it")
        return found.release()

    def halt_all(self) -> None:
        """Nothing starts until `resume_all`."""
        self.is_halted = True
        for one in self.all.values():
            one.halt(_WITH_ALL)

    def resume_all(self) -> None:
        """Those that were not stopped before all were. One that cannot start keeps none of the others from it."""
        self.is_halted = False
        for name, one in self.all.items():
            if one.halted == _WITH_ALL:
                try:
                    one.resume()
                except PenstockError as error:
                    log.warning("destination not resumed destination=%s reason=%s", name, error)

    def _check_open(self) -> None:
        if self.is_halted:
            raise NotRunningError("the server was stopped by hand: start it first")

    def close(self) -> None:
        """Nothing is served or started any more: who asks is told to reconnect."""
        with self._lock:
            self._closing.set()

    def stop_all(self, timeout_s: float = _STOP_S) -> bool:
        """Stop them side by side: one whose source does not answer keeps no other from writing its cursors. False when
        some have not ended in time."""
        self.close()
        unfinished = finish_all({name: partial(self.stop, name) for name in self.all}, timeout_s)
        for name in unfinished:
            log.warning("destination stop timed out destination=%s timeout_s=%g", name, timeout_s)
        if self.cluster is not None:
            self.cluster.close()
        return not unfinished

    def _look(self) -> None:
        while not self._closing.wait(_LOOK_S):
            for one in self.all.values():
                if isinstance(one, ElectedDestination):
                    one.look()
