"""One instance of a server's YAML, for the commands that are about one."""

from pathlib import Path

from penstock.config import InstanceSettings, load_server_settings
from penstock.errors import ConfigurationError


def instance_of(config: Path, destination: str | None) -> InstanceSettings:
    instances = {one.destination: one for one in load_server_settings(config).instances}
    known = ", ".join(sorted(instances)) or "none"
    if destination is None and len(instances) == 1:
        return next(iter(instances.values()))
    if not instances:
        raise ConfigurationError(f"{config} has no instances")
    if destination is None:
        raise ConfigurationError(f"{config} has several instances ({known}): choose one with --destination")
    if destination not in instances:
        raise ConfigurationError(f"{config} has no instance '{destination}'; it has: {known}")
    return instances[destination]
