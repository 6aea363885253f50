"""canal's `canal.properties` and `instance.properties` as settings.

Every property is in one of two tables (`server_keys`, `instance_keys`), which say whether it is honoured,
refused or ignored. A value comes, the first that has one: from the environment (`canal.port` or CANAL_PORT), from the
instance's file, from `canal.properties` for this destination (`canal.instance.shop.…`), from `canal.properties`.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.canal.instance import fill_instance
from penstock.config.canal.instance_keys import GLOBAL_NAMES, INSTANCE_KEYS, PREFIX
from penstock.config.canal.misspelling import describe_misspellings
from penstock.config.canal.rules import UNKNOWN, Ignored, IgnoredKey, PropertyReader, Rule
from penstock.config.canal.server import fill_server
from penstock.config.canal.server_keys import SERVER_KEYS
from penstock.config.properties import resolve
from penstock.errors import ConfigurationError

_ELSEWHERE = Ignored("it counts in canal.properties only")
_ADDRESSES = ("tcp://", "udp://")


@dataclass(frozen=True, slots=True)
class CanalServer:
    """`listed` are the destinations that canal.properties names; with `canal.auto.scan` the folder has more."""

    settings: dict[str, Any]
    ignored: tuple[IgnoredKey, ...]
    listed: tuple[str, ...]
    said: Mapping[str, str]  # settings by path, with the property that says them


@dataclass(frozen=True, slots=True)
class CanalInstance:
    settings: dict[str, Any]
    ignored: tuple[IgnoredKey, ...]
    said: Mapping[str, str]


def read_canal_server(
    properties: Mapping[str, str], folder: Path, environment: Mapping[str, str] = os.environ
) -> CanalServer:
    folder = _absolute(folder)
    reader = PropertyReader(_effective(properties, folder, "", environment))
    reader.apply(_server_rules(reader.values))
    listed = fill_server(reader, folder)
    return CanalServer(reader.settings, tuple(reader.ignored), listed, reader.said)


def read_canal_instance(
    destination: str,
    own: Mapping[str, str],
    shared: Mapping[str, str],
    folder: Path,
    environment: Mapping[str, str] = os.environ,
) -> CanalInstance:
    """`shared` is what canal.properties says; what of that is ignored, the server has reported."""
    folder = _absolute(folder)
    layers = {**shared, **_for_one(destination, shared), **own, **_for_one(destination, own)}
    reader = PropertyReader(_effective(layers, folder, destination, environment))
    reader.apply(_instance_rules(reader.values, destination, own))
    reader.put("destination", destination)
    _manager_of_one(reader, destination, shared, own, _effective(shared, folder, destination, environment))
    try:
        fill_instance(reader, folder)
    except ConfigurationError as error:
        raise ConfigurationError("; ".join([str(error), *describe_misspellings(reader.ignored)])) from None
    return CanalInstance(reader.settings, tuple(reader.ignored), reader.said)


def _absolute(folder: Path) -> Path:
    """Return the conf folder as paths in canal's files see it: those are relative to its neighbour `bin`. Links are not
    followed, because the neighbour is that of the link."""
    return Path(os.path.normpath(folder.absolute()))


def _for_one(destination: str, values: Mapping[str, str]) -> dict[str, str]:
    """`canal.instance.shop.filter.regex` is `canal.instance.filter.regex` of shop, unless canal has that very key."""
    prefix = f"{PREFIX}{destination}."
    found: dict[str, str] = {}
    for key, value in values.items():
        if key.startswith(prefix) and key not in INSTANCE_KEYS.keys:
            name = key.removeprefix(prefix)
            found[f"{PREFIX}global.{name}" if name in GLOBAL_NAMES else f"{PREFIX}{name}"] = value
    return found


def _manager_of_one(
    reader: PropertyReader,
    destination: str,
    shared: Mapping[str, str],
    own: Mapping[str, str],
    server: Mapping[str, str],
) -> None:
    """A server has one manager, or none: what says something else for one destination cannot count."""
    given = {**_for_one(destination, shared), **_for_one(destination, own)}
    mode_key, address_key = f"{PREFIX}global.mode", f"{PREFIX}global.manager.address"
    manager = server.get("canal.admin.manager", "")
    if not manager and server.get(mode_key, "").lower() == "manager":
        manager = server.get(address_key, "")
    mode = (reader.text(mode_key) or "").lower() if mode_key in given else ""
    key = f"{PREFIX}{destination}.mode"
    if mode not in {"", "spring", "manager"}:
        raise ConfigurationError(f"{key}: it is spring or manager")
    if mode == "manager" and not manager:
        raise ConfigurationError(f"{key}: a manager has all instances or none, say it with canal.admin.manager")
    if mode == "spring" and manager:
        reader.ignored.append(IgnoredKey(key, "the server has a manager, which has all instances"))
    address = reader.values.get(address_key, "") if address_key in given else ""
    key = f"{PREFIX}{destination}.manager.address"
    if address and not manager:
        reader.ignored.append(IgnoredKey(key, "the server has no manager: that is canal.admin.manager"))
    elif address and address != manager:
        raise ConfigurationError(f"{key}: a server has one manager, canal.admin.manager, and this is another one")


def _effective(
    values: Mapping[str, str], folder: Path, destination: str, environment: Mapping[str, str]
) -> dict[str, str]:
    layers = {**values, **_of_environment(environment)}
    known = {**layers, "canal.conf.dir": str(folder), "canal.instance.destination": destination}
    found: dict[str, str] = {}
    for key, value in layers.items():
        try:
            found[key] = resolve(value, known).strip()
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}: {error}") from None
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Kubernetes sets CANAL_PORT for a service called canal, to an address: that is not ours."""
    dotted = {key: value for key, value in environment.items() if key.startswith(("canal.", "penstock."))}
    known = (*SERVER_KEYS.keys, *INSTANCE_KEYS.keys)
    upper = {key: environment.get(key.replace(".", "_").upper()) for key in known}
    return {
        key: value for key, value in upper.items() if value is not None and not value.startswith(_ADDRESSES)
    } | dotted


def _server_rules(values: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    for key in values:
        rule = SERVER_KEYS.rule(key)
        if rule is not None:
            yield key, rule
            continue
        # Defaults of instances: those decide, but what none will look at is reported here, once.
        rule = INSTANCE_KEYS.rule(key) or _rule_for_one(key)
        if rule is None or isinstance(rule, Ignored):
            yield key, rule or UNKNOWN


def _instance_rules(values: Mapping[str, str], destination: str, own: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    for key in values:
        rule = INSTANCE_KEYS.rule(key)
        if rule is not None and not isinstance(rule, Ignored):
            yield key, rule
        elif key in own:
            rule = rule or (_rule_for_one(key) if key.startswith(f"{PREFIX}{destination}.") else None)
            # What counts for one destination stands among the values without its name, too.
            if rule is None or isinstance(rule, Ignored):
                yield key, rule or (_ELSEWHERE if SERVER_KEYS.rule(key) else UNKNOWN)


def _rule_for_one(key: str) -> Rule | None:
    """The rule of a key with a destination in it, which may have dots."""
    if not key.startswith(PREFIX):
        return None
    parts = key.removeprefix(PREFIX).split(".")
    names = (".".join(parts[start:]) for start in range(1, len(parts)))
    rules = (INSTANCE_KEYS.keys.get(f"{PREFIX}{'global.' if name in GLOBAL_NAMES else ''}{name}") for name in names)
    return next((rule for rule in rules if rule is not None), None)
