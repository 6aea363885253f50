"""Settings: what a user can say, checked when it is said."""

from penstock.config.settings import (
    FailoverSettings,
    InstanceSettings,
    MetaSettings,
    ServerSettings,
    SourceSettings,
    StoreSettings,
    load_server_settings,
)

__all__ = [
    "FailoverSettings",
    "InstanceSettings",
    "MetaSettings",
    "ServerSettings",
    "SourceSettings",
    "StoreSettings",
    "load_server_settings",
]
