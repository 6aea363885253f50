"""The paths of canal's ZooKeeper nodes, and their values.

/otter/canal/cluster/{ip:port}                        ephemeral, empty: a server that lives
/otter/canal/destinations/{d}/cluster/{ip:port}       ephemeral: a server that could serve d; empty in canal, whose
                                                      clients read names only, ours has {"flight":"grpc://ip:port"}
/otter/canal/destinations/{d}/running                 ephemeral, {"active":true,"address":"ip:port"}: the one that does
/otter/canal/destinations/{d}/{client}/running        ephemeral, the same with "clientId": the client that reads
/otter/canal/destinations/{d}/epoch                   ours: the number of the last election
/otter/canal/destinations/{d}/term                    ours: who won it, and whether it was released (handover.py)
"""

import json
from dataclasses import dataclass
from typing import Any

from penstock.coordinate.election_nodes import ElectionNodes

ROOT = "/otter/canal"
SERVERS = f"{ROOT}/cluster"
DESTINATIONS = f"{ROOT}/destinations"


def election_nodes(destination: str) -> ElectionNodes:
    """Return the ZooKeeper nodes in which the server that runs a destination is elected."""
    return ElectionNodes("destination", destination, f"{DESTINATIONS}/{destination}")


def members_path(destination: str) -> str:
    """Return the path of the ZooKeeper node whose children are the servers that could run a destination."""
    return election_nodes(destination).members


def member_path(destination: str, address: str) -> str:
    """Return the path of the ZooKeeper node of one server that could run a destination."""
    return election_nodes(destination).member(address)


def running_path(destination: str, client_id: int | None = None) -> str:
    """Return the path of the ZooKeeper node that names the server that runs a destination or, with `client_id`, the
    process that reads it as this client."""
    client = "" if client_id is None else f"/{client_id}"
    return f"{DESTINATIONS}/{destination}{client}/running"


def fencing_epoch_path(destination: str) -> str:
    """Return the path of the ZooKeeper node that holds the number of the last election of a destination."""
    return election_nodes(destination).epoch


@dataclass(frozen=True, slots=True)
class MemberNode:
    """What a server says of itself in the node of a destination that it could run: the URL of its Arrow Flight."""

    flight_url: str = ""

    def to_bytes(self) -> bytes:
        """Return the value of the node, which is empty without a URL, as canal's are."""
        fields = {"flight": self.flight_url}
        return json.dumps(fields, separators=(",", ":")).encode() if self.flight_url else b""

    @classmethod
    def from_bytes(cls, raw: bytes) -> "MemberNode":
        """Parse the ZooKeeper node of a server; it has no URL when canal wrote it, or it cannot be parsed."""
        try:
            return cls(str(json.loads(raw)["flight"]))
        except (ValueError, KeyError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class RunningNode:
    """The value of a running node: which server runs a destination, or which process reads as a client. An operator
    makes it inactive."""

    address: str
    is_active: bool = True
    client_id: int | None = None

    def to_bytes(self) -> bytes:
        """Return the value of the node as JSON, with the names that canal uses."""
        fields: dict[str, Any] = {"active": self.is_active, "address": self.address}
        if self.client_id is not None:
            fields["clientId"] = self.client_id
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> "RunningNode":
        """Parse the ZooKeeper node of the running server; one that cannot be parsed counts as active."""
        try:
            fields = json.loads(raw)
            client_id = fields.get("clientId")
            return cls(str(fields.get("address") or ""), bool(fields.get("active", True)), client_id)
        except (ValueError, AttributeError):
            return cls("")
