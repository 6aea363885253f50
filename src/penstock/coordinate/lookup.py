"""How the clients of a destination find its servers."""

import threading

from penstock.coordinate import canal
from penstock.coordinate.canal import RunningNode
from penstock.coordinate.session_manager import SessionManager


def running_server(sessions: SessionManager, destination: str) -> str | None:
    """Return the address of the server that runs a destination."""
    return ServerLookup(sessions, destination).running()


def cluster_servers(sessions: SessionManager, destination: str) -> list[str]:
    """Return the addresses of the servers that could run a destination."""
    return ServerLookup(sessions, destination).members()


class ServerLookup:
    """Finds the servers of one destination: what ZooKeeper says now, or a CoordinationError.

    lookup = ServerLookup(SessionManager("zk1:2181"), "shop")
    address = lookup.running()
    """

    def __init__(self, sessions: SessionManager, destination: str) -> None:
        self._sessions, self._destination = sessions, destination
        self._changed = threading.Event()

    def running(self) -> str | None:
        """Return the address of the server that runs the destination; None when no server does, or when it is
        paused."""
        node = self._sessions.require().get_node(canal.running_path(self._destination), self._changed.set)
        running = None if node is None else RunningNode.from_bytes(node.value)
        return running.address if running is not None and running.is_active and running.address else None

    def members(self) -> list[str]:
        """Return the addresses of the servers that could run the destination, sorted."""
        return self._sessions.require().child_names(canal.members_path(self._destination), self._changed.set)

    def wait_changed(self, timeout_s: float) -> bool:
        """Wait until the nodes that were read last have changed; it may return True although they have not."""
        is_changed = self._changed.wait(timeout_s)
        self._changed.clear()
        return is_changed
