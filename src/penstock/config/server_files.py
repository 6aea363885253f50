"""`canal.properties` with a `server.yml` beside it: one server, said in two files.

What both say must be the same. What one alone says counts, and counts for more than what canal does by default.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from penstock.config.references import ReadFile
from penstock.config.section import is_mapping
from penstock.config.yaml_file import read_yaml
from penstock.errors import ConfigurationError


def read_server_yaml(path: Path, read: ReadFile = Path.read_bytes) -> tuple[Any, list[Any]]:
    """Return what the YAML of a server says, and apart from it its `instances`."""
    raw = read_yaml(path, read)
    instances: object = raw.pop("instances", None) or [] if is_mapping(raw) else []
    if not isinstance(instances, list):
        raise ConfigurationError(f"{path}: instances: it is a list")
    return raw, cast("list[Any]", instances)


def merge_server(canal: Mapping[str, Any], said: Mapping[str, str], yaml: Any, files: tuple[Path | str, Path]) -> Any:
    """Return the settings of both files. `said` has the property that says a setting, by the setting's path; `files`
    are their names, for complaints."""
    if not is_mapping(yaml):
        return yaml
    for path, value in _leaves(yaml):
        key = said.get(path)
        if key is not None and not _is_same(_at(canal, path), value):
            raise ConfigurationError(
                f"{files[0]} ({key}) and {files[1]} ({path}) do not say the same: keep one of the two"
            )
    return _merged(canal, yaml)


def _leaves(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        path = f"{prefix}{name}"
        if is_mapping(value):
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _at(section: Any, path: str) -> Any:
    for name in path.split("."):
        section = section.get(name) if is_mapping(section) else None
    return section


def _is_same(one: Any, other: Any) -> bool:
    return one == other or str(one) == str(other)


def _merged(canal: Mapping[str, Any], yaml: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(canal)
    for name, value in yaml.items():
        before = found.get(name)
        found[name] = _merged(before, value) if is_mapping(before) and is_mapping(value) else value
    return found
