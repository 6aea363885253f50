"""The calls of a server that a Spark source needs, as methods: ranges of the log, read as often as one likes."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.client.address import Address
from penstock.client.embedded import EmbeddedSource
from penstock.client.link import Link
from penstock.client.repeated_read import RepeatedRead
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block


class FlightClient:
    """A destination, on one server or on whichever of several runs it (see client/address.py).

        FlightClient("cdc1:11115,cdc2:11115", "shop", patience_s=60).bounds()

    Safe to keep for long, and to share by threads. What is transient is tried again for `patience_s`.
    """

    def __init__(
        self, server: str | Address | EmbeddedSource, destination: str = "default", *, patience_s: float = 0
    ) -> None:
        address = Address(server) if isinstance(server, str) else server
        self._link = Link(address, patience_s, destination=destination)
        self._destination = destination

    def close(self) -> None:
        self._link.close()

    def describe(self, tables: Sequence[TableName]) -> list[pa.Schema]:
        """Columns of each table, its key in the metadata under `key`."""
        answers = self._action("describe", tables=[str(table) for table in tables])
        return [pa.ipc.read_schema(pa.py_buffer(answer)) for answer in answers]

    def column_settings(self) -> list[dict[str, Any]]:
        """Return which columns of which tables the instance shows, as its settings have it."""
        return json.loads(self._action("columns")[0])["columns"]

    def bounds(self) -> dict[str, Position]:
        """`first` and `latest` positions of the store."""
        answer = json.loads(self._action("positions")[0])
        return {key: Position.from_json(answer[key]) for key in ("first", "latest")}

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return Position.from_json(json.loads(self._action("oldest")[0])["oldest"])

    def resolve(self, start: str) -> Position:
        """Return the position that a text such as `earliest`, `gtid:0-1-8` or `time:-10m` means now."""
        return Position.from_json(json.loads(self._action("resolve", start=start)[0])["position"])

    def source_end(self) -> Position:
        """Return where the source's log ends now, captured or not."""
        return Position.from_json(json.loads(self._action("end")[0])["end"])

    def file_identity(self, position: Position) -> str:
        """Return what tells the log file of a position from others of its name; "" when it is not there now."""
        return json.loads(self._action("identity", position=position.to_json())[0])["identity"]

    def last_statement(self, table: TableName, position: Position) -> tuple[Position, str] | None:
        """Return the last statement at or before a position that changed a table, and where it ends, if it is known."""
        answer = json.loads(self._action("statement", table=str(table), position=position.to_json())[0])
        return (Position.from_json(answer["position"]), answer["statement"]) if answer else None

    def latest(self, start: Position, max_bytes: int, wait_ms: int, **limit: Any) -> Position:
        """Return where a batch from `start` should end; `start` itself when nothing came within `wait_ms`.

        It also tells the server that everything before `start` is done. `limit` may have `max_rows` with `tables` or a
        `filter` of what is counted, and `rows_per_update`.
        """
        answer = self._action("latest", start=start.to_json(), max_bytes=max_bytes, wait_ms=wait_ms, **limit)
        return Position.from_json(json.loads(answer[0])["end"])

    def ack(self, end: Position) -> None:
        self._action("ack", end=end.to_json())

    def parts(
        self,
        tables: Sequence[TableName],
        start: Position,
        end: Position,
        filter: str = "",  # noqa: A002
    ) -> list[bytes]:
        """Return tickets for the parts of a range; each can be read alone, in any order, any number of times."""
        chosen: dict[str, Any] = {"tables": [str(table) for table in tables]} if tables else {"filter": filter}
        bounds = {"start": start.to_json(), "end": end.to_json()}
        info = self._link.info({"destination": self._destination, "form": "raw", **chosen, **bounds})
        return [endpoint.ticket.ticket for endpoint in info.endpoints]

    def read(self, ticket: bytes) -> "Iterator[Block]":
        """The events of a part, each once, also when the server is restarted meanwhile."""
        from penstock.binlog.events.block import Block  # noqa: PLC0415 - brings numba, which planning does without

        reading = RepeatedRead(self._link, ticket)
        while (chunk := reading.next_chunk()) is not None:
            block = Block.from_arrow(chunk.data, chunk.app_metadata.to_pybytes())
            if len(block := reading.without_known(block)):
                yield block

    def _action(self, name: str, **request: Any) -> list[bytes]:
        return self._link.action(name, {"destination": self._destination, **request})
