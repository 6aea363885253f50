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
from penstock.server.canal.session import CanalAccess
from penstock.server.canal.traffic import TrafficCounts
from penstock.server.canal_admin import CanalAdminListener
from penstock.server.canal_admin.calls import ConsoleCalls
from penstock.server.cluster import Cluster, published_address, published_flight_url
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.config_source import ConfigSource, FixedConfig
from penstock.server.descriptors import DescriptorBudget, plan_descriptors
from penstock.server.destination import Destination
from penstock.server.destinations import Destinations
from penstock.server.expected import ExpectedDestinations
from penstock.server.finish import finish_all
from penstock.server.flight import FlightPort
from penstock.server.groups import Groups
from penstock.server.log_ring import LogRing
from penstock.server.report import Report

log = logging.getLogger(__name__)

_STOP_S = 30.0
_CALLS_S = 5.0


class Server:
    """Binds its ports when constructed. Destinations are those of the settings, or those that `conf` describes.

        server = Server(ServerSettings.of_flight(instance))
        server.start()

    A destination that cannot start is retried with back-off, is reported with its reason, and keeps no other from
    being served.
    """

    def __init__(
        self, settings: ServerSettings, conf: ConfigSource | None = None, scan_s: float = 0, *, needs_all: bool = False
    ) -> None:
        """`conf` is read again every `scan_s` seconds. With `needs_all` each destination is tried once, and `start`
        raises what keeps one from starting: somebody waits for the answer."""
        self.settings = settings
        canal = settings.canal
        self._is_fixed, self._needs_all = conf is None, needs_all
        self.destinations = Destinations(settings.groups, expected=self._expected)
        self.monitor = ConfigMonitor(conf or FixedConfig(settings), self.destinations, scan_s, retries=not needs_all)
        groups = Groups(settings.groups, self.destinations.instance)
        self.flight = FlightPort(settings.flight, self.destinations)
        self.canal: CanalListener | None = None
        if canal.port is not None:
            stored = canal.stored_hash
            self.canal = CanalListener(
                canal.host,
                canal.port,
                groups.served,
                access=CanalAccess(canal.user, stored.hex() if stored else ""),
                frame_limit=canal.frame_limit,
                idle_s=canal.idle_s,
                handshake_s=canal.handshake_s,
                connections=canal.connections,
                start_wait_s=canal.start_wait_s,
            )
        host, port = (canal.host, self.canal.port) if self.canal else (settings.flight.host, self.flight.port)
        self.cluster = Cluster(
            settings.running,
            published_address(host, port, settings.running.address),
            published_flight_url(settings.flight, self.flight.scheme, self.flight.port, settings.running),
        )
        self.destinations.cluster = self.cluster
        self._last_failure: PenstockError | None = None  # as it was when the server was stopped
        self.has_started, self.started_at = False, time.time()
        self._is_stopping = False
        self.report, self._ring = Report(self), LogRing()
        self.admin: AdminPort | None = None
        self.canal_admin: CanalAdminListener | None = None
        try:
            if settings.admin.port is not None:
                self.admin = AdminPort(
                    settings.admin, settings.admin.port, self.report, instance_of=self.destinations.instance
                )
            if settings.canal_admin.port is not None:
                calls = ConsoleCalls(self.destinations, self._ring, settings)
                self.canal_admin = CanalAdminListener(settings.canal_admin, settings.canal_admin.port, calls)
        except PenstockError:
            for port in (self.canal, self.admin):
                if port is not None:
                    port.stop()
            raise

    @property
    def unready_reason(self) -> str:
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
    def traffic(self) -> Mapping[str, TrafficCounts]:
        return self.canal.traffic.counts() if self.canal is not None else {}

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
        return self.monitor.problems

    @property
    def is_over(self) -> bool:
        """Whether nothing is served, and nothing would be without other settings: every destination has failed for
        good, and nobody looks for changes of the configuration."""
        if not self._is_fixed or not self.monitor.has_scanned:
            return False
        return bool(self._failures) and len(self._failures) == len(self.settings.captured)

    @property
    def failure(self) -> PenstockError | None:
        """What has failed for good first, in the order of the settings; None where the configuration is followed."""
        return self._last_failure or (next(iter(self._failures.values()), None) if self._is_fixed else None)

    @property
    def _failures(self) -> dict[str, PenstockError]:
        """The errors of destinations that have failed for good, by name: they run no longer, or cannot start."""
        instances, refused = self.instances, self.monitor.start_errors
        found: dict[str, PenstockError] = {}
        for name in (one.destination for one in self.settings.captured):
            instance, error = instances.get(name), refused.get(name)
            if instance is not None and instance.failure is not None:
                found[name] = instance.failure
            elif isinstance(error, PenstockError) and not error.transient:
                found[name] = error
        return found

    def start(self) -> None:
        """Open the ports, and begin to start all destinations; without a `conf`, wait until each was tried once.

        Meanwhile all ports answer: who asks for a destination that is still starting is told to try again. One that
        cannot start is retried and keeps no other from it. Raises when all of them fail for good, because the
        configuration is wrong.
        """
        for warning in describe_open_ports(self.settings):
            log.warning("port open to everybody reason=%s", warning)
        if self.admin is not None:
            self.admin.start()
        if self.canal_admin is not None:
            self._ring.attach()
            self.canal_admin.start()
        if self.canal is not None:
            self.canal.start()
        if not self._is_fixed:
            self.monitor.start()
            self.has_started = True
            return
        self.monitor.scan()
        self.has_started = True
        self.monitor.wait_for_attempts()
        if self._needs_all:
            for error in self.monitor.start_errors.values():
                raise error
        if self.is_over and self.failure is not None:
            raise self.failure

    def stop(self, timeout_s: float = _STOP_S) -> bool:
        """Tell every stream to reconnect, write what is to be kept, and close the ports, in so many seconds at most.

        False when something has not ended by then, such as a call whose reader does not read: then only the end of the
        process ends it.
        """
        until = time.monotonic() + timeout_s
        self._last_failure = self.failure
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
            log.warning(
                "server stop timed out still_running=%s open_streams=%d", ",".join(unfinished), self.flight.streams
            )
        return not unfinished

    def _expected(self) -> ExpectedDestinations:
        return self.monitor.expected

    def _stop_capture(self, until: float) -> None:
        self.monitor.stop(max(0.0, until - time.monotonic()) / 2)
        self.destinations.stop_all(max(0.0, until - time.monotonic()))
