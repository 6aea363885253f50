"""What is to run, as it was read at one moment: from a folder, or from a manager."""

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
class FoundInstance:
    """Either settings, or what is wrong with them. `checksum` is over all they depend on, read from `paths`."""

    destination: str
    settings: InstanceSettings | None = None
    error: str | None = None
    checksum: str = ""
    paths: tuple[Path, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`unsettled` says of destinations, and of SERVER, why they are as they were before."""

    server: ServerSettings
    instances: Mapping[str, FoundInstance]
    checksum: str = ""
    paths: tuple[Path, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()
    unsettled: Mapping[str, str] = field(default_factory=dict[str, str])

    def settings(self) -> ServerSettings:
        """Server and instances as one; the first that is wrong is an error."""
        for one in self.instances.values():
            if one.error is not None:
                raise ConfigurationError(one.error)
        several = tuple(one.settings for one in self.instances.values() if one.settings is not None)
        return self.server.model_copy(update={"instances": several})


def checksum_of(parts: Iterable[bytes | None]) -> str:
    """Of contents in their order; one that cannot be read is unlike one that is empty."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"-" if part is None else b"%d:" % len(part) + part)
    return digest.hexdigest()
