"""Whether a server does what it is there for: every destination gets on, here or on another server."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.config.snapshot import SERVER
from penstock.coordinate.election_state import ElectionState
from penstock.instance import InstanceState
from penstock.instance.progress import unready_reason
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destination import Destination, ElectedDestination

_ENDED = {InstanceState.STOPPED, InstanceState.FAILED}
_STARTING = "it is being started"


@dataclass(frozen=True, slots=True)
class Readiness:
    """By destination, and `(server)`."""

    unready_reasons: Mapping[str, str]
    notes: Mapping[str, str]  # what is not as usual, and all right: it stands by, or was stopped by hand

    @property
    def is_ready(self) -> bool:
        return not self.unready_reasons

    def to_json(self) -> dict[str, object]:
        return {"ready": self.is_ready, "reasons": dict(self.unready_reasons), "notes": dict(self.notes)}


def judge(
    destinations: Mapping[str, Destination],
    monitor: ConfigMonitor | None,
    of_server: str = "",
    starting: Collection[str] = (),
) -> Readiness:
    """Return whether the server is ready, and why not.

    `of_server` is a problem of the server as a whole; `starting` are configured destinations that do not run yet.
    """
    found = {name: _of(one) for name, one in destinations.items()}
    unready_reasons = {name: text for name, (is_bad, text) in found.items() if is_bad}
    notes = {name: text for name, (is_bad, text) in found.items() if text and not is_bad}
    if monitor is not None:
        waiting = dict.fromkeys(monitor.waiting, "it is being brought to what its settings say")
        unready_reasons |= waiting | dict.fromkeys(starting, _STARTING) | monitor.config_errors
    else:
        unready_reasons |= dict.fromkeys(starting, _STARTING)
    if of_server:
        unready_reasons[SERVER] = of_server
    return Readiness(unready_reasons, notes)


def _of(destination: Destination) -> tuple[bool, str]:
    """Whether it is bad, and what there is to say."""
    if destination.halted is not None:
        return False, f"stopped {destination.halted}"
    if isinstance(destination, ElectedDestination) and not destination.election.is_held():
        return _of_standby(destination)
    instance = destination.instance
    is_elected = isinstance(destination, ElectedDestination)
    if instance is None or (is_elected and instance.state in _ENDED and not destination.problem):
        return True, _STARTING
    text = unready_reason(instance)
    return bool(text), text


def _of_standby(destination: ElectedDestination) -> tuple[bool, str]:
    election = destination.election
    owner = election.owner
    if owner is not None and owner != election.address:
        return False, f"stands by: {owner} runs it"
    match election.state:
        case ElectionState.PAUSED:
            return False, "paused: active=false is in its running node"
        case ElectionState.LOST:
            return True, "there is no session with ZooKeeper"
        case _:
            return True, destination.problem or "no server runs it yet"
