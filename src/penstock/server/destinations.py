"""The instances of a server, by destination."""

import logging
import threading
from collections.abc import Mapping

from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError, PenstockError
from penstock.instance import Instance
from penstock.store import Start

log = logging.getLogger(__name__)


class Destinations:
    """Any thread may call it; those that change one destination come one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instances: dict[str, Instance] = {}

    @property
    def instances(self) -> Mapping[str, Instance]:
        with self._lock:
            return dict(self._instances)

    def instance(self, destination: str) -> Instance:
        """That runs; raises why there is none."""
        with self._lock:
            found = self._instances.get(destination)
            known = ", ".join(sorted(self._instances)) or "none"
        if found is None:
            raise ConfigurationError(f"there is no destination '{destination}' on this server; it has: {known}")
        return found

    def start(self, settings: InstanceSettings) -> None:
        instance = Instance(settings)
        instance.start()
        self._keep(instance)

    def reload(self, settings: InstanceSettings) -> None:
        """Without a restart, if only the filter is another one. One that cannot start leaves the old one running."""
        old = self.instance(settings.destination)
        if old.failure is None and old.settings.model_copy(update={"filter": settings.filter}) == settings:
            old.reload_filter(settings.filter)
            return
        clients = _Clients(old)
        old.stop()
        try:
            new = Instance(clients.start_of(settings))
            new.start()
        except PenstockError:
            log.warning("reload failed destination=%s: the settings before count again", settings.destination)
            old.start()
            clients.join(old)
            raise
        clients.join(new)
        self._keep(new)

    def stop(self, name: str) -> None:
        with self._lock:
            instance = self._instances.pop(name, None)
        if instance is not None:
            instance.stop()

    def stop_all(self) -> None:
        for name in self.instances:
            self.stop(name)

    def _keep(self, instance: Instance) -> None:
        with self._lock:
            self._instances[instance.settings.destination] = instance


class _Clients:
    """Of an instance that is about to stop: where its cursors are in memory only, they would be gone with it."""

    def __init__(self, instance: Instance) -> None:
        is_kept = instance.settings.meta_kind != "memory"
        self._cursors = {} if is_kept else instance.clients.cursors()
        self._filters = instance.clients.subscriptions()

    def start_of(self, settings: InstanceSettings) -> InstanceSettings:
        """From the lowest cursor on."""
        if not self._cursors or settings.meta_kind != "memory":
            return settings
        lowest = min(self._cursors.values())
        return settings.model_copy(update={"start": f"{lowest.file}:{lowest.offset}"})

    def join(self, instance: Instance) -> None:
        for client_id, position in self._cursors.items():
            instance.clients.subscribe(client_id, self._filters.get(client_id, ""), Start.cursor(position))
