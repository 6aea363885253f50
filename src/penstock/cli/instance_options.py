"""One instance of a server's YAML or conf folder, for the commands that are about one."""

from pathlib import Path

from penstock.config import InstanceSettings, load_server_settings
from penstock.config.folder_reader import read_configuration
from penstock.errors import ConfigurationError


def find_admin_url(config: Path) -> tuple[str, str | None]:
    """Return the admin URL and the token of the server that runs with this configuration."""
    admin = (read_configuration(config).server if config.is_dir() else load_server_settings(config)).admin
    if not admin.port:
        raise ConfigurationError(f"{config} gives the server no admin port that is known before it runs: use --url")
    host = f"[{admin.host}]" if ":" in admin.host else admin.host
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - where it listens on all
    return f"http://{host}:{admin.port}", None if admin.token is None else admin.token.get_secret_value()


def load_instance(config: Path, destination: str | None) -> InstanceSettings:
    """Return the settings of an instance of a YAML file or conf folder; without a name, of the only one."""
    if destination is not None and config.is_dir():
        return _load_from_folder(config, destination)
    instances = {instance.destination: instance for instance in load_server_settings(config).all_instances}
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


def _load_from_folder(folder: Path, destination: str) -> InstanceSettings:
    """Return the settings of an instance of a conf folder; errors of other instances do not matter."""
    instances = read_configuration(folder).instances
    instance = instances.get(destination)
    if instance is None:
        raise ConfigurationError(f"{folder} has no instance '{destination}'; it has: {', '.join(instances) or 'none'}")
    if instance.settings is None:
        raise ConfigurationError(instance.error or f"{destination} has no settings")
    return instance.settings
