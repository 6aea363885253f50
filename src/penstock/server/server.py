"""A Penstock server: its destinations, and the ports by which clients and operators reach them."""

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
from penstock.server.canal_admin.calls import CanalAdminCalls
from penstock.server.cluster import Cluster, published_address, published_flight_url
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.config_source import ConfigSource, FixedConfig
from penstock.server.descriptors import DescriptorBudget, plan_descriptors
from penstock.server.destination import Destination
from penstock.server.destinations import Destinations
from penstock.server.expected import ExpectedDestinations
from penstock.server.flight import FlightPort
from penstock.server.groups import Groups
from penstock.server.log_ring import LogRing
from penstock.server.parallel_stop import stop_in_parallel
from penstock.server.report import ServerReport

log = logging.getLogger(__name__)

_STOP_S = 30.0
_CALLS_S = 5.0


class Server:
    """The Penstock server: captures the log of each destination's source and serves it to clients. The destinations are
    those of the settings, or those that `conf` describes. It binds its ports when constructed; here only Arrow Flight:

        server = Server(ServerSettings.with_flight_only(instance))
        server.start()

    A destination that cannot start is retried with back-off, is reported with its reason, and keeps no other from
    being served.
    """

    def __init__(
        self, settings: ServerSettings, conf: ConfigSource | None = None, scan_s: float = 0, *, needs_all: bool = False
    ) -> None:
        """`conf` is read again every `scan_s` seconds. With `needs_all` each destination is tried once, and `start`
        raises the first error: somebody waits for the answer."""
        self.settings = settings
        canal = settings.canal
        self._is_fixed, self._needs_all = conf is None, needs_all
        # Rows are counted for metrics only, and those are on the admin port.
        make_instance = partial(Instance, counts_rows=settings.admin.port is not None)
        self.destinations = Destinations(settings.groups, expected=self._get_expected, make_instance=make_instance)
        self.monitor = ConfigMonitor(conf or FixedConfig(settings), self.destinations, scan_s, retries=not needs_all)
        groups = Groups(settings.groups, self.destinations.running_instance)
        self.flight = FlightPort(settings.flight, self.destinations)
        self.canal: CanalListener | None = None
        if canal.port is not None:
            stored = canal.stored_hash
            self.canal = CanalListener(
                canal.host,
                canal.port,
                groups.find_running,
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
        self.report, self._ring = ServerReport(self), LogRing()
        self.admin: AdminPort | None = None
        self.canal_admin: CanalAdminListener | None = None
        try:
            if settings.admin.port is not None:
                self.admin = AdminPort(
                    settings.admin, settings.admin.port, self.report, get_instance=self.destinations.running_instance
                )
            if settings.canal_admin.port is not None:
                calls = CanalAdminCalls(self.destinations, self._ring, settings)
                self.canal_admin = CanalAdminListener(settings.canal_admin, settings.canal_admin.port, calls)
        except PenstockError:
            for port in (self.canal, self.admin):
                if port is not None:
                    port.stop()
            raise

    @property
    def unready_reason(self) -> str:
        """Return why the server as a whole is not ready; empty when it is."""
        if self._is_stopping:
            return "it is being stopped"
        if not self.has_started:
            return "it is being started"
        return "it was stopped manually" if self.destinations.is_halted else ""

    @property
    def is_serving(self) -> bool:
        """Return whether the server has started and at least one destination can be read: on this server, or on the one
        that runs it."""
        return self.has_started and any(destination.is_served for destination in self.all_destinations.values())

    @property
    def has_no_destination(self) -> bool:
        """Return whether nothing is configured, as far as the configuration was read."""
        return not self.all_destinations and self._get_expected().is_empty

    @property
    def starting(self) -> Mapping[str, str]:
        """Return the destinations that are configured and not started yet, with the reason why the last attempt
        failed."""
        return self.destinations.starting

    @property
    def all_destinations(self) -> Mapping[str, Destination]:
        """Return all destinations by name."""
        return self.destinations.all

    @property
    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        """Return the address of each port, and how many connections it has where that is known."""
        ports = {"canal": self.canal, "admin": self.admin, "canal_admin": self.canal_admin}
        listening = {name: (port.address, port.open_connections) for name, port in ports.items() if port is not None}
        return {"flight": (self.address, None), **listening}

    @property
    def traffic(self) -> Mapping[str, TrafficCounts]:
        """Return the traffic counters of canal's port, by destination."""
        return self.canal.traffic.counts() if self.canal is not None else {}

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Return the instances that run on this server, or ran last, by destination."""
        return self.destinations.instances

    @property
    def address(self) -> str:
        """Return host:port of Arrow Flight."""
        return self.flight.address

    @property
    def descriptors(self) -> DescriptorBudget:
        """Return how many file descriptors the destinations need, and how many the process may open."""
        return plan_descriptors(self.settings, [destination.settings for destination in self.all_destinations.values()])

    @property
    def problems(self) -> Mapping[str, str]:
        """Return what is wrong with the configuration or with following it, by destination."""
        return self.monitor.problems

    @property
    def has_failed(self) -> bool:
        """Return whether nothing is served, and nothing would be without other settings: every destination has failed
        for good, and the configuration is not read again."""
        if not self._is_fixed or not self.monitor.has_scanned:
            return False
        return bool(self._failures) and len(self._failures) == len(self.settings.all_instances)

    @property
    def failure(self) -> PenstockError | None:
        """Return the first error for good, in the order of the settings; None while the configuration is read again and
        again."""
        return self._last_failure or (next(iter(self._failures.values()), None) if self._is_fixed else None)

    @property
    def _failures(self) -> dict[str, PenstockError]:
        """Return the errors of the destinations that have failed for good, by name: they stopped running, or cannot
        start."""
        destinations, refused = self.all_destinations, self.monitor.start_errors
        failures: dict[str, PenstockError] = {}
        for name in (instance.destination for instance in self.settings.all_instances):
            destination, error = destinations.get(name), refused.get(name)
            if destination is not None and destination.failure is not None:
                failures[name] = destination.failure
            elif isinstance(error, PenstockError) and not error.transient:
                failures[name] = error
        return failures

    def start(self) -> None:
        """Open the ports, and begin to start all destinations; without a `conf`, wait until each was tried once.

        Meanwhile all ports answer: a request for a destination that is still starting is told to try again. A
        destination that cannot start is retried, and does not delay the others. Raises when all of them fail for good,
        because the configuration is wrong.
        """
        for warning in describe_open_ports(self.settings):
            log.warning("port open to other machines without authentication: %s", warning)
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
        if self.has_failed and self.failure is not None:
            raise self.failure

    def stop(self, timeout_s: float = _STOP_S) -> bool:
        """Tell every stream to reconnect, persist cursors and positions, and close the ports, within `timeout_s`.

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
        flight = {"flight": lambda: stop_in_parallel({"flight calls": self.flight.stop}, min(timeout_s, _CALLS_S))}
        unfinished = stop_in_parallel({**steps, **flight}, timeout_s)
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

    def _get_expected(self) -> ExpectedDestinations:
        return self.monitor.expected

    def _stop_capture(self, until: float) -> None:
        """Stop reading the configuration, then stop all destinations."""
        self.monitor.stop(max(0.0, until - time.monotonic()) / 2)
        self.destinations.stop_all(max(0.0, until - time.monotonic()))
