"""How far a client has acked: always a place between two transactions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigurationError, MetaError
from penstock.model import GtidSet, Position

_CANAL_TYPE = "com.alibaba.otter.canal.protocol.position.LogPosition"


@dataclass(frozen=True, slots=True)
class Cursor:
    position: Position
    server_id: int = 0
    source: tuple[str, int] = field(default=("", 0))  # host and port

    def __str__(self) -> str:
        return str(self.position)

    def to_json(self, *, with_type: bool = False) -> dict[str, Any]:
        """As canal writes it, with its spelling, and our epoch beside it. Keys are in alphabetical order."""
        host, port = self.source
        about = {
            "epoch": self.position.epoch,
            "identity": {"slaveId": -1, "sourceAddress": {"address": host, "port": port}},
            "postion": {
                "gtid": self.position.gtids.text if self.position.gtids is not None else "",
                "included": False,
                "journalName": self.position.file,
                "position": self.position.offset,
                "serverId": self.server_id,
                "timestamp": self.position.timestamp * 1000,
            },
        }
        return {"@type": _CANAL_TYPE, **about} if with_type else about

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Cursor":
        """Ours or canal's. Canal's is where the acked event begins: that one comes again."""
        try:
            place: Mapping[str, Any] = value["postion"]
            identity: Mapping[str, Any] = value.get("identity") or {}
            address: Mapping[str, Any] = identity.get("sourceAddress") or {}
            position = Position(
                str(place["journalName"]),
                int(place["position"]),
                int(place.get("timestamp") or 0) // 1000,
                int(value.get("epoch") or 0),
                _gtids(str(place.get("gtid") or "")),
            )
            position.file_number  # noqa: B018 - a name without a number is no position
            return cls(
                position,
                int(place.get("serverId") or 0),
                (str(address.get("address") or ""), int(address.get("port") or 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ConfigurationError) as error:
            raise MetaError(f"this is no cursor: {value!r}: {error!r}") from None


def _gtids(text: str) -> GtidSet | None:
    """What cannot be read is not known: the place is in the log's file all the same."""
    try:
        return GtidSet.parse(text) if text else None
    except ConfigurationError:
        return None
