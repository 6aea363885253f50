"""Settings: what a user can say, checked when it is said."""

from penstock.config.filter_settings import ColumnSettings, FilterSettings
from penstock.config.settings import (
    DirectorySettings,
    FailoverSettings,
    GroupSettings,
    InstanceSettings,
    MetaSettings,
    ServerSettings,
    SourceSettings,
    StoreSettings,
    load_server_settings,
)

__all__ = [
    "ColumnSettings",
    "DirectorySettings",
    "FailoverSettings",
    "FilterSettings",
    "GroupSettings",
    "InstanceSettings",
    "MetaSettings",
    "ServerSettings",
    "SourceSettings",
    "StoreSettings",
    "load_server_settings",
]
