"""How far a client has acked: always a transaction boundary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigurationError, MetaError
from penstock.model import GtidSet, Position

_CANAL_TYPE = "com.alibaba.otter.canal.protocol.position.LogPosition"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position up to which a client has acked, and the server whose log it was read from.

    cursor = Cursor(Position("binlog.000007", 4))
    meta.update_cursor(1001, cursor)
    """

    position: Position
    server_id: int = 0
    source: tuple[str, int] = field(default=("", 0))  # host and port

    def __str__(self) -> str:
        return str(self.position)

    def to_json(self, *, with_type: bool = False) -> dict[str, Any]:
        """Return the cursor as canal writes it, with canal's spelling, and the epoch beside it. Keys are in
        alphabetical order."""
        host, port = self.source
        cursor = {
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
        return {"@type": _CANAL_TYPE, **cursor} if with_type else cursor

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Cursor":
        """Return a cursor that Penstock or canal wrote. Canal's is where the acked event begins: that event is
        redelivered."""
        try:
            fields: Mapping[str, Any] = value["postion"]
            identity: Mapping[str, Any] = value.get("identity") or {}
            address: Mapping[str, Any] = identity.get("sourceAddress") or {}
            position = Position(
                str(fields["journalName"]),
                int(fields["position"]),
                int(fields.get("timestamp") or 0) // 1000,
                int(value.get("epoch") or 0),
                _gtids(str(fields.get("gtid") or "")),
            )
            position.file_number  # noqa: B018 - a name without a number is no position
            return cls(
                position,
                int(fields.get("serverId") or 0),
                (str(address.get("address") or ""), int(address.get("port") or 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ConfigurationError) as error:
            raise MetaError(f"this is no cursor: {value!r}: {error!r}") from None


def _gtids(text: str) -> GtidSet | None:
    """Return a GTID set, or None when it cannot be parsed: the position is also known by file and offset."""
    try:
        return GtidSet.parse(text) if text else None
    except ConfigurationError:
        return None
