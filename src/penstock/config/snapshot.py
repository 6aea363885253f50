"""The whole configuration as it was read at one moment, from a folder or from canal-admin."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.config.canal.rules import IgnoredKey
from penstock.config.server_settings import ServerSettings
from penstock.config.settings import InstanceSettings
from penstock.errors import ConfigurationError

SERVER = "(server)"  # stands for the server where destinations are listed


@dataclass(frozen=True, slots=True)
class ConfiguredInstance:
    """The settings of one destination, or what is wrong with them. `checksum` covers all files they depend on, which
    are `paths`."""

    destination: str
    settings: InstanceSettings | None = None
    error: str | None = None
    checksum: str = ""
    paths: tuple[Path, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """The settings of a server and of all its destinations at one moment. `unsettled` has those, or SERVER, whose
    previous settings are used because their files are being written, each with the reason."""

    server: ServerSettings
    instances: Mapping[str, ConfiguredInstance]
    checksum: str = ""
    paths: tuple[Path, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()
    unsettled: Mapping[str, str] = field(default_factory=dict[str, str])

    def settings(self) -> ServerSettings:
        """Return server and instances as one settings object. Raises ConfigurationError for the first instance that is
        wrong."""
        for instance in self.instances.values():
            if instance.error is not None:
                raise ConfigurationError(instance.error)
        instances = tuple(instance.settings for instance in self.instances.values() if instance.settings is not None)
        return self.server.model_copy(update={"instances": instances})


def compute_checksum(parts: Iterable[bytes | None]) -> str:
    """Return a checksum of file contents in their order; a missing file differs from an empty one."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"-" if part is None else b"%d:" % len(part) + part)
    return digest.hexdigest()
