"""The status of a server as plain data, for `/status`, `/readyz` and `/metrics`."""

import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from penstock import __version__
from penstock.coordinate.election_state import ElectionState
from penstock.instance import InstanceState
from penstock.instance.report import report_instance
from penstock.server.canal.traffic import TrafficCounts
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.descriptors import DescriptorBudget
from penstock.server.destination import Destination, ElectedDestination
from penstock.server.readiness import Readiness, check_readiness

_NOT_STARTED: dict[str, Any] = {
    "state": "stopped",
    "reason": "",
    "lag": None,
    "store": None,
    "prepared": None,
    "clients": [],
}


class ReportedServer(Protocol):
    """The parts of a server that its status is made from."""

    @property
    def all_destinations(self) -> Mapping[str, Destination]:
        """Return all destinations by name."""
        ...

    @property
    def starting(self) -> Mapping[str, str]:
        """Return the destinations that are configured and not started yet, with the reason why the last attempt
        failed."""
        ...

    @property
    def monitor(self) -> ConfigMonitor:
        """Return the config monitor."""
        ...

    @property
    def unready_reason(self) -> str:
        """Return why the server as a whole is not ready; empty when it is."""
        ...

    @property
    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        """Return the address of each port, and how many connections it has where that is known."""
        ...

    @property
    def traffic(self) -> Mapping[str, TrafficCounts]:
        """Return the traffic counters of canal's port, by destination."""
        ...

    @property
    def descriptors(self) -> DescriptorBudget:
        """Return how many file descriptors the server process may open, and how many its destinations and clients
        need."""
        ...

    @property
    def started_at(self) -> float:
        """Return when the server was created, as a Unix time."""
        ...


class ServerReport:
    """Builds the status of a server from what its parts know already; the source is not asked. Any thread may call
    it."""

    def __init__(self, server: ReportedServer) -> None:
        self._server = server

    @property
    def traffic(self) -> Mapping[str, TrafficCounts]:
        """Return the traffic counters of canal's port, by destination."""
        return self._server.traffic

    def readiness(self) -> Readiness:
        """Return whether the server is ready, and if not, why."""
        server = self._server
        return check_readiness(server.all_destinations, server.monitor, server.unready_reason, server.starting)

    def status(self) -> dict[str, Any]:
        """Return the whole status, as `/status` shows it."""
        server, now = self._server, time.time()
        starting, ready = server.starting, self.readiness()
        instances = {
            name: _report_destination(destination, ready, now) for name, destination in server.all_destinations.items()
        }
        not_started = {name: _report_starting(name, problem, ready) for name, problem in starting.items()}
        ports = {
            name: {"address": address, "connections": connections}
            for name, (address, connections) in server.ports.items()
        }
        status: dict[str, Any] = {"version": __version__, "uptime_s": round(now - server.started_at, 3), "ports": ports}
        status["pid"] = os.getpid()
        status["descriptors"] = server.descriptors.to_json()
        return {
            "time": round(now, 3),
            "server": status,
            **ready.to_json(),
            "problems": dict(server.monitor.problems),
            "instances": [status for _, status in sorted((not_started | instances).items(), key=lambda item: item[0])],
        }


def _report_starting(name: str, problem: str, ready: Readiness) -> dict[str, Any]:
    """Return the status of a destination that is configured and not started yet."""
    return {
        "destination": name,
        **_NOT_STARTED,
        "state": InstanceState.STARTING.value,
        "reason": problem,
        "role": "starting",
        "unready_reason": ready.unready_reasons.get(name, ""),
        "note": ready.notes.get(name, ""),
    }


def _report_destination(destination: Destination, ready: Readiness, now: float) -> dict[str, Any]:
    """Return the status of a destination: its instance, its role and its election."""
    instance = destination.instance
    status: dict[str, Any] = {"destination": destination.name}
    status |= report_instance(instance, now) if instance is not None else dict(_NOT_STARTED)
    status["role"] = "running"
    if isinstance(destination, ElectedDestination):
        election = destination.election
        fence = election.fence
        status["election"] = {
            "state": election.state.value,
            "is_held": election.is_held(),
            "owner": election.owner,
            "address": election.address,
            "epoch": None if fence is None else fence.epoch,
            "problem": destination.problem,
        }
        if not election.is_held():
            status["role"] = "paused" if election.state is ElectionState.PAUSED else "standby"
    if destination.halt_reason is not None:
        status["role"] = "stopped manually"
    status["unready_reason"] = ready.unready_reasons.get(destination.name, "")
    status["note"] = ready.notes.get(destination.name, "")
    return status
