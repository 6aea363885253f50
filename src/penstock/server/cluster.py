"""This server among others: its sessions with ZooKeeper, and what it takes part in there."""

import socket
import threading
from dataclasses import dataclass

from penstock.config import InstanceSettings, RunningSettings
from penstock.coordinate import Balance, BalanceSettings, Running, Session
from penstock.coordinate import RunningSettings as ElectionSettings
from penstock.coordinate.callbacks import OnRunning, OnStopped

_EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - what is bound, not what is told
_SOMEWHERE = ("192.0.2.1", 9)  # for documentation: nobody is there, and nothing is sent


@dataclass(frozen=True, slots=True)
class _Seat:
    session: Session
    balance: Balance


class Cluster:
    """Of one server; a session for each ZooKeeper that its destinations name."""

    def __init__(self, settings: RunningSettings, address: str) -> None:
        self._settings, self.address = settings, address
        self._lock = threading.Lock()
        self._seats: dict[str, _Seat] = {}

    def join(self, instance: InstanceSettings, on_running: OnRunning, on_stopped: OnStopped) -> Running:
        """In the election of the server that runs a destination."""
        seat = self._seat(instance.zookeeper or "")
        running = Running(
            seat.session,
            instance.destination,
            self.address,
            on_running,
            on_stopped,
            settings=ElectionSettings(delay_s=self._settings.delay_s),
        )
        seat.balance.add(running)
        return running

    def leave(self, instance: InstanceSettings) -> None:
        """After its election was closed."""
        self._seat(instance.zookeeper or "").balance.remove(instance.destination)

    def _seat(self, hosts: str) -> _Seat:
        with self._lock:
            found = self._seats.get(hosts)
            if found is None:
                session = Session(hosts, session_s=self._settings.session_s)
                balance = Balance(session, self.address, settings=BalanceSettings(is_on=self._settings.share))
                session.start()
                balance.start()
                found = self._seats[hosts] = _Seat(session, balance)
            return found

    def close(self) -> None:
        with self._lock:
            seats, self._seats = list(self._seats.values()), {}
        for seat in seats:
            seat.balance.close()
            seat.session.close()


def published_address(host: str, port: int, given: str | None) -> str:
    """Under which others find this server: as it was told, or where it listens, or by the machine's own address."""
    if given:
        return given
    if host not in _EVERYWHERE:
        return f"{host}:{port}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
            own = str(probe.getsockname()[0])
        except OSError:
            own = "127.0.0.1"
    return f"{own}:{port}"
