"""Arrow Flight: the calls that the Spark source, and any Arrow client, needs.

    action  describe  {destination, tables}                       → one schema per table, Arrow IPC
    action  bounds    {destination}                               → {first, latest}
    action  oldest    {destination}                               → {oldest}: where the source's log begins
    action  latest    {destination, start, max_bytes, wait_ms}    → {end}; waits until there is something after start.
                                                                    All before start is done and may be freed.
    action  ack       {destination, end}                          → nothing
    info    {destination, tables, start, end}                     → endpoints: parts of the range to be read apart
    get     ticket of such an endpoint                            → blocks: events as batches, the rest as metadata

Positions are {epoch, file, offset} and, where they are known, the GTIDs before them. An error carries the name of its
class, so that the client raises the same one.
"""

import json
import logging
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as fl

from penstock.binlog.events.block import EVENT_SCHEMA
from penstock.binlog.rows.fields import table_fields
from penstock.config import FlightSettings
from penstock.errors import ConfigurationError, PenstockError, ProtocolError
from penstock.filter import ColumnRules
from penstock.instance import Instance
from penstock.model import Position, TableName, TableSchema
from penstock.server.destinations import Destinations

log = logging.getLogger(__name__)

PART_BYTES = 8 << 20  # a range is cut into parts of about this size, each read by one task
_LONGEST_WAIT_MS = 10_000


class FlightPort(fl.FlightServerBase):
    """Binds when constructed."""

    def __init__(self, settings: FlightSettings, destinations: Destinations) -> None:
        self._destinations = destinations
        _check_built(settings)
        self._host = settings.host
        _check_free(self._host, settings.port)
        super().__init__(f"grpc://{self._host}:{settings.port}")  # pyright: ignore[reportUnknownMemberType]
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    def start(self) -> None:
        """Answer calls in a thread."""
        self._thread = threading.Thread(target=self.serve, name="penstock-flight", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        if self._thread is not None:
            self._thread.join(10)

    # -- Flight's calls; pyarrow has no types for them

    def list_actions(self, context: Any) -> list[Any]:  # noqa: ARG002
        names = ("describe", "bounds", "oldest", "latest", "ack")
        return [fl.ActionType(name, "see penstock.server.flight") for name in names]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:  # noqa: ARG002
        with _answered():
            request = _json(action.body.to_pybytes())
            instance = self._instance(request)
            match action.type:
                case "describe":
                    tables = instance.describe([TableName.parse(name) for name in request["tables"]])
                    chosen = ColumnRules.of(instance.settings.filter.columns)
                    shown = (replace(table, columns=chosen.columns_of(table)) for table in tables)
                    return iter([describe_table(table).serialize().to_pybytes() for table in shown])
                case "bounds":
                    answer = {
                        "first": instance.store.first.to_json(),
                        "latest": instance.store.latest.to_json(),
                    }
                case "oldest":
                    answer = {"oldest": instance.oldest().to_json()}
                case "latest":
                    wait_ms = min(int(request.get("wait_ms", 0)), _LONGEST_WAIT_MS)
                    start = Position.from_json(request["start"])
                    instance.ack(start)
                    end = instance.end_after(start, int(request["max_bytes"]), wait_ms / 1000)
                    answer = {"end": end.to_json()}
                case "ack":
                    instance.ack(Position.from_json(request["end"]))
                    answer = {}
                case other:
                    raise ProtocolError(f"there is no action '{other}'")
            return iter([json.dumps(answer).encode()])

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:  # noqa: ARG002
        with _answered():
            request = _json(descriptor.command)
            instance = self._instance(request)
            start, end = Position.from_json(request["start"]), Position.from_json(request["end"])
            parts = _parts(instance, start, end)
            tickets = [json.dumps(request | {"start": a.to_json(), "end": b.to_json()}).encode() for a, b in parts]
            endpoints = [fl.FlightEndpoint(ticket, []) for ticket in tickets]
            return fl.FlightInfo(EVENT_SCHEMA, descriptor, endpoints, -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:  # noqa: ARG002
        with _answered():
            request = _json(ticket.ticket)
            instance = self._instance(request)
            tables = {TableName.parse(name) for name in request["tables"]}
            start, end = Position.from_json(request["start"]), Position.from_json(request["end"])
            return fl.GeneratorStream(EVENT_SCHEMA, _stream(instance, start, end, tables))

    def _instance(self, request: dict[str, Any]) -> Instance:
        return self._destinations.instance(request.get("destination", "default"))


def describe_table(table: TableSchema) -> pa.Schema:
    """A table's columns; those that cannot be decoded are left out and named in the metadata."""
    decoded: list[pa.Field] = []
    refused: dict[str, str] = {}
    for column in table.columns:
        try:
            decoded.extend(table_fields(table, [column.name]))
        except PenstockError as error:
            refused[column.name] = str(error)
    about = {"table": str(table.name), "key": json.dumps(table.key), "refused": json.dumps(refused)}
    return pa.schema(decoded, metadata=about)


def _stream(instance: Instance, start: Position, end: Position, tables: set[TableName]) -> Iterator[Any]:
    with _answered():
        for block in instance.read(start, end):
            rows = block.rows_of(tables)
            if len(rows):
                yield rows.events, pa.py_buffer(rows.describe())


def _parts(instance: Instance, start: Position, end: Position) -> list[tuple[Position, Position]]:
    """Cut a range that the store holds between transactions, so that each part can also be read from the log alone.

    What comes from the source's log is one part.
    """
    parts: list[tuple[Position, Position]] = []
    at, size = start, 0
    for block in instance.store.read(start, end) or ():
        size += block.size_bytes
        boundaries = block.boundaries
        if size >= PART_BYTES and boundaries.size:
            cut = block.end_of(int(boundaries[-1]))
            if at < cut < end:
                parts.append((at, cut))
                at, size = cut, 0
    return [*parts, (at, end)]


def _json(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        raise ProtocolError("the request is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("the request is not a JSON object")
    return cast("dict[str, Any]", value)


def _check_built(settings: FlightSettings) -> None:
    if settings.tokens or settings.tls_cert is not None:
        raise ConfigurationError("flight.tokens and flight.tls_cert are not built yet: leave them out, on loopback")


def _check_free(host: str, port: int) -> None:
    """gRPC's own complaint about a busy port is three lines on stderr and no reason in the exception."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror}): if the port is in use, choose another one"
            ) from None


@contextmanager
def _answered() -> Generator[None, None, None]:
    """Turns our errors into Flight's, with the class name beside the message."""
    try:
        yield
    except PenstockError as error:
        about = json.dumps({"error": type(error).__name__, "message": str(error)}).encode()
        cls = fl.FlightUnavailableError if error.transient else fl.FlightServerError
        raise cls(str(error), about) from error
    except (KeyError, TypeError, ValueError) as error:
        log.warning("bad request", exc_info=error)
        about = json.dumps({"error": "ProtocolError", "message": f"bad request: {error!r}"}).encode()
        raise fl.FlightServerError(f"bad request: {error!r}", about) from error
