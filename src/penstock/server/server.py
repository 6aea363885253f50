"""A server: its destinations, and the ports that they are reached by."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from penstock.config import ServerSettings
from penstock.config.exposure import describe_open_ports
from penstock.errors import PenstockError
from penstock.instance import Instance
from penstock.server.admin import AdminPort
from penstock.server.canal import CanalListener
from penstock.server.canal.session import Access
from penstock.server.canal.traffic import Counted
from penstock.server.canal_admin import CanalAdminListener
from penstock.server.canal_admin.calls import Calls
from penstock.server.cluster import Cluster, published_address
from penstock.server.conf import Conf
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.descriptors import DescriptorBudget, log_budget, plan_descriptors
from penstock.server.destination import Destination
from penstock.server.destinations import Destinations
from penstock.server.expected import Expected
from penstock.server.finish import finish_all
from penstock.server.flight import FlightPort
from penstock.server.groups import Groups
from penstock.server.log_ring import LogRing
from penstock.server.report import Report

log = logging.getLogger(__name__)

_STOP_S = 30.0
_CALLS_S = 5.0


class Server:
    """Binds its ports when constructed. Instances are those of the settings, or what `conf` says from time to time."""

    def __init__(self, settings: ServerSettings, conf: Conf | None = None, scan_s: float = 0) -> None:
        self.settings = settings
        canal = settings.canal
        self.monitor: ConfigMonitor | None = None
        self.destinations = Destinations(settings.groups, expected=self._expected)
        groups = Groups(settings.groups, self.destinations.instance)
        self.flight = FlightPort(settings.flight, self.destinations)
        self.canal: CanalListener | None = None
        if canal.port is not None:
            stored = canal.stored_hash
            self.canal = CanalListener(
                canal.host,
                canal.port,
                groups.served,
                access=Access(canal.user, stored.hex() if stored else ""),
                frame_limit=canal.frame_limit,
                idle_s=canal.idle_s,
                handshake_s=canal.handshake_s,
                connections=canal.connections,
                start_wait_s=canal.start_wait_s,
            )
        host, port = (canal.host, self.canal.port) if self.canal else (settings.flight.host, self.flight.port)
        self.cluster = Cluster(settings.running, published_address(host, port, settings.running.address))
        self.destinations.cluster = self.cluster
        self._served: list[Instance] = []
        self.has_started, self.started_at = False, time.time()
        self._is_stopping = False
        if conf is not None:
            self.monitor = ConfigMonitor(conf, self.destinations, scan_s)
        self.report, self._ring = Report(self), LogRing()
        self.admin: AdminPort | None = None
        self.canal_admin: CanalAdminListener | None = None
        try:
            if settings.admin.port is not None:
                self.admin = AdminPort(
                    settings.admin, settings.admin.port, self.report, instance_of=self.destinations.instance
                )
            if settings.canal_admin.port is not None:
                calls = Calls(self.destinations, self._ring, settings)
                self.canal_admin = CanalAdminListener(settings.canal_admin, settings.canal_admin.port, calls)
        except PenstockError:
            for port in (self.canal, self.admin):
                if port is not None:
                    port.stop()
            raise

    @property
    def hindrance(self) -> str:
        """Why it is not ready, as a whole."""
        if self._is_stopping:
            return "it is being stopped"
        if not self.has_started:
            return "it is being started"
        return "it was stopped by hand" if self.destinations.is_halted else ""

    @property
    def is_serving(self) -> bool:
        """Whether it has started, and at least one destination can be read: here, or at the server that runs it."""
        return self.has_started and any(one.is_served for one in self.all_destinations.values())

    @property
    def has_no_destination(self) -> bool:
        """Whether nothing is configured, as far as the configuration was read."""
        return not self.all_destinations and self._expected().is_empty

    @property
    def starting(self) -> Mapping[str, str]:
        return self.destinations.starting

    @property
    def all_destinations(self) -> Mapping[str, Destination]:
        return self.destinations.all

    @property
    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        """Addresses, and how many are connected where that is known."""
        several = {"canal": self.canal, "admin": self.admin, "canal_admin": self.canal_admin}
        found = {name: (port.address, port.open_connections) for name, port in several.items() if port is not None}
        return {"flight": (self.address, None), **found}

    @property
    def traffic(self) -> Mapping[str, Counted]:
        return self.canal.traffic.counted() if self.canal is not None else {}

    @property
    def instances(self) -> Mapping[str, Instance]:
        return self.destinations.instances

    @property
    def address(self) -> str:
        """Of Arrow Flight."""
        return self.flight.address

    @property
    def descriptors(self) -> DescriptorBudget:
        """What its destinations need of the process's file descriptors."""
        return plan_descriptors(self.settings, [one.settings for one in self.all_destinations.values()])

    @property
    def problems(self) -> Mapping[str, str]:
        return self.monitor.problems if self.monitor is not None else {}

    @property
    def is_over(self) -> bool:
        """All instances have failed, and nobody would mend that."""
        several = self.instances.values()
        return self.monitor is None and bool(several) and all(one.failure is not None for one in several)

    @property
    def failure(self) -> PenstockError | None:
        """Of the first that has failed, where nobody would mend it."""
        if self.monitor is not None:
            return None
        return next((one.failure for one in self._served if one.failure is not None), None)

    def start(self) -> None:
        """Instances of the settings first, and if one cannot start, none; those of a conf when they can. Meanwhile all
        ports answer: who asks for a destination that is still starting is told to try again."""
        for warning in describe_open_ports(self.settings):
            log.warning("%s", warning)
        if self.admin is not None:
            self.admin.start()
        if self.canal_admin is not None:
            self._ring.attach()
            self.canal_admin.start()
        if self.canal is not None:
            self.canal.start()
        if self.monitor is None:
            log_budget(plan_descriptors(self.settings, self.settings.captured))
            for one in self.settings.captured:
                self.destinations.start(one)
            self._served = list(self.instances.values())
        else:
            self.monitor.start()
        self.has_started = True

    def stop(self, timeout_s: float = _STOP_S) -> bool:
        """Tell every stream to reconnect, write what is to be kept, and close the ports, in so many seconds at most.

        False when something has not ended by then, such as a call whose reader does not read: then only the end of the
        process ends it.
        """
        until = time.monotonic() + timeout_s
        self.has_started, self._is_stopping = False, True
        self.destinations.close()
        steps: dict[str, Callable[[], object]] = {"capture": lambda: self._stop_capture(until)}
        for port in (self.canal, self.canal_admin):
            if port is not None:
                steps[port.name] = partial(port.stop, timeout_s)
        # Calls end as soon as they are told to; one whose reader does not read never does.
        flight = {"flight": lambda: finish_all({"flight calls": self.flight.stop}, min(timeout_s, _CALLS_S))}
        unfinished = finish_all({**steps, **flight}, timeout_s)
        if not self.flight.has_ended:
            unfinished.append("flight")
        if self.canal_admin is not None:
            self._ring.detach()
        if self.admin is not None:
            self.admin.stop(max(0.5, until - time.monotonic()))
        if unfinished:
            log.warning("not ended in time parts=%s streams=%d", ",".join(unfinished), self.flight.streams)
        return not unfinished

    def _expected(self) -> Expected:
        if self.monitor is not None:
            return self.monitor.expected
        running = self.destinations.all
        return Expected({one.destination: "" for one in self.settings.captured if one.destination not in running})

    def _stop_capture(self, until: float) -> None:
        if self.monitor is not None:
            self.monitor.stop(max(0.0, until - time.monotonic()) / 2)
        self.destinations.stop_all(max(0.0, until - time.monotonic()))
