"""A node that says that a server is there: canal's cluster nodes."""

from penstock.coordinate.link import Links, Nodes, Wake


class Member:
    def __init__(self, links: Links, folder: str, address: str) -> None:
        self._links, self._path = links, f"{folder}/{address}"

    def join(self, link: Nodes, wake: Wake | None = None) -> None:
        """Unless it is there. One of a process that had our address before is there until its session ends, and then
        ours is made: who calls is woken."""
        node = link.look(self._path, wake)
        if node is not None and node.owner in self._links.past:
            link.remove(self._path, node.version)
            node = None
        if node is None:
            link.make(self._path, b"")

    def leave(self, link: Nodes) -> None:
        node = link.look(self._path)
        if node is not None and node.owner == link.session_id:
            link.remove(self._path, node.version)
