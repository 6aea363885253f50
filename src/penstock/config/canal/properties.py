"""Reads canal's `canal.properties` and `instance.properties` as settings.

Every property is in one of two tables (`server_keys`, `instance_keys`), which say whether it is honoured,
refused or ignored. A value comes, the first that has one: from the environment (`canal.port` or CANAL_PORT), from the
instance's file, from `canal.properties` for this destination (`canal.instance.shop.…`), from `canal.properties`.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.canal.instance import set_instance
from penstock.config.canal.instance_keys import GLOBAL_NAMES, INSTANCE_KEYS, PREFIX
from penstock.config.canal.misspelling import describe_misspellings
from penstock.config.canal.rules import UNKNOWN, Ignored, IgnoredKey, PropertyReader, Rule
from penstock.config.canal.server import set_server
from penstock.config.canal.server_keys import SERVER_KEYS
from penstock.config.properties import resolve_placeholders
from penstock.errors import ConfigurationError

_SERVER_ONLY = Ignored("it counts in canal.properties only")
_ADDRESSES = ("tcp://", "udp://")


@dataclass(frozen=True, slots=True)
class CanalServer:
    """The server's settings from `canal.properties`. `listed` are the destinations that it names; with
    `canal.auto.scan` the folder may have more."""

    settings: dict[str, Any]
    ignored: tuple[IgnoredKey, ...]
    listed: tuple[str, ...]
    set_by: Mapping[str, str]  # settings by path, with the property that says them


@dataclass(frozen=True, slots=True)
class CanalInstance:
    """The settings of one instance from canal's properties."""

    settings: dict[str, Any]
    ignored: tuple[IgnoredKey, ...]
    set_by: Mapping[str, str]


def read_canal_server(
    properties: Mapping[str, str], folder: Path, environment: Mapping[str, str] = os.environ
) -> CanalServer:
    """Return the server's settings from the content of `canal.properties`. Raises ConfigurationError."""
    folder = _absolute(folder)
    reader = PropertyReader(_resolve_values(properties, folder, "", environment))
    reader.apply(_server_rules(reader.values))
    listed = set_server(reader, folder)
    return CanalServer(reader.settings, tuple(reader.ignored), listed, reader.set_by)


def read_canal_instance(
    destination: str,
    own: Mapping[str, str],
    shared: Mapping[str, str],
    folder: Path,
    environment: Mapping[str, str] = os.environ,
) -> CanalInstance:
    """Return an instance's settings from its own properties and the shared `canal.properties`. Raises
    ConfigurationError. Ignored keys of `canal.properties` are reported with the server."""
    folder = _absolute(folder)
    layers = {
        **shared,
        **_apply_destination_keys(destination, shared),
        **own,
        **_apply_destination_keys(destination, own),
    }
    reader = PropertyReader(_resolve_values(layers, folder, destination, environment))
    reader.apply(_instance_rules(reader.values, destination, own))
    reader.set("destination", destination)
    _check_manager(reader, destination, shared, own, _resolve_values(shared, folder, destination, environment))
    try:
        set_instance(reader, folder)
    except ConfigurationError as error:
        raise ConfigurationError("; ".join([str(error), *describe_misspellings(reader.ignored)])) from None
    return CanalInstance(reader.settings, tuple(reader.ignored), reader.set_by)


def _absolute(folder: Path) -> Path:
    """Return the conf folder as an absolute path without following links: paths in canal's files are relative to its
    neighbour `bin`, which is that of the link."""
    return Path(os.path.normpath(folder.absolute()))


