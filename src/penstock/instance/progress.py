"""Tells whether an instance makes progress, which is more than that it is alive."""

import time

from penstock.capture.state import InstanceState
from penstock.config import SourceSettings
from penstock.instance.instance import Instance

STUCK_S = 60.0  # capture may wait this long for one ack, or for room on a disk
_MIN_SILENCE_S = 30.0  # a source sends at least its heartbeats
_HEARTBEATS = 4

_NOT_CAPTURING = {InstanceState.STARTING, InstanceState.RECONNECTING, InstanceState.SWITCHING}


def unready_reason(instance: Instance, now: float | None = None) -> str:
    """Return why an instance makes no progress; empty when it does, or when it was paused on purpose."""
    now = time.time() if now is None else now
    change = instance.states.current
    state_s = now - change.since
    state = change.state
    if state is InstanceState.FAILED or state in _NOT_CAPTURING:
        return f"{state.value}: {change.reason}" if change.reason else state.value
    if state is InstanceState.STOPPED:
        return "it has stopped"
    if state is InstanceState.BLOCKED and state_s > STUCK_S:
        return f"stuck for {state_s:.0f} s: {change.reason}"
    if state is InstanceState.FOLLOWING:
        silent_s = min(instance.counters.silent_s or 0.0, state_s)
        if silent_s > _max_silence_s(instance):
            return f"stuck: capture has done nothing for {silent_s:.0f} s"
    return ""


def _max_silence_s(instance: Instance) -> float:
    """Return for how many seconds a healthy source may send nothing at all."""
    source = instance.settings.source
    if isinstance(source, SourceSettings):
        return max(_MIN_SILENCE_S, _HEARTBEATS * source.heartbeat_s)
    return max(_MIN_SILENCE_S, 2 * source.missing_file_timeout_s, _HEARTBEATS * source.poll_s)
