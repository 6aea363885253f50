"""A server as plain data: for who asks how it is."""

import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from penstock import __version__
from penstock.coordinate.election_state import ElectionState
from penstock.instance import InstanceState
from penstock.instance.report import report as instance_report
from penstock.server.canal.traffic import TrafficCounts
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.descriptors import DescriptorBudget
from penstock.server.destination import Destination, ElectedDestination
from penstock.server.readiness import Readiness, judge

_NOTHING: dict[str, Any] = {
    "state": "stopped",
    "reason": "",
    "lag": None,
    "store": None,
    "prepared": None,
    "clients": [],
}


class ReportedServer(Protocol):
    """What a server lets others see."""

    @property
    def all_destinations(self) -> Mapping[str, Destination]: ...

    @property
    def starting(self) -> Mapping[str, str]:
        """Destinations that are configured and not there yet, and why their last try failed."""
        ...

    @property
    def monitor(self) -> ConfigMonitor: ...

    @property
    def unready_reason(self) -> str:
        """Of the server as a whole: why it is not ready."""
        ...

    @property
    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        """Addresses, and how many are connected where that is known."""
        ...

    @property
    def traffic(self) -> Mapping[str, TrafficCounts]:
        """Over canal's port."""
        ...

    @property
    def descriptors(self) -> DescriptorBudget: ...

    @property
    def started_at(self) -> float: ...


class Report:
    """Any thread may ask; each question is answered anew, without asking anybody else."""

    def __init__(self, server: ReportedServer) -> None:
        self._server = server

    @property
    def traffic(self) -> Mapping[str, TrafficCounts]:
        return self._server.traffic

    def readiness(self) -> Readiness:
        server = self._server
        return judge(server.all_destinations, server.monitor, server.unready_reason, server.starting)

    def status(self) -> dict[str, Any]:
        server, now = self._server, time.time()
        starting, ready = server.starting, self.readiness()
        instances = {name: _destination(one, ready, now) for name, one in server.all_destinations.items()}
        absent = {name: _absent(name, problem, ready) for name, problem in starting.items()}
        ports = {
            name: {"address": address, "connections": connections}
            for name, (address, connections) in server.ports.items()
        }
        about: dict[str, Any] = {"version": __version__, "uptime_s": round(now - server.started_at, 3), "ports": ports}
        about["pid"] = os.getpid()
        about["descriptors"] = server.descriptors.to_json()
        return {
            "time": round(now, 3),
            "server": about,
            **ready.to_json(),
            "problems": dict(server.monitor.problems),
            "instances": [one for _, one in sorted((absent | instances).items(), key=lambda it: it[0])],
        }


def _absent(name: str, problem: str, ready: Readiness) -> dict[str, Any]:
    """A destination that is configured and has not been started yet."""
    return {
        "destination": name,
        **_NOTHING,
        "state": InstanceState.STARTING.value,
        "reason": problem,
        "role": "starts",
        "unready_reason": ready.unready_reasons.get(name, ""),
        "note": ready.notes.get(name, ""),
    }


def _destination(destination: Destination, ready: Readiness, now: float) -> dict[str, Any]:
    instance = destination.instance
    about: dict[str, Any] = {"destination": destination.name}
    about |= instance_report(instance, now) if instance is not None else dict(_NOTHING)
    about["role"] = "runs"
    if isinstance(destination, ElectedDestination):
        election = destination.election
        fence = election.fence
        about["election"] = {
            "state": election.state.value,
            "is_held": election.is_held(),
            "owner": election.owner,
            "address": election.address,
            "epoch": None if fence is None else fence.epoch,
            "problem": destination.problem,
        }
        if not election.is_held():
            about["role"] = "paused" if election.state is ElectionState.PAUSED else "stands by"
    if destination.halted is not None:
        about["role"] = "stopped by hand"
    about["unready_reason"] = ready.unready_reasons.get(destination.name, "")
    about["note"] = ready.notes.get(destination.name, "")
    return about
