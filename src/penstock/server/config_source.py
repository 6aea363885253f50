"""Where the settings of a server come from: its files, or canal-admin, if the files name one."""

import threading
from pathlib import Path
from typing import Protocol

from penstock.config import ConfFolder, ConfigSnapshot, ServerSettings
from penstock.config.folder_files import FileContents, TrackedReader, list_config_files
from penstock.config.folder_reader import read_configuration, read_properties
from penstock.config.snapshot import ConfiguredInstance
from penstock.server.manager_poll import ManagerConfigSource

_ADMIN_PORT = 11110


class ConfigSource(Protocol):
    """A source of configuration that the config monitor reads repeatedly."""

    def read(self) -> ConfigSnapshot:
        """Return the whole configuration as it is now. Raises ConfigurationError."""
        ...

    def has_changed(self) -> bool:
        """Return whether a cheap check sees a change; false where there is no such check."""
        ...

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """Wait until something may have changed, for at most `timeout_s`."""
        ...


class FixedConfig:
    """The settings that a server was started with, as a configuration source that never changes."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def read(self) -> ConfigSnapshot:
        """Return the settings that the server was started with, and its instances by name."""
        instances = {
            instance.destination: ConfiguredInstance(instance.destination, instance)
            for instance in self._settings.all_instances
        }
        return ConfigSnapshot(self._settings, instances)

    def has_changed(self) -> bool:
        """Return False: these settings never change."""
        return False

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """Wait until the server is being stopped, for at most `timeout_s`."""
        stopping.wait(timeout_s)


def open_config_source(path: Path) -> tuple[ConfigSource, float]:
    """Return the configuration source for a conf folder or a file, and the seconds between two reads of it."""
    settings = read_configuration(path).server
    if settings.manager is None:
        return ConfFolder(path), settings.scan_s
    folder = path if path.is_dir() else path.parent
    canal_files = [file for file in list_config_files(path).server if file.suffix == ".properties"]
    beside: Path | None = None
    if canal_files:
        local, own = read_properties(canal_files[0], TrackedReader(FileContents())), None
        beside = next((file for file in list_config_files(path).server if file.suffix != ".properties"), None)
    else:
        local, own = _inherited_properties(settings), settings
    poll = ManagerConfigSource(settings.manager, _address_for_manager(settings), folder, local, own=own, beside=beside)
    return poll, settings.manager.poll_s


def _address_for_manager(settings: ServerSettings) -> tuple[str, int]:
    """Return host and port by which canal-admin knows this server."""
    host = settings.address.rpartition(":")[0]
    return host, settings.canal_admin.port or _ADMIN_PORT


def _inherited_properties(settings: ServerSettings) -> dict[str, str]:
    """Return the server's YAML settings that instances inherit, as canal properties. Paths are absolute, because
    canal's are relative to another folder."""
    data_dir = None if settings.data_dir is None else settings.data_dir.absolute()
    properties = {"canal.file.data.dir": data_dir, "canal.zkServers": settings.zookeeper}
    return {key: str(value) for key, value in properties.items() if value is not None}
