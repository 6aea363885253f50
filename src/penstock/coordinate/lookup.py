"""Where the clients of a destination find its servers."""

import threading

from penstock.coordinate import canal
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.session import Session


def running_server(session: Session, destination: str) -> str | None:
    """The address of the one that serves."""
    return Servers(session, destination).running()


def cluster_servers(session: Session, destination: str) -> list[str]:
    """The addresses of those that could serve."""
    return Servers(session, destination).members()


class Servers:
    """Of one destination. What it says is what ZooKeeper says now, or a CoordinationError."""

    def __init__(self, session: Session, destination: str) -> None:
        self._session, self._destination = session, destination
        self._changed = threading.Event()

    def running(self) -> str | None:
        node = self._session.require().look(canal.running_path(self._destination), self._changed.set)
        found = None if node is None else RunningNode.from_bytes(node.value)
        return found.address if found is not None and found.is_active and found.address else None

    def members(self) -> list[str]:
        return self._session.require().names(canal.members_path(self._destination), self._changed.set)

    def wait_changed(self, timeout_s: float) -> bool:
        """Since what was asked last; also when it may only have changed."""
        is_changed = self._changed.wait(timeout_s)
        self._changed.clear()
        return is_changed
