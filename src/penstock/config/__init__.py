"""Settings: what a user can say, checked when it is said."""

from penstock.config.settings import (
    InstanceSettings,
    MetaSettings,
    ServerSettings,
    SourceSettings,
    StoreSettings,
    load_server_settings,
)

__all__ = [
    "InstanceSettings",
    "MetaSettings",
    "ServerSettings",
    "SourceSettings",
    "StoreSettings",
    "load_server_settings",
]
