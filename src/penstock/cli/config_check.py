"""The report of `penstock config check` on a conf folder: settings that are wrong, ports open to other machines, and
keys that are ignored."""

from collections.abc import Iterator, Mapping, Sequence

from penstock.config import ConfigSnapshot, InstanceSettings
from penstock.config.canal.misspelling import describe_misspellings, suggest_key
from penstock.config.canal.rules import UNKNOWN, IgnoredKey
from penstock.config.exposure import describe_open_ports
from penstock.config.snapshot import SERVER, ConfiguredInstance
from penstock.config.time_zone import LOCAL, resolve_zone_name


def check_lines(snapshot: ConfigSnapshot) -> Iterator[str]:
    """Yield a line for the server and for each destination, each with what belongs to it, indented, below it."""
    width = max(map(len, [SERVER, *snapshot.instances]))
    indent = " " * (width + 2)
    yield f"{SERVER:{width}}  ok"
    yield from (f"{indent}WARNING: {text}" for text in describe_open_ports(snapshot.server))
    yield from (f"{indent}{line}" for line in _ignored_lines(snapshot.ignored))
    for name, instance in snapshot.instances.items():
        yield f"{name:{width}}  {instance.error or _describe_verdict(instance)}"
        yield from (f"{indent}{line}" for line in _ignored_lines(instance.ignored))


def describe_check(snapshot: ConfigSnapshot) -> dict[str, object]:
    """Return what is wrong, open or ignored in a configuration as plain data."""
    server = _ignored_to_json(snapshot.ignored)
    server["warnings"] = [*describe_open_ports(snapshot.server), *describe_misspellings(snapshot.ignored)]
    return {
        "server": server,
        "instances": {name: _instance_to_json(instance) for name, instance in snapshot.instances.items()},
    }


def _describe_verdict(instance: ConfiguredInstance) -> str:
    """Return `ok` or what is wrong with a destination."""
    zone = None if instance.settings is None else _describe_time_zone(instance.settings)
    return f"ok, canal's clients see TIMESTAMP in {zone}" if zone else "ok"


def _describe_time_zone(settings: InstanceSettings) -> str:
    """Return the time zone that counts; if that is this machine's, with a remark about it."""
    text = settings.canal.time_zone
    return f"{resolve_zone_name(text)}, the time zone of this machine" if text == LOCAL else text


def _ignored_lines(ignored: Sequence[IgnoredKey]) -> Iterator[str]:
    """Yield misspelled keys first, then the ignored ones by reason."""
    yield from (f"WARNING: {text}" for text in describe_misspellings(ignored))
    for reason, keys in _group_by_reason(ignored).items():
        yield f"ignored ({reason}): {', '.join(keys)}"


def _group_by_reason(ignored: Sequence[IgnoredKey]) -> Mapping[str, list[str]]:
    """Group ignored keys by the reason why they are ignored."""
    keys_by_reason: dict[str, list[str]] = {}
    for key, reason in ignored:
        if reason != UNKNOWN.reason or suggest_key(key) is None:
            keys_by_reason.setdefault(reason, []).append(key)
    return keys_by_reason


def _ignored_to_json(ignored: Sequence[IgnoredKey]) -> dict[str, object]:
    """Return ignored keys as plain data."""
    meant = {key: suggest_key(key) for key, reason in ignored if reason == UNKNOWN.reason}
    return {"ignored": dict(ignored), "did_you_mean": {key: name for key, name in meant.items() if name is not None}}


def _instance_to_json(instance: ConfiguredInstance) -> dict[str, object]:
    """Return what is wrong with a destination as plain data."""
    settings = instance.settings
    return {
        "error": instance.error,
        **_ignored_to_json(instance.ignored),
        "warnings": describe_misspellings(instance.ignored),
        "files": [str(path) for path in instance.paths],
        "time_zone": None if settings is None else resolve_zone_name(settings.canal.time_zone),
    }
