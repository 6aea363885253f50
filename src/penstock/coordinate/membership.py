"""The ephemeral node by which a server says that it is alive: canal's cluster nodes."""

from penstock.coordinate.tree import Wake
from penstock.coordinate.zk_session import ZkNodes, ZkSessions


class Membership:
    """Keeps the node of one server in one of canal's cluster folders, with a value that canal does not look at."""

    def __init__(self, sessions: ZkSessions, folder: str, address: str, value: bytes = b"") -> None:
        self._sessions, self._path, self._value = sessions, f"{folder}/{address}", value

    def join(self, session: ZkNodes, wake: Wake | None = None) -> None:
        """Make the node, unless it exists. A node of an earlier process with our address exists until its session
        ends; `wake` is called then, and the next call makes ours."""
        node = session.get_node(self._path, wake)
        if node is not None and node.owner in self._sessions.past:
            session.delete(self._path, node.version)
            node = None
        if node is None:
            session.create_ephemeral(self._path, self._value)

    def leave(self, session: ZkNodes) -> None:
        """Remove the node of this server, if this session made it."""
        node = session.get_node(self._path)
        if node is not None and node.owner == session.session_id:
            session.delete(self._path, node.version)
