"""Tells whether a server is ready: every destination makes progress, on this server or on another one."""

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
    """The reasons why a server is not ready, and notes on what is unusual but fine, by destination and `(server)`."""

    unready_reasons: Mapping[str, str]
    notes: Mapping[str, str]  # what is not as usual, and all right: it is a standby, or was stopped manually

    @property
    def is_ready(self) -> bool:
        """Return whether neither a destination nor the server itself gives a reason against it."""
        return not self.unready_reasons

    def to_json(self) -> dict[str, object]:
        """Return the readiness as an object for JSON, with the keys `ready`, `reasons` and `notes`."""
        return {"ready": self.is_ready, "reasons": dict(self.unready_reasons), "notes": dict(self.notes)}


def check_readiness(
    destinations: Mapping[str, Destination],
    monitor: ConfigMonitor | None,
    server_problem: str = "",
    starting: Collection[str] = (),
) -> Readiness:
    """Return whether the server is ready, and if not, why.

    `server_problem` is a problem of the server as a whole; `starting` are configured destinations that do not run yet.
    """
    states = {name: _check_destination(destination) for name, destination in destinations.items()}
    unready_reasons = {name: text for name, (is_unready, text) in states.items() if is_unready}
    notes = {name: text for name, (is_unready, text) in states.items() if text and not is_unready}
    if monitor is not None:
        waiting = dict.fromkeys(monitor.unreconciled, "it is being brought to what its settings say")
        unready_reasons |= waiting | dict.fromkeys(starting, _STARTING) | monitor.config_errors
    else:
        unready_reasons |= dict.fromkeys(starting, _STARTING)
    if server_problem:
        unready_reasons[SERVER] = server_problem
    return Readiness(unready_reasons, notes)


def _check_destination(destination: Destination) -> tuple[bool, str]:
    """Return whether a destination keeps the server from being ready, and the reason or note."""
    if destination.halt_reason is not None:
        return False, f"stopped {destination.halt_reason}"
    if isinstance(destination, ElectedDestination) and not destination.election.is_held():
        return _check_standby(destination)
    instance = destination.instance
    is_elected = isinstance(destination, ElectedDestination)
    if instance is None or (is_elected and instance.state in _ENDED and not destination.problem):
        return True, _STARTING
    text = unready_reason(instance)
    return bool(text), text


def _check_standby(destination: ElectedDestination) -> tuple[bool, str]:
    """Return the same for a destination that this server does not hold the election of."""
    election = destination.election
    owner = election.owner
    if owner is not None and owner != election.address:
        return False, f"standby: {owner} runs it"
    match election.state:
        case ElectionState.PAUSED:
            return False, "paused: active=false is in its running node"
        case ElectionState.LOST:
            return True, "there is no session with ZooKeeper"
        case _:
            return True, destination.problem or "no server runs it yet"
