"""A server: its destinations, and the ports that they are reached by."""

from collections.abc import Mapping

from penstock.config import ServerSettings
from penstock.errors import PenstockError
from penstock.instance import Instance
from penstock.server.canal import CanalListener
from penstock.server.canal.session import Access
from penstock.server.cluster import Cluster, published_address
from penstock.server.conf import Conf
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destinations import Destinations
from penstock.server.flight import FlightPort


class Server:
    """Binds its ports when constructed. Instances are those of the settings, or what `conf` says from time to time."""

    def __init__(self, settings: ServerSettings, conf: Conf | None = None, scan_s: float = 0) -> None:
        self.settings = settings
        canal = settings.canal
        self.destinations = Destinations()
        self.flight = FlightPort(settings.flight, self.destinations)
        self.canal: CanalListener | None = None
        if canal.port is not None:
            stored = canal.stored_hash
            self.canal = CanalListener(
                canal.host,
                canal.port,
                self.destinations.instance,
                access=Access(canal.user, stored.hex() if stored else ""),
                frame_limit=canal.frame_limit,
                idle_s=canal.idle_s,
                handshake_s=canal.handshake_s,
                connections=canal.connections,
            )
        host, port = (canal.host, self.canal.port) if self.canal else (settings.flight.host, self.flight.port)
        self.cluster = Cluster(settings.running, published_address(host, port, settings.running.address))
        self.destinations.cluster = self.cluster
        self._served: list[Instance] = []
        self.monitor = ConfigMonitor(conf, self.destinations, scan_s) if conf is not None else None

    @property
    def instances(self) -> Mapping[str, Instance]:
        return self.destinations.instances

    @property
    def address(self) -> str:
        """Of Arrow Flight."""
        return self.flight.address

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
        """Instances of the settings first, and if one cannot start, none; those of a conf when they can."""
        if self.monitor is None:
            for one in self.settings.instances:
                self.destinations.start(one)
            self._served = list(self.instances.values())
        else:
            self.monitor.start()
        self.flight.start()
        if self.canal is not None:
            self.canal.start()

    def stop(self) -> None:
        if self.monitor is not None:
            self.monitor.stop()
        self.destinations.stop_all()
        if self.canal is not None:
            self.canal.stop()
        self.flight.stop()
