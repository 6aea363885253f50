"""Settings: what a user can say, checked when it is said."""

from penstock.config.settings import InstanceSettings, ServerSettings, SourceSettings, load_server_settings

__all__ = ["InstanceSettings", "ServerSettings", "SourceSettings", "load_server_settings"]
