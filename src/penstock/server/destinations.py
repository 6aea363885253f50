"""The destinations of a server, by name."""

import logging
import threading
from collections.abc import Mapping, Sequence

from penstock.config import GroupSettings, InstanceSettings
from penstock.errors import ConfigurationError, NotRunningError, PenstockError
from penstock.instance import Instance
from penstock.server.cluster import Cluster
from penstock.server.destination import Destination, ElectedDestination, OwnDestination

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_WITH_ALL = "with the server, by hand"


class Destinations:
    """Any thread may call it; those that change one destination come one after the other."""

    def __init__(self, groups: Sequence[GroupSettings] = (), *, is_complete: bool = True) -> None:
        """Without a cluster all destinations run here, whatever ZooKeeper they name. Groups are known by name only. Of
        one that is not there it is not said that it never will be, before all have been started."""
        self._groups = {one.destination: tuple(one.member_names.values()) for one in groups}
        self.cluster: Cluster | None = None
        self.is_complete = is_complete
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

    def instance(self, destination: str) -> Instance:
        """That may serve now; raises why there is none."""
        return self._named(destination).running()

    def _named(self, destination: str) -> Destination:
        with self._lock:
            found = self._found.get(destination)
            known = ", ".join(sorted(self._found)) or "none"
        if destination in self._groups:
            members = ", ".join(self._groups[destination])
            raise ConfigurationError(
                f"'{destination}' is a group, for canal's clients only: here its members are {members}"
            )
        if found is None and (self._closing.is_set() or not self.is_complete):
            what = "stopped" if self._closing.is_set() else "started"
            raise NotRunningError(f"this server is being {what}")
        if found is None:
            raise ConfigurationError(f"there is no destination '{destination}' on this server; it has: {known}")
        return found

    def start(self, settings: InstanceSettings) -> None:
        self._check_open()
        made = self._made(settings)
        made.start()
        with self._lock:
            self._found[settings.destination] = made
            if not self._thread.is_alive() and not self._closing.is_set():
                self._thread.start()

    def _made(self, settings: InstanceSettings) -> Destination:
        if self.cluster is None or settings.zookeeper is None:
            return OwnDestination(settings)
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
                    log.warning("not started again destination=%s: %s", name, error)

    def _check_open(self) -> None:
        if self.is_halted:
            raise NotRunningError("the server was stopped by hand: start it first")

    def stop_all(self) -> None:
        self._closing.set()
        for name in self.all:
            self.stop(name)
        if self.cluster is not None:
            self.cluster.close()

    def _look(self) -> None:
        while not self._closing.wait(_LOOK_S):
            for one in self.all.values():
                if isinstance(one, ElectedDestination):
                    one.look()
