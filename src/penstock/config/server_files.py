"""Merges `canal.properties` with a `server.yml` beside it into one server.

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
    """Return the content of a server's YAML file without its `instances`, and the instances."""
    raw = read_yaml(path, read)
    instances: object = raw.pop("instances", None) or [] if is_mapping(raw) else []
    if not isinstance(instances, list):
        raise ConfigurationError(f"{path}: instances: it is a list")
    return raw, cast("list[Any]", instances)


def merge_server_settings(
    canal: Mapping[str, Any], set_by: Mapping[str, str], yaml: Any, files: tuple[Path | str, Path]
) -> Any:
    """Return the settings of both files; raise ConfigurationError where they contradict each other. `set_by` has the
    property that sets a setting, by the setting's path; `files` are the names for error messages."""
    if not is_mapping(yaml):
        return yaml
    for path, value in _list_settings(yaml):
        key = set_by.get(path)
        if key is not None and not _is_same(_get_setting(canal, path), value):
            raise ConfigurationError(
                f"{files[0]} ({key}) and {files[1]} ({path}) do not say the same: keep one of the two"
            )
    return _merge(canal, yaml)


def _list_settings(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each setting of a section."""
    for name, value in section.items():
        path = f"{prefix}{name}"
        if is_mapping(value):
            yield from _list_settings(value, f"{path}.")
        else:
            yield path, value


def _get_setting(section: Any, path: str) -> Any:
    """Return the value of a setting by its path, or None."""
    for name in path.split("."):
        section = section.get(name) if is_mapping(section) else None
    return section


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two values are equal, or are written alike."""
    return value == other or str(value) == str(other)


def _merge(canal: Mapping[str, Any], yaml: Mapping[str, Any]) -> dict[str, Any]:
    """Return both sections merged; YAML counts for more."""
    merged = dict(canal)
    for name, value in yaml.items():
        before = merged.get(name)
        merged[name] = _merge(before, value) if is_mapping(before) and is_mapping(value) else value
    return merged
