"""What `penstock config check` says of a conf folder: what is wrong, what is open, what counts for nothing."""

from collections.abc import Iterator, Mapping, Sequence

from penstock.config import InstanceSettings, Snapshot
from penstock.config.canal.misspelling import describe_misspellings, suggest_key
from penstock.config.canal.rules import UNKNOWN, IgnoredKey
from penstock.config.exposure import describe_open_ports
from penstock.config.snapshot import SERVER, FoundInstance
from penstock.config.time_zone import LOCAL, zone_name


def check_lines(found: Snapshot) -> Iterator[str]:
    """Yield a line for the server and for each destination, each with what belongs to it, indented, below it."""
    width = max(map(len, [SERVER, *found.instances]))
    indent = " " * (width + 2)
    yield f"{SERVER:{width}}  ok"
    yield from (f"{indent}WARNING: {text}" for text in describe_open_ports(found.server))
    yield from (f"{indent}{line}" for line in _ignored_lines(found.ignored))
    for name, one in found.instances.items():
        yield f"{name:{width}}  {one.error or _verdict(one)}"
        yield from (f"{indent}{line}" for line in _ignored_lines(one.ignored))


def describe_check(found: Snapshot) -> dict[str, object]:
    """Return the same as plain data."""
    about = _ignored_json(found.ignored)
    about["warnings"] = [*describe_open_ports(found.server), *describe_misspellings(found.ignored)]
    return {"server": about, "instances": {name: _instance_json(one) for name, one in found.instances.items()}}


def _verdict(one: FoundInstance) -> str:
    zone = None if one.settings is None else _zone(one.settings)
    return f"ok, canal's clients see TIMESTAMP in {zone}" if zone else "ok"


def _zone(settings: InstanceSettings) -> str:
    """Return the zone that counts; where that is this machine's, with a word about it."""
    text = settings.canal.time_zone
    return f"{zone_name(text)}, the time zone of this machine" if text == LOCAL else text


def _ignored_lines(ignored: Sequence[IgnoredKey]) -> Iterator[str]:
    """Yield misspelled keys first, then the ignored ones by reason."""
    yield from (f"WARNING: {text}" for text in describe_misspellings(ignored))
    for reason, keys in _by_reason(ignored).items():
        yield f"ignored ({reason}): {', '.join(keys)}"


def _by_reason(ignored: Sequence[IgnoredKey]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, reason in ignored:
        if reason != UNKNOWN.reason or suggest_key(key) is None:
            found.setdefault(reason, []).append(key)
    return found


def _ignored_json(ignored: Sequence[IgnoredKey]) -> dict[str, object]:
    meant = {key: suggest_key(key) for key, reason in ignored if reason == UNKNOWN.reason}
    return {"ignored": dict(ignored), "did_you_mean": {key: name for key, name in meant.items() if name is not None}}


def _instance_json(one: FoundInstance) -> dict[str, object]:
    settings = one.settings
    return {
        "error": one.error,
        **_ignored_json(one.ignored),
        "warnings": describe_misspellings(one.ignored),
        "files": [str(path) for path in one.paths],
        "time_zone": None if settings is None else zone_name(settings.canal.time_zone),
    }
