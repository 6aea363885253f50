"""The calls of a server that a Spark source needs, as methods: ranges of the log, read as often as one likes."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.client.address import ServerAddress
from penstock.client.embedded import EmbeddedSource
from penstock.client.link import ServerLink
from penstock.client.repeated_read import ResumedRead, read_whole
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block

log = logging.getLogger(__name__)

_BYTES_PER_CALL = 256 << 10


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The end of a batch, as the server has planned it."""

    position: Position
    has_rows: bool  # False when it is known to have no rows of the tables that are counted
    is_store_full: bool = False  # capture waits until readers have acked something


class FlightClient:
    """Reads ranges of a destination's log, from one server or from whichever of several runs it (see
    client/address.py).

        FlightClient("cdc1:11115,cdc2:11115", "shop", retry_timeout_s=60).store_bounds()

    It can be used for long, and by several threads. Transient errors are retried for `retry_timeout_s`.
    """

    def __init__(
        self, server: str | ServerAddress | EmbeddedSource, destination: str = "default", *, retry_timeout_s: float = 0
    ) -> None:
        address = ServerAddress(server) if isinstance(server, str) else server
        self._link = ServerLink(address, retry_timeout_s, destination=destination)
        self._destination = destination

    def close(self) -> None:
        """Close the connections to all servers."""
        self._link.close()

    def describe_tables(self, tables: Sequence[TableName]) -> list[pa.Schema]:
        """Return the columns of each table, its key in the metadata under `key`."""
        answers = self._call_action("describe", tables=[str(table) for table in tables])
        return [pa.ipc.read_schema(pa.py_buffer(answer)) for answer in answers]

    def column_settings(self) -> list[dict[str, Any]]:
        """Return which columns of which tables the instance shows, as its settings have it."""
        return json.loads(self._call_action("columns")[0])["columns"]

    def store_bounds(self) -> dict[str, Position]:
        """Return the `first` and `latest` position of the store."""
        answer = json.loads(self._call_action("positions")[0])
        return {key: Position.from_json(answer[key]) for key in ("first", "latest")}

    def source_start(self) -> Position:
        """Return the position at which the source's log begins."""
        return Position.from_json(json.loads(self._call_action("oldest")[0])["oldest"])

    def resolve_position(self, start: str) -> Position:
        """Return the position that a text such as `earliest`, `gtid:0-1-8` or `time:-10m` means now."""
        return Position.from_json(json.loads(self._call_action("resolve", start=start)[0])["position"])

    def source_end(self, *, for_display: bool = False) -> Position:
        """Return where the source's log ends now, captured or not. `for_display` is for those who ask every second and
        only show it: the server does not open a connection to the source each time."""
        request = {"for_display": True} if for_display else {}
        return Position.from_json(json.loads(self._call_action("end", **request)[0])["end"])

    def bytes_behind(self, position: Position) -> int:
        """Return how many bytes the source's log has behind a position, captured or not."""
        return int(json.loads(self._call_action("end", position=position.to_json())[0])["bytes_behind"])

    def read_to(self) -> Position:
        """Return up to where the server has read the source's log, maybe inside of a transaction that has not ended
        yet; after a break it reads such a transaction again, and the position lies before that."""
        return Position.from_json(json.loads(self._call_action("status")[0])["read_to"])

    def file_identity(self, position: Position) -> str:
        """Return the identity of the log file of a position, which tells it from others of its name; an empty text when
        the file is not there now."""
        return json.loads(self._call_action("identity", position=position.to_json())[0])["identity"]

    def last_statement(self, table: TableName, column: str, position: Position) -> tuple[Position, str] | None:
        """Return the last statement at or before a position that changed a column of a table, and where it ends, if it
        is known."""
        request = {"table": str(table), "column": column, "position": position.to_json()}
        answer = json.loads(self._call_action("statement", **request)[0])
        return (Position.from_json(answer["position"]), answer["statement"]) if answer else None

    def find_batch_end(self, start: Position, max_bytes: int, wait_ms: int, **limit: Any) -> Position:
        """Return where a batch from `start` should end; `start` itself if nothing came within `wait_ms`."""
        return self.plan_batch(start, max_bytes, wait_ms, **limit).position

    def plan_batch(
        self, start: Position, max_bytes: int, wait_ms: int, acked: Position | None = None, **limit: Any
    ) -> BatchEnd:
        """Return where a batch from `start` should end, and whether it may have rows of the tables that are counted; it
        ends at `start` if nothing came within `wait_ms`.

        It also tells the server that everything before `acked` is done: before `start`, where it is left out. `limit`
        may have `max_rows` with `tables` or a `filter` of what is counted, `rows_per_update`, and `statements` if these
        count as rows, too; and a `reader`, for which the server keeps a cursor of its own.
        """
        if acked is not None:
            limit["acked"] = acked.to_json()
        answer = self._call_action("latest", start=start.to_json(), max_bytes=max_bytes, wait_ms=wait_ms, **limit)
        plan = json.loads(answer[0])
        return BatchEnd(Position.from_json(plan["end"]), plan["has_rows"], plan.get("is_store_full", False))

    def ack(self, end: Position, reader: str = "") -> None:
        """Tell the server that everything before `end` is done, for one reader."""
        self._call_action("ack", end=end.to_json(), **({"reader": reader} if reader else {}))

    def renew_reader(self, reader: str) -> float:
        """Let the server keep the cursor of a reader that asks for nothing while it works on a batch; return for how
        many seconds it does."""
        return float(json.loads(self._call_action("renew", reader=reader)[0])["kept_s"])

    def plan_parts(
        self,
        tables: Sequence[TableName],
        start: Position,
        end: Position,
        filter: str = "",  # noqa: A002
    ) -> list[bytes]:
        """Return tickets for the parts of a range; each can be read alone, in any order, any number of times. The
        server reads a large range to cut it: piece by piece, with one call for each."""
        chosen: dict[str, Any] = {"tables": [str(table) for table in tables]} if tables else {"filter": filter}
        request = {"destination": self._destination, "form": "raw", "in_pieces": True, **chosen}
        tickets: list[bytes] = []
        rest: list[Any] | None = [start.to_json(), end.to_json()]
        while rest is not None:
            info = self._link.get_info({**request, "start": rest[0], "end": rest[1]})
            tickets += [endpoint.ticket.ticket for endpoint in info.endpoints]
            rest = json.loads(info.app_metadata or "{}").get("rest")
            if rest is not None:
                log.info(
                    "range planned in part destination=%s planned_to=%s end=%s parts=%d",
                    *(self._destination, Position.from_json(rest[0]), end, len(tickets)),
                )
        return tickets

    def plan_chunks(
        self, table: TableName, after: Sequence[str] | None, *, rows_before: int, count: int, rows: int
    ) -> dict[str, Any]:
        """Return the next `count` chunks of a table behind a key, of up to `rows` rows each: for each the key with
        which it ends and its estimated rows; and the columns of the table's key."""
        request = {"table": str(table), "after": after, "rows_before": rows_before, "count": count, "rows": rows}
        return json.loads(self._call_action("chunks", **request)[0])

    def read_chunk(
        self, table: TableName, bounds: Sequence[Any], position: Position, columns: Sequence[str], key: str
    ) -> list[pa.RecordBatch]:
        """Return the rows that a chunk of a table had at a position of the log, also if the server is restarted
        meanwhile. `bounds` are the keys behind which it begins, and with which it ends; None is no limit. `key` is the
        description of the key that it was planned by."""
        request = {"destination": self._destination, "tables": [str(table)], "columns": list(columns), "key": key}
        ticket = json.dumps(request | {"chunk": list(bounds), "end": position.to_json()}).encode()
        return read_whole(self._link, ticket)

    def find_inside(self, table: TableName, keys: list[list[str]], bounds: Sequence[Any]) -> list[bool]:
        """Return which keys of a table lie behind one key and up to another one, as its database orders them."""
        inside: list[bool] = []
        for page in _divide(keys):
            request = {"table": str(table), "keys": page, "chunk": list(bounds)}
            inside += json.loads(self._call_action("inside", **request)[0])["inside"]
        return inside

    def control_snapshots(self, do: str = "status", **request: Any) -> dict[str, Any]:
        """Pause or resume the snapshots of the destination, or let a table be read again; return how far they are."""
        return json.loads(self._call_action("snapshots", do=do, **request)[0])

    def read_part(self, ticket: bytes) -> "Iterator[Block]":
        """Yield the blocks of a part, each event once, also if the server is restarted meanwhile."""
        from penstock.binlog.events.block import Block  # noqa: PLC0415 - brings numba, which planning does without

        reading = ResumedRead(self._link, ticket)
        while (chunk := reading.next_chunk()) is not None:
            if not chunk.data.num_rows:
                continue  # a heartbeat
            block = Block.from_arrow(chunk.data, chunk.app_metadata.to_pybytes())
            if len(block := reading.drop_repeated(block)):
                yield block

    def _call_action(self, name: str, **request: Any) -> list[bytes]:
        """Call an action of the destination."""
        return self._link.call_action(name, {"destination": self._destination, **request})


def _divide(keys: list[list[str]]) -> Iterator[list[list[str]]]:
    """Yield keys in pages that are small enough for one request."""
    page: list[list[str]] = []
    size = 0
    for key in keys:
        size += len(json.dumps(key))
        if page and size > _BYTES_PER_CALL:
            yield page
            page, size = [], len(json.dumps(key))
        page.append(key)
    if page:
        yield page
