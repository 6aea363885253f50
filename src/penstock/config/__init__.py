"""The settings of Penstock, and how they are read from YAML, canal's properties and conf folders. They are checked when
they are read."""

from penstock.config.canal_rendering import CanalRendering
from penstock.config.filter_settings import ColumnSettings, FilterSettings
from penstock.config.folder import ConfFolder, load_server_settings
from penstock.config.listener_settings import AdminSettings, CanalAdminSettings, CanalSettings, FlightSettings
from penstock.config.server_settings import ManagerSettings, RunningSettings, ServerSettings
from penstock.config.settings import (
    FailoverSettings,
    GroupSettings,
    InstanceSettings,
    MetaSettings,
    SnapshotSettings,
    StoreSettings,
)
from penstock.config.snapshot import ConfigSnapshot, ConfiguredInstance
from penstock.config.source_settings import DirectorySettings, SourceSettings

__all__ = [
    "AdminSettings",
    "CanalAdminSettings",
    "CanalRendering",
    "CanalSettings",
    "ColumnSettings",
    "ConfFolder",
    "ConfigSnapshot",
    "ConfiguredInstance",
    "DirectorySettings",
    "FailoverSettings",
    "FilterSettings",
    "FlightSettings",
    "GroupSettings",
    "InstanceSettings",
    "ManagerSettings",
    "MetaSettings",
    "RunningSettings",
    "ServerSettings",
    "SnapshotSettings",
    "SourceSettings",
    "StoreSettings",
    "load_server_settings",
]
