"""What to run, asked from a manager that speaks as canal's admin does.

A part is asked for with the checksum of what is known of it, and comes only when it is another one.
"""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config import FoundInstance, InstanceSettings, ManagerSettings, ServerSettings, Snapshot
from penstock.config.canal.properties import CanalServer, read_canal_instance, read_canal_server
from penstock.config.properties import parse_properties
from penstock.config.server_files import merge_server, read_server_yaml
from penstock.config.snapshot import checksum_of
from penstock.config.yaml_file import validate
from penstock.errors import ConfigurationError
from penstock.server.manager_client import ManagerClient, PolledSettings

_STANDS_STILL = "0"


class ManagerPoll:
    """A `ConfigSource` of the config monitor. Not for several threads at a time.

    `local` is what the local `canal.properties` says, which counts for more than the manager's; `folder` is where it
    lies, and `beside` the YAML of the server that lies there too. A server in YAML (`own`) stays as it is, and the
    manager's `canal.properties` counts for instances only. When one instance cannot be asked for, that is its error;
    when the list cannot, nothing changes.
    """

    def __init__(
        self,
        settings: ManagerSettings,
        address: tuple[str, int],
        folder: Path,
        local: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        own: ServerSettings | None = None,
        beside: Path | None = None,
    ) -> None:
        self._client, self._url = ManagerClient(settings, address), settings.url
        self._folder, self._local, self._environment, self._own = folder, dict(local), environment, own
        self._beside = beside
        self._server = self._list = PolledSettings("")
        self._instances: dict[str, PolledSettings] = {}

    def has_changed(self) -> bool:
        """Only a question tells."""
        return False

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        stopping.wait(timeout_s)

    def read(self) -> Snapshot:
        self._server = self._client.server(_known(self._server)) or self._server
        self._list = self._client.destinations(_known(self._list)) or self._list
        shared = {**parse_properties(self._server.content.encode(), f"{self._url} server"), **self._local}
        server = self._checked_server(shared)
        names = [name.strip() for name in self._list.content.split(",") if name.strip()]
        self._instances = {name: one for name, one in self._instances.items() if name in names}
        found = {name: self._instance(name, shared) for name in names}
        kept = {name: one for name, one in found.items() if one is not None}
        settings = self._own or validate(ServerSettings, self._with_beside(server), self._url)
        checksum = checksum_of([self._server.content.encode()])
        return Snapshot(settings, kept, checksum, ignored=server.ignored)

    def _with_beside(self, server: CanalServer) -> Any:
        if self._beside is None:
            return server.settings
        raw, _ = read_server_yaml(self._beside)
        return merge_server(server.settings, server.said, raw, (self._url, self._beside))

    def _checked_server(self, shared: Mapping[str, str]) -> CanalServer:
        try:
            return read_canal_server(shared, self._folder, self._environment)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._url}: {error}") from None

    def _instance(self, name: str, shared: Mapping[str, str]) -> FoundInstance | None:
        """None when it is to stand still."""
        before = self._instances.get(name, PolledSettings(""))
        try:
            polled = self._instances[name] = self._client.instance(name, _known(before)) or before
            if polled.status == _STANDS_STILL:
                return None
            return self._checked(name, polled, shared)
        except ConfigurationError as error:
            return FoundInstance(name, error=str(error))

    def _checked(self, name: str, polled: PolledSettings, shared: Mapping[str, str]) -> FoundInstance:
        if not polled.content:
            raise ConfigurationError(f"the manager {self._url} has nothing for {name}")
        data, where = polled.content.encode(), f"{self._url} {name}"
        try:
            canal = read_canal_instance(name, parse_properties(data, where), shared, self._folder, self._environment)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from None
        settings = validate(InstanceSettings, canal.settings, where)
        checksum = checksum_of([data, self._server.content.encode()])
        return FoundInstance(name, settings, checksum=checksum, ignored=canal.ignored)


def _known(polled: PolledSettings) -> str:
    return polled.md5 if polled.content else ""
