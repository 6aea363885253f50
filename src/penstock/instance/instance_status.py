"""The status of one instance as plain data, for operators: `penstock status`, the admin port and Flight show it."""

import time
from typing import Any

from penstock.capture.counters import CaptureCounters
from penstock.capture.state import InstanceState, StateTracker
from penstock.instance.components import Components


def describe_instance(
    destination: str, states: StateTracker, counters: CaptureCounters, components: Components | None
) -> dict[str, Any]:
    """Return state and counters, and positions and lag if the instance was started."""
    change = states.current
    status: dict[str, Any] = {
        "destination": destination,
        "state": change.state.value,
        "reason": change.reason,
        "since": change.since,
        "seconds": {state.value: round(spent, 3) for state, spent in states.seconds.items() if spent},
        "counters": counters.to_json(),
    }
    if components is None:
        return status
    read_to = counters.read_to or components.store.latest
    return status | {"read_to": read_to.to_json()} | _describe_components(components, change.state)


def _describe_components(components: Components, state: InstanceState) -> dict[str, Any]:
    """Return what the components of an instance add to its status."""
    store, tables = components.store, components.tables
    return {
        "source": components.log.source.address,
        "epoch": components.log.epoch,
        "began": components.begin.to_json(),
        "first": store.first.to_json(),
        "latest": store.latest.to_json(),
        "acked": store.acked.to_json(),
        "behind_s": _behind_s(components, state),
        "store_bytes": store.size_bytes,
        "stopped_tables": {str(name): why for name, why in tables.stopped_tables.items()},
        "changes_as_statements": {"count": tables.uncaptured_count, "last": tables.last_uncaptured},
        "differences": {str(name): difference for name, difference in tables.differences.items()},
        "retention_hours_left": components.watchdog.hours_left,
    }


def _behind_s(components: Components, state: InstanceState) -> float | None:
    """Return the age in seconds of the newest captured change; 0 when capture has read the whole log, None when
    unknown."""
    if components.capture.is_caught_up and state is InstanceState.FOLLOWING:
        return 0.0
    seconds = components.store.latest.timestamp
    return max(0.0, round(time.time() - seconds, 3)) if seconds else None
