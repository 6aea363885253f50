"""Reads a conf folder, or one file, as it is at one moment.

    server.yml                               the server, with or without `instances`
    canal.properties                         the same as canal writes it; both together are one server
    shop.yml, shop/instance.yml              an instance; its name is that of the file, or of the folder
    shop/instance.properties                 the same as canal writes it

The same thing in two files is an error that names both.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.config.canal.properties import read_canal_instance, read_canal_server
from penstock.config.canal.rules import IgnoredKey
from penstock.config.folder_files import FileContents, TrackedReader, list_config_files
from penstock.config.properties import parse_properties
from penstock.config.references import expand_references
from penstock.config.section import is_mapping
from penstock.config.server_files import merge_server_settings, read_server_yaml
from penstock.config.server_settings import INHERITED, ServerSettings, inherit_settings
from penstock.config.settings import InstanceSettings
from penstock.config.snapshot import ConfigSnapshot, ConfiguredInstance, compute_checksum
from penstock.config.yaml_file import read_yaml, validate_settings
from penstock.errors import ConfigurationError

CheckedInstance = tuple[InstanceSettings, tuple[IgnoredKey, ...]]


@dataclass(frozen=True, slots=True)
class _ServerConfig:
    """The server's part of a conf folder. `shared` are the properties of canal.properties, `listed` the destinations
    that it names, `yaml` the content of a server.yml beside it; `path` is the file that has `instances`."""

    folder: Path
    path: Path
    reader: TrackedReader
    settings: ServerSettings
    instances: list[Any]
    shared: dict[str, str]
    listed: tuple[str, ...]
    ignored: tuple[IgnoredKey, ...]
    yaml: dict[str, Any]

    def inherited(self) -> list[bytes]:
        """Return the server's settings that instances inherit, for checksums."""
        return [str(getattr(self.settings, key)).encode() for key in INHERITED]


def read_configuration(path: Path, files: FileContents | None = None) -> ConfigSnapshot:
    """Read a conf folder, or the file of a server alone, and return the settings of the server and of each
    destination.

    Raises when the server's own settings are wrong: no instance can be told without them.
    """
    listing = list_config_files(path)
    folder, files = path if path.is_dir() else path.parent, files or FileContents()
    for file in listing:
        files.try_read(file)
    server = _read_server(listing.server, folder, files)
    instances: dict[str, ConfiguredInstance] = {}
    for number, raw in enumerate(server.instances):
        name = str(raw.get("destination", "default")) if is_mapping(raw) else f"instances.{number}"
        others = [*listing.instances.get(name, ()), *([server.path] if name in instances else ())]
        instances[name] = _read_listed_instance(name, raw, others, server)
    for member in server.settings.all_instances:
        name, others = member.destination, listing.instances.get(member.destination, [])
        instances[name] = _read_group_member(member, [*others, *([server.path] if name in instances else ())], server)
    for name, paths in listing.instances.items():
        if name not in instances:
            instances[name] = _read_instance_file(name, paths, server)
    selected = _select_destinations(server.settings)
    for name in (*server.listed, *(selected or ())):
        if name not in instances:
            instances[name] = _read_shared_instance(name, server)
    chosen = {name: it for name, it in sorted(instances.items()) if selected is None or name in selected}
    checksum = compute_checksum(server.reader.contents())
    return ConfigSnapshot(server.settings, chosen, checksum, tuple(server.reader.paths), server.ignored)


def _select_destinations(settings: ServerSettings) -> tuple[str, ...] | None:
    """Return the destinations that are to run, with the members of groups; None for all."""
    if settings.destinations is None:
        return None
    members = {group.destination: tuple(group.member_names.values()) for group in settings.groups}
    return tuple(member for name in settings.destinations for member in members.get(name, (name,)))


def _read_server(paths: list[Path], folder: Path, files: FileContents) -> _ServerConfig:
    """Read the server's own files, and merge them if there are two. Raises ConfigurationError."""
    canals, yamls = (
        [path for path in paths if (path.suffix == ".properties") is is_canal] for is_canal in (True, False)
    )
    for files_of_kind in (canals, yamls):
        if len(files_of_kind) > 1:
            raise ConfigurationError(
                f"{files_of_kind[0]} and {files_of_kind[1]} are about the same server: keep one of them"
            )
    reader = TrackedReader(files)
    raw, instances = read_server_yaml(yamls[0], reader.read) if yamls else (dict[str, Any](), list[Any]())
    if not canals:
        path = yamls[0] if yamls else folder
        return _ServerConfig(
            folder, path, reader, validate_settings(ServerSettings, raw, path), instances, {}, (), (), {}
        )
    shared = read_properties(canals[0], reader)
    try:
        canal = read_canal_server(shared, folder)
    except ConfigurationError as error:
        raise ConfigurationError(f"{canals[0]}: {error}") from None
    merged = (
        merge_server_settings(canal.settings, canal.set_by, raw, (canals[0], yamls[0])) if yamls else canal.settings
    )
    settings = validate_settings(ServerSettings, merged, " with ".join(map(str, [*canals, *yamls])))
    path, yaml = (yamls or canals)[0], raw if is_mapping(raw) else {}
    return _ServerConfig(folder, path, reader, settings, instances, shared, canal.listed, canal.ignored, yaml)


