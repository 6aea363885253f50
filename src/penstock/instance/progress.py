"""Whether an instance gets on, which is more than that it lives."""

import time

from penstock.capture.state import InstanceState
from penstock.config import SourceSettings
from penstock.instance.instance import Instance

STUCK_S = 60.0  # so long capture may wait for one ack, or for room on a disk
_SILENT_S = 30.0  # at least; a source says something with every heartbeat
_HEARTBEATS = 4

_UNDER_WAY = {InstanceState.STARTING, InstanceState.RECONNECTING, InstanceState.SWITCHING}


def unready_reason(instance: Instance, now: float | None = None) -> str:
    """Why it does not get on; nothing when it does, or rests because somebody wanted that."""
    now = time.time() if now is None else now
    step = instance.states.current
    for_s = now - step.since
    state = step.state
    if state is InstanceState.FAILED or state in _UNDER_WAY:
        return f"{state.value}: {step.reason}" if step.reason else state.value
    if state is InstanceState.STOPPED:
        return "it has stopped"
    if state is InstanceState.BLOCKED and for_s > STUCK_S:
        return f"stuck for {for_s:.0f} s: {step.reason}"
    if state is InstanceState.FOLLOWING:
        silent_s = min(instance.counters.silent_s or 0.0, for_s)
        if silent_s > _longest_silence_s(instance):
            return f"stuck: capture has done nothing for {silent_s:.0f} s"
    return ""


def _longest_silence_s(instance: Instance) -> float:
    source = instance.settings.source
    if isinstance(source, SourceSettings):
        return max(_SILENT_S, _HEARTBEATS * source.heartbeat_s)
    return max(_SILENT_S, 2 * source.patience_s, _HEARTBEATS * source.poll_s)
