"""The calls of a server that a Spark source needs, as methods: ranges of the log, read as often as one likes."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.client.link import Address, Link
from penstock.client.repeated_read import RepeatedRead
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block


class FlightClient:
    """One server and destination. Safe to keep for long; what is transient is tried again for `patience_s`."""

    def __init__(self, server: str | Address, destination: str = "default", *, patience_s: float = 0) -> None:
        self._link = Link(server if isinstance(server, Address) else Address(server), patience_s)
        self._destination = destination

    def close(self) -> None:
        self._link.close()

    def describe(self, tables: Sequence[TableName]) -> list[pa.Schema]:
        """Columns of each table, its key in the metadata under `key`."""
        answers = self._action("describe", tables=[str(table) for table in tables])
        return [pa.ipc.read_schema(pa.py_buffer(answer)) for answer in answers]

    def bounds(self) -> dict[str, Position]:
        """`first` and `latest` positions of the store."""
        answer = json.loads(self._action("positions")[0])
        return {key: Position.from_json(answer[key]) for key in ("first", "latest")}

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return Position.from_json(json.loads(self._action("oldest")[0])["oldest"])

    def latest(self, start: Position, max_bytes: int, wait_ms: int) -> Position:
        """Where a batch from `start` should end; `start` itself when nothing came within `wait_ms`.

        Says also that everything before `start` is done.
        """
        answer = self._action("latest", start=start.to_json(), max_bytes=max_bytes, wait_ms=wait_ms)
        return Position.from_json(json.loads(answer[0])["end"])

    def ack(self, end: Position) -> None:
        self._action("ack", end=end.to_json())

    def parts(self, tables: Sequence[TableName], start: Position, end: Position) -> list[bytes]:
        """Tickets for the parts of a range; each can be read alone, in any order, any number of times."""
        info = self._link.info(
            {
                "destination": self._destination,
                "form": "raw",
                "tables": [str(table) for table in tables],
                "start": start.to_json(),
                "end": end.to_json(),
            }
        )
        return [endpoint.ticket.ticket for endpoint in info.endpoints]

    def read(self, ticket: bytes) -> "Iterator[Block]":
        """The events of a part, each once, also when the server is restarted meanwhile."""
        from penstock.binlog.events.block import Block  # noqa: PLC0415 - brings numba, which planning does without

        reading = RepeatedRead(self._link, ticket)
        while (chunk := reading.next_chunk()) is not None:
            block = Block.of_wire(chunk.data, chunk.app_metadata.to_pybytes())
            if len(block := reading.without_known(block)):
                yield block

    def _action(self, name: str, **request: Any) -> list[bytes]:
        return self._link.action(name, {"destination": self._destination, **request})