def _read_listed_instance(name: str, raw: Any, others: list[Path], server: _ServerConfig) -> ConfiguredInstance:
    """Return an instance that the server's file lists under `instances`."""

    def check() -> CheckedInstance:
        if others:
            raise ConfigurationError(f"{server.path} and {others[0]} are about the same destination, {name}: keep one")
        return _validate_instance(raw, server, server.path), ()

    return _check_instance(
        name, check, (*server.reader.paths, *others), lambda: [repr(raw).encode(), *server.inherited()]
    )


def _read_group_member(member: InstanceSettings, others: list[Path], server: _ServerConfig) -> ConfiguredInstance:
    """Return a member of a group, which was checked with the server's own settings."""
    name = member.destination

    def check() -> CheckedInstance:
        if others:
            raise ConfigurationError(f"{server.path} and {others[0]} are about the same destination, {name}: keep one")
        return member, ()

    return _check_instance(name, check, (*server.reader.paths, *others), server.reader.contents)


def _read_instance_file(name: str, paths: list[Path], server: _ServerConfig) -> ConfiguredInstance:
    """Return an instance that has its own file."""
    reader, path = TrackedReader(server.reader.files, paths), paths[0]
    is_canal = path.suffix.lower() == ".properties"

    def check() -> CheckedInstance:
        if len(paths) > 1:
            raise ConfigurationError(f"{path} and {paths[1]} are about the same destination: keep one of them")
        if reader.files.try_read(path) == b"":
            raise ConfigurationError(f"{path} is empty")
        if is_canal:
            return _parse_canal_instance(name, read_properties(path, reader), server, path)
        return _validate_named(name, read_yaml(path, reader.read), server, path), ()

    def contents() -> Iterable[bytes | None]:
        return [*reader.contents(), *(server.reader.contents() if is_canal else server.inherited())]

    instance = _check_instance(name, check, (), contents)
    return replace(instance, paths=(*reader.paths, *server.reader.paths))


def _read_shared_instance(name: str, server: _ServerConfig) -> ConfiguredInstance:
    """Return an instance without a file of its own: canal.properties alone can configure it."""

    def check() -> CheckedInstance:
        if not server.shared:
            raise ConfigurationError(f"{server.path} wants {name}, and there is no {name}.yml and no folder {name}")
        try:
            return _parse_canal_instance(name, {}, server, server.path)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name} has no {name}/instance.properties; {error}") from None

    return _check_instance(name, check, tuple(server.reader.paths), server.reader.contents)


def _check_instance(
    name: str,
    check: Callable[[], CheckedInstance],
    paths: tuple[Path, ...],
    contents: Callable[[], Iterable[bytes | None]],
) -> ConfiguredInstance:
    """Return the settings that `check` returns, or the error that it raises, with the checksum of the files that were
    read for it."""
    try:
        settings, ignored = check()
    except ConfigurationError as error:
        return ConfiguredInstance(name, None, str(error), compute_checksum(contents()), paths)
    return ConfiguredInstance(name, settings, None, compute_checksum(contents()), paths, ignored)


def _parse_canal_instance(name: str, own: dict[str, str], server: _ServerConfig, path: Path) -> CheckedInstance:
    """Return the settings of an instance from canal's properties. Raises ConfigurationError."""
    try:
        canal = read_canal_instance(name, own, server.shared, server.folder)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    raw = canal.settings
    server_settings = dict(server.settings)
    inherited = [key for key in INHERITED if server_settings[key] is not None]
    if server.shared:
        inherited = [key for key in inherited if key in server.yaml and key not in canal.set_by]
    raw |= {key: server_settings[key] for key in inherited}
    return validate_settings(InstanceSettings, raw, path), canal.ignored


def read_properties(path: Path, reader: TrackedReader) -> dict[str, str]:
    """Read a properties file and expand its references. Raises ConfigurationError."""
    try:
        data = reader.read(path)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    return expand_references(parse_properties(data, str(path)), path, reader.read)


def _validate_named(name: str, raw: Any, server: _ServerConfig, path: Path) -> InstanceSettings:
    """Return validated settings; the destination is the name of the file, or left out."""
    if is_mapping(raw) and raw.setdefault("destination", name) != name:
        raise ConfigurationError(f"{path}: destination: it is {name}, as the file says, or left out")
    return _validate_instance(raw, server, path)


def _validate_instance(raw: Any, server: _ServerConfig, path: Path) -> InstanceSettings:
    """Return validated settings of an instance, with what it inherits from the server."""
    complete = inherit_settings(dict(server.settings), raw) if is_mapping(raw) else raw
    return validate_settings(InstanceSettings, complete, path)
