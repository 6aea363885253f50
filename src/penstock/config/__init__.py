"""Settings: what a user can say, checked when it is said."""

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
    StoreSettings,
)
from penstock.config.snapshot import FoundInstance, Snapshot
from penstock.config.source_settings import DirectorySettings, SourceSettings

__all__ = [
    "AdminSettings",
    "CanalAdminSettings",
    "CanalRendering",
    "CanalSettings",
    "ColumnSettings",
    "ConfFolder",
    "DirectorySettings",
    "FailoverSettings",
    "FilterSettings",
    "FlightSettings",
    "FoundInstance",
    "GroupSettings",
    "InstanceSettings",
    "ManagerSettings",
    "MetaSettings",
    "RunningSettings",
    "ServerSettings",
    "Snapshot",
    "SourceSettings",
    "StoreSettings",
    "load_server_settings",
]
