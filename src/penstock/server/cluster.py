"""The membership of this server in ZooKeeper clusters: sessions, elections and balancing."""

import socket
import threading
from dataclasses import dataclass

from penstock.config import FlightSettings, InstanceSettings, RunningSettings
from penstock.coordinate import Balancer, BalancerSettings, Election, ElectionSettings, SessionManager
from penstock.coordinate.callbacks import OnRunning, OnStopped
from penstock.coordinate.canal import election_nodes

_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - what is bound, not what is told
_UNUSED_ADDRESS = ("192.0.2.1", 9)  # for documentation: nobody is there, and nothing is sent


@dataclass(frozen=True, slots=True)
class _EnsembleMembership:
    """The part of this server in one ZooKeeper ensemble."""

    sessions: SessionManager
    balancer: Balancer


class Cluster:
    """Joins the elections of one server's destinations, with one session for each ZooKeeper that they name."""

    def __init__(self, settings: RunningSettings, address: str, flight_url: str = "") -> None:
        """`address` is published for canal's clients, `flight_url` for those of Arrow Flight."""
        self._settings, self.address, self.flight_url = settings, address, flight_url
        self._lock = threading.Lock()
        self._memberships: dict[str, _EnsembleMembership] = {}

    def join(self, instance: InstanceSettings, on_running: OnRunning, on_stopped: OnStopped) -> Election:
        """Return the election of the server that runs a destination; this server takes part once it is started."""
        membership = self._get_membership(instance.zookeeper or "")
        election = Election(
            membership.sessions,
            election_nodes(instance.destination),
            self.address,
            on_running,
            on_stopped,
            settings=ElectionSettings(delay_s=self._settings.delay_s),
            flight_url=self.flight_url,
        )
        membership.balancer.add(election)
        return election

    def leave(self, instance: InstanceSettings) -> None:
        """Stop balancing a destination, after its election was closed."""
        self._get_membership(instance.zookeeper or "").balancer.remove(instance.destination)

    def _get_membership(self, hosts: str) -> _EnsembleMembership:
        """Return the session and the balancer for one ZooKeeper ensemble; they are started at first use."""
        with self._lock:
            membership = self._memberships.get(hosts)
            if membership is None:
                sessions = SessionManager(hosts, session_s=self._settings.session_s)
                balancer = Balancer(sessions, self.address, settings=BalancerSettings(is_on=self._settings.share))
                sessions.start()
                balancer.start()
                membership = self._memberships[hosts] = _EnsembleMembership(sessions, balancer)
            return membership

    def close(self) -> None:
        """Stop balancing, and end the session with each ZooKeeper ensemble."""
        with self._lock:
            memberships, self._memberships = list(self._memberships.values()), {}
        for membership in memberships:
            membership.balancer.close()
            membership.sessions.close()


def published_address(host: str, port: int, configured: str | None) -> str:
    """Return the address under which others find this server: the configured one, the one it listens on, or the
    machine's own."""
    if configured:
        return configured
    return f"{_published_host(host)}:{port}"


def published_flight_url(flight: FlightSettings, scheme: str, port: int, running: RunningSettings) -> str:
    """Return the URL under which others find Arrow Flight. A server that listens on every address is found at the host
    of its `running.address`."""
    if running.flight_address is not None:
        return f"{scheme}://{running.flight_address}"
    host = flight.host
    if host in _ALL_ADDRESSES and running.address is not None:
        host = running.address.rpartition(":")[0]
    host = _published_host(host)
    is_bare_ipv6 = ":" in host and not host.startswith("[")
    return f"{scheme}://[{host}]:{port}" if is_bare_ipv6 else f"{scheme}://{host}:{port}"


def _published_host(host: str) -> str:
    """Return a host under which other machines reach this one: `host`, or the machine's own address if that means every
    address."""
    if host not in _ALL_ADDRESSES:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_UNUSED_ADDRESS)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
