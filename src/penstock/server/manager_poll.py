"""A configuration source that polls canal-admin.

Each file is requested with the checksum of the content that is known, and sent only if its content is another.
"""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config import ConfigSnapshot, ConfiguredInstance, InstanceSettings, ManagerSettings, ServerSettings
from penstock.config.canal.properties import CanalServer, read_canal_instance, read_canal_server
from penstock.config.properties import parse_properties
from penstock.config.server_files import merge_server_settings, read_server_yaml
from penstock.config.snapshot import compute_checksum
from penstock.config.yaml_file import validate_settings
from penstock.errors import ConfigurationError
from penstock.server.manager_client import ManagerClient, PolledSettings

_STOPPED = "0"


class ManagerConfigSource:
    """Reads from canal-admin which instances to run, and their settings. One thread at a time may use it.

    `local` are the properties of the local `canal.properties`, which take precedence over those of canal-admin;
    `folder` is its folder, and `beside` the server's YAML file in that folder. With a server configured in YAML
    (`own`), the `canal.properties` of canal-admin apply to instances only. When canal-admin does not return the
    settings of an instance, that is an error of this instance; when it does not return the list of instances, nothing
    changes.
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
        """Return false: only a request to canal-admin can tell."""
        return False

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """Wait for `timeout_s`, or until `stopping` is set."""
        stopping.wait(timeout_s)

    def read(self) -> ConfigSnapshot:
        """Return the configuration as canal-admin has it now. Raises ConfigurationError."""
        self._server = self._client.poll_server(_known_md5(self._server)) or self._server
        self._list = self._client.poll_destinations(_known_md5(self._list)) or self._list
        shared = {**parse_properties(self._server.content.encode(), f"{self._url} server"), **self._local}
        server = self._parse_server(shared)
        names = [name.strip() for name in self._list.content.split(",") if name.strip()]
        self._instances = {name: polled for name, polled in self._instances.items() if name in names}
        polled = {name: self._poll_instance(name, shared) for name in names}
        running = {name: instance for name, instance in polled.items() if instance is not None}
        settings = self._own or validate_settings(ServerSettings, self._merge_local_yaml(server), self._url)
        checksum = compute_checksum([self._server.content.encode()])
        return ConfigSnapshot(settings, running, checksum, ignored=server.ignored)

    def _merge_local_yaml(self, server: CanalServer) -> Any:
        """Return the server's settings together with the local `server.yml`, if there is one."""
        if self._beside is None:
            return server.settings
        raw, _ = read_server_yaml(self._beside)
        return merge_server_settings(server.settings, server.set_by, raw, (self._url, self._beside))

    def _parse_server(self, shared: Mapping[str, str]) -> CanalServer:
        """Return the server's settings from `canal.properties`. Raises ConfigurationError that names canal-admin's
        URL."""
        try:
            return read_canal_server(shared, self._folder, self._environment)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._url}: {error}") from None

    def _poll_instance(self, name: str, shared: Mapping[str, str]) -> ConfiguredInstance | None:
        """Return the settings of a destination, or what is wrong with them; None when it should be stopped."""
        before = self._instances.get(name, PolledSettings(""))
        try:
            polled = self._instances[name] = self._client.poll_instance(name, _known_md5(before)) or before
            if polled.status == _STOPPED:
                return None
            return self._parse_instance(name, polled, shared)
        except ConfigurationError as error:
            return ConfiguredInstance(name, error=str(error))

    def _parse_instance(self, name: str, polled: PolledSettings, shared: Mapping[str, str]) -> ConfiguredInstance:
        """Return the settings of a destination from its `instance.properties`. Raises ConfigurationError."""
        if not polled.content:
            raise ConfigurationError(f"canal-admin at {self._url} has nothing for {name}")
        data, where = polled.content.encode(), f"{self._url} {name}"
        try:
            canal = read_canal_instance(name, parse_properties(data, where), shared, self._folder, self._environment)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from None
        settings = validate_settings(InstanceSettings, canal.settings, where)
        checksum = compute_checksum([data, self._server.content.encode()])
        return ConfiguredInstance(name, settings, checksum=checksum, ignored=canal.ignored)


def _known_md5(polled: PolledSettings) -> str:
    """Return the MD5 of what was polled before; empty for nothing."""
    return polled.md5 if polled.content else ""
