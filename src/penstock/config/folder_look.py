"""One look at a conf folder, or at one file: what is said there.

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
from penstock.config.folder_files import FileContents, TrackedReader, list_conf
from penstock.config.properties import parse_properties
from penstock.config.references import expand_references
from penstock.config.section import is_mapping
from penstock.config.server_files import merge_server, read_server_yaml
from penstock.config.server_settings import INHERITED, ServerSettings, hand_down
from penstock.config.settings import InstanceSettings
from penstock.config.snapshot import FoundInstance, Snapshot, checksum_of
from penstock.config.yaml_file import read_yaml, validate
from penstock.errors import ConfigurationError

Checked = tuple[InstanceSettings, tuple[IgnoredKey, ...]]


@dataclass(frozen=True, slots=True)
class _Server:
    """`shared` is what canal.properties says, `listed` the destinations that it names, `beside` what a server.yml says
    that lies with it; `path` is the file that has `instances`."""

    folder: Path
    path: Path
    reader: TrackedReader
    settings: ServerSettings
    instances: list[Any]
    shared: dict[str, str]
    listed: tuple[str, ...]
    ignored: tuple[IgnoredKey, ...]
    beside: dict[str, Any]

    def handed_down(self) -> list[bytes]:
        return [str(getattr(self.settings, key)).encode() for key in INHERITED]


def look_at(path: Path, files: FileContents | None = None) -> Snapshot:
    """At a folder, or the file of a server alone.

    Raises when the server's own settings are wrong: no instance can be told without them.
    """
    listing = list_conf(path)
    folder, files = path if path.is_dir() else path.parent, files or FileContents()
    for one in listing:
        files.look(one)
    server = _server(listing.server, folder, files)
    found: dict[str, FoundInstance] = {}
    for number, raw in enumerate(server.instances):
        name = str(raw.get("destination", "default")) if is_mapping(raw) else f"instances.{number}"
        others = [*listing.instances.get(name, ()), *([server.path] if name in found else ())]
        found[name] = _of_list(name, raw, others, server)
    for member in server.settings.captured:
        name, others = member.destination, listing.instances.get(member.destination, [])
        found[name] = _of_group(member, [*others, *([server.path] if name in found else ())], server)
    for name, paths in listing.instances.items():
        if name not in found:
            found[name] = _of_file(name, paths, server)
    wanted = _with_members(server.settings)
    for name in (*server.listed, *(wanted or ())):
        if name not in found:
            found[name] = _of_nothing(name, server)
    kept = {name: one for name, one in sorted(found.items()) if wanted is None or name in wanted}
    checksum = checksum_of(server.reader.contents())
    return Snapshot(server.settings, kept, checksum, tuple(server.reader.paths), server.ignored)


def _with_members(settings: ServerSettings) -> tuple[str, ...] | None:
    """The destinations that are wanted; of a group, its members."""
    if settings.destinations is None:
        return None
    members = {group.destination: tuple(group.member_names.values()) for group in settings.groups}
    return tuple(name for wanted in settings.destinations for name in members.get(wanted, (wanted,)))


def _server(paths: list[Path], folder: Path, files: FileContents) -> _Server:
    canals, yamls = ([path for path in paths if (path.suffix == ".properties") is wanted] for wanted in (True, False))
    for several in (canals, yamls):
        if len(several) > 1:
            raise ConfigurationError(f"{several[0]} and {several[1]} are about the same server: keep one of them")
    reader = TrackedReader(files)
    raw, instances = read_server_yaml(yamls[0], reader.read) if yamls else (dict[str, Any](), list[Any]())
    if not canals:
        path = yamls[0] if yamls else folder
        return _Server(folder, path, reader, validate(ServerSettings, raw, path), instances, {}, (), (), {})
    shared = read_properties(canals[0], reader)
    try:
        canal = read_canal_server(shared, folder)
    except ConfigurationError as error:
        raise ConfigurationError(f"{canals[0]}: {error}") from None
    merged = merge_server(canal.settings, canal.said, raw, (canals[0], yamls[0])) if yamls else canal.settings
    settings = validate(ServerSettings, merged, " with ".join(map(str, [*canals, *yamls])))
    path, beside = (yamls or canals)[0], raw if is_mapping(raw) else {}
    return _Server(folder, path, reader, settings, instances, shared, canal.listed, canal.ignored, beside)


def _of_list(name: str, raw: Any, others: list[Path], server: _Server) -> FoundInstance:
    def check() -> Checked:
        if others:
            raise ConfigurationError(f"{server.path} and {others[0]} are about the same destination, {name}: keep one")
        return _validated(raw, server, server.path), ()

    return _found(name, check, (*server.reader.paths, *others), lambda: [repr(raw).encode(), *server.handed_down()])


def _of_group(member: InstanceSettings, others: list[Path], server: _Server) -> FoundInstance:
    """It was checked with the server's own settings."""
    name = member.destination

    def check() -> Checked:
        if others:
            raise ConfigurationError(f"{server.path} and {others[0]} are about the same destination, {name}: keep one")
        return member, ()

    return _found(name, check, (*server.reader.paths, *others), server.reader.contents)