def _apply_destination_keys(destination: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for one destination under their general keys: `canal.instance.shop.filter.regex` is
    `canal.instance.filter.regex` of shop, unless canal has that very key."""
    prefix = f"{PREFIX}{destination}."
    values_by_key: dict[str, str] = {}
    for key, value in values.items():
        if key.startswith(prefix) and key not in INSTANCE_KEYS.keys:
            name = key.removeprefix(prefix)
            values_by_key[f"{PREFIX}global.{name}" if name in GLOBAL_NAMES else f"{PREFIX}{name}"] = value
    return values_by_key


def _check_manager(
    reader: PropertyReader,
    destination: str,
    shared: Mapping[str, str],
    own: Mapping[str, str],
    server: Mapping[str, str],
) -> None:
    """Check a mode or an address of canal-admin that is configured for one destination: canal-admin provides all
    instances of a server, or none."""
    given = {**_apply_destination_keys(destination, shared), **_apply_destination_keys(destination, own)}
    mode_key, address_key = f"{PREFIX}global.mode", f"{PREFIX}global.manager.address"
    manager = server.get("canal.admin.manager", "")
    if not manager and server.get(mode_key, "").lower() == "manager":
        manager = server.get(address_key, "")
    mode = (reader.read_text(mode_key) or "").lower() if mode_key in given else ""
    key = f"{PREFIX}{destination}.mode"
    if mode not in {"", "spring", "manager"}:
        raise ConfigurationError(f"{key}: it is spring or manager")
    if mode == "manager" and not manager:
        raise ConfigurationError(f"{key}: canal-admin provides all instances or none: set canal.admin.manager")
    if mode == "spring" and manager:
        reader.ignored.append(
            IgnoredKey(key, "canal-admin provides all instances of this server (canal.admin.manager)")
        )
    address = reader.values.get(address_key, "") if address_key in given else ""
    key = f"{PREFIX}{destination}.manager.address"
    if address and not manager:
        reader.ignored.append(IgnoredKey(key, "this server has no canal-admin: canal.admin.manager is not set"))
    elif address and address != manager:
        raise ConfigurationError(
            f"{key}: a server has one canal-admin, that of canal.admin.manager, and this is another"
        )


def _resolve_values(
    values: Mapping[str, str], folder: Path, destination: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return all properties with the environment's values and with placeholders resolved."""
    layers = {**values, **_read_environment(environment)}
    known = {**layers, "canal.conf.dir": str(folder), "canal.instance.destination": destination}
    values_by_key: dict[str, str] = {}
    for key, value in layers.items():
        try:
            values_by_key[key] = resolve_placeholders(value, known).strip()
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}: {error}") from None
    return values_by_key


def _read_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that environment variables set. CANAL_PORT is not one if it is an address: Kubernetes sets
    that for a service called canal."""
    dotted = {key: value for key, value in environment.items() if key.startswith(("canal.", "penstock."))}
    known = (*SERVER_KEYS.keys, *INSTANCE_KEYS.keys)
    upper = {key: environment.get(key.replace(".", "_").upper()) for key in known}
    return {
        key: value for key, value in upper.items() if value is not None and not value.startswith(_ADDRESSES)
    } | dotted


def _server_rules(values: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    """Yield the rule for each property of `canal.properties` that concerns the server, or that no instance will use."""
    for key in values:
        rule = SERVER_KEYS.find_rule(key)
        if rule is not None:
            yield key, rule
            continue
        # Defaults of instances: those decide, but what none will look at is reported here, once.
        rule = INSTANCE_KEYS.find_rule(key) or _find_destination_rule(key)
        if rule is None or isinstance(rule, Ignored):
            yield key, rule or UNKNOWN


def _instance_rules(values: Mapping[str, str], destination: str, own: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    """Yield the rule for each property that concerns an instance."""
    for key in values:
        rule = INSTANCE_KEYS.find_rule(key)
        if rule is not None and not isinstance(rule, Ignored):
            yield key, rule
        elif key in own:
            rule = rule or (_find_destination_rule(key) if key.startswith(f"{PREFIX}{destination}.") else None)
            # What counts for one destination stands among the values without its name, too.
            if rule is None or isinstance(rule, Ignored):
                yield key, rule or (_SERVER_ONLY if SERVER_KEYS.find_rule(key) else UNKNOWN)


def _find_destination_rule(key: str) -> Rule | None:
    """Return the rule of a key that has a destination in it, which may contain dots."""
    if not key.startswith(PREFIX):
        return None
    parts = key.removeprefix(PREFIX).split(".")
    names = (".".join(parts[start:]) for start in range(1, len(parts)))
    rules = (INSTANCE_KEYS.keys.get(f"{PREFIX}{'global.' if name in GLOBAL_NAMES else ''}{name}") for name in names)
    return next((rule for rule in rules if rule is not None), None)
