"""The destinations of a server, by name."""

import logging
import threading
from collections.abc import Mapping

from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError
from penstock.instance import Instance
from penstock.server.cluster import Cluster
from penstock.server.destination import Destination, ElectedDestination, OwnDestination

log = logging.getLogger(__name__)

_LOOK_S = 1.0


class Destinations:
    """Any thread may call it; those that change one destination come one after the other."""

    def __init__(self) -> None:
        """Without a cluster all destinations run here, whatever ZooKeeper they name."""
        self.cluster: Cluster | None = None
        self._lock = threading.Lock()
        self._found: dict[str, Destination] = {}
        self._closing = threading.Event()
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
        with self._lock:
            found = self._found.get(destination)
            known = ", ".join(sorted(self._found)) or "none"
        if found is None:
            raise ConfigurationError(f"there is no destination '{destination}' on this server; it has: {known}")
        return found.running()

    def start(self, settings: InstanceSettings) -> None:
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
        """Without a restart, if only the filter is another one. One that cannot start leaves the old one running."""
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
