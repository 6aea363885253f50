"""Where the settings of a server come from: its files, or a manager that these name."""

import threading
from pathlib import Path
from typing import Protocol

from penstock.config import ConfFolder, ServerSettings, Snapshot
from penstock.config.folder_files import FileContents, TrackedReader, list_conf
from penstock.config.folder_look import look_at, read_properties
from penstock.config.snapshot import FoundInstance
from penstock.server.manager_poll import ManagerPoll

_ADMIN_PORT = 11110


class ConfigSource(Protocol):
    def read(self) -> Snapshot: ...

    def has_changed(self) -> bool:
        """A quick look; false where there is none."""
        ...

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """For so long, or until somebody tells that something may have changed."""
        ...


class FixedConfig:
    """The settings that a server was started with: they never change."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def read(self) -> Snapshot:
        instances = {one.destination: FoundInstance(one.destination, one) for one in self._settings.captured}
        return Snapshot(self._settings, instances)

    def has_changed(self) -> bool:
        return False

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        stopping.wait(timeout_s)


def open_config_source(path: Path) -> tuple[ConfigSource, float]:
    """Of a conf folder or a file; and how often to look, in seconds."""
    settings = look_at(path).server
    if settings.manager is None:
        return ConfFolder(path), settings.scan_s
    folder = path if path.is_dir() else path.parent
    canals = [one for one in list_conf(path).server if one.suffix == ".properties"]
    beside: Path | None = None
    if canals:
        local, own = read_properties(canals[0], TrackedReader(FileContents())), None
        beside = next((one for one in list_conf(path).server if one.suffix != ".properties"), None)
    else:
        local, own = _handed_down(settings), settings
    poll = ManagerPoll(settings.manager, _known_as(settings), folder, local, own=own, beside=beside)
    return poll, settings.manager.poll_s


def _known_as(settings: ServerSettings) -> tuple[str, int]:
    """To the manager."""
    host = settings.address.rpartition(":")[0]
    return host, settings.canal_admin.port or _ADMIN_PORT


def _handed_down(settings: ServerSettings) -> dict[str, str]:
    """Return what the YAML of a server says for instances, as properties; there a relative path would be canal's."""
    data_dir = None if settings.data_dir is None else settings.data_dir.absolute()
    given = {"canal.file.data.dir": data_dir, "canal.zkServers": settings.zookeeper}
    return {key: str(value) for key, value in given.items() if value is not None}