def _of_file(name: str, paths: list[Path], server: _Server) -> FoundInstance:
    reader, path = TrackedReader(server.reader.files, paths), paths[0]
    is_canal = path.suffix.lower() == ".properties"

    def check() -> Checked:
        if len(paths) > 1:
            raise ConfigurationError(f"{path} and {paths[1]} are about the same destination: keep one of them")
        if reader.files.look(path) == b"":
            raise ConfigurationError(f"{path} is empty")
        if is_canal:
            return _canal(name, read_properties(path, reader), server, path)
        return _named(name, read_yaml(path, reader.read), server, path), ()

    def contents() -> Iterable[bytes | None]:
        return [*reader.contents(), *(server.reader.contents() if is_canal else server.handed_down())]

    found = _found(name, check, (), contents)
    return replace(found, paths=(*reader.paths, *server.reader.paths))


def _of_nothing(name: str, server: _Server) -> FoundInstance:
    """canal.properties alone can say all of an instance."""

    def check() -> Checked:
        if not server.shared:
            raise ConfigurationError(f"{server.path} wants {name}, and there is no {name}.yml and no folder {name}")
        try:
            return _canal(name, {}, server, server.path)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name} has no {name}/instance.properties; {error}") from None

    return _found(name, check, tuple(server.reader.paths), server.reader.contents)


def _found(
    name: str,
    check: Callable[[], Checked],
    paths: tuple[Path, ...],
    contents: Callable[[], Iterable[bytes | None]],
) -> FoundInstance:
    """What the instance depends on is known when it was read."""
    try:
        settings, ignored = check()
    except ConfigurationError as error:
        return FoundInstance(name, None, str(error), checksum_of(contents()), paths)
    return FoundInstance(name, settings, None, checksum_of(contents()), paths, ignored)


def _canal(name: str, own: dict[str, str], server: _Server, path: Path) -> Checked:
    try:
        canal = read_canal_instance(name, own, server.shared, server.folder)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    raw = canal.settings
    given = dict(server.settings)
    handed_down = [key for key in INHERITED if given[key] is not None]
    if server.shared:
        handed_down = [key for key in handed_down if key in server.beside and key not in canal.said]
    raw |= {key: given[key] for key in handed_down}
    return validate(InstanceSettings, raw, path), canal.ignored


def read_properties(path: Path, reader: TrackedReader) -> dict[str, str]:
    try:
        data = reader.read(path)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    return expand_references(parse_properties(data, str(path)), path, reader.read)


def _named(name: str, raw: Any, server: _Server, path: Path) -> InstanceSettings:
    if is_mapping(raw) and raw.setdefault("destination", name) != name:
        raise ConfigurationError(f"{path}: destination: it is {name}, as the file says, or left out")
    return _validated(raw, server, path)


def _validated(raw: Any, server: _Server, path: Path) -> InstanceSettings:
    whole = hand_down(dict(server.settings), raw) if is_mapping(raw) else raw
    return validate(InstanceSettings, whole, path)
