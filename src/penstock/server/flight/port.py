"""The port of Arrow Flight, for Spark and any other Arrow client.

A ticket is a JSON object, see `request`: what of which destination, from where on, and how far. `get_flight_info` cuts
a range into parts that can be read apart; `list_flights` shows destinations and tables; `actions` are the rest.
"""

import json
import logging
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.flight as fl

from penstock.binlog.events.block import EVENT_SCHEMA
from penstock.binlog.rows.fields import describe_table
from penstock.config import FlightSettings
from penstock.errors import ConfigurationError, NotRunningError, PenstockError
from penstock.filter import ColumnRules
from penstock.instance import Instance
from penstock.model import Position
from penstock.model.table_rules import TableRules
from penstock.server.destinations import Destinations
from penstock.server.flight import actions
from penstock.server.flight.access import MIDDLEWARE, FlightAccess, FlightHandshake
from penstock.server.flight.answered import answered
from penstock.server.flight.request import FlightRequest, client_of, read_json, text_of
from penstock.server.flight.shape import shape_of, with_change_fields
from penstock.server.flight.stream import Piece, StreamContext, StreamSlots, client_stream, live_stream, range_stream

log = logging.getLogger(__name__)


class FlightPort(fl.FlightServerBase):
    """Binds when constructed, and answers calls from then on. Arrow's `serve` is not called: it only waits, and takes
    the signals of the process for itself."""

    def __init__(self, settings: FlightSettings, destinations: Destinations) -> None:
        self._destinations, self._host = destinations, settings.host
        self._slots, self._most = StreamSlots(), settings.streams
        self._lock, self._running = threading.Lock(), 0
        self.has_ended = False
        _check_free(self._host, settings.port)
        certificate = _certificate(settings)
        self.scheme = "grpc+tls" if certificate else "grpc"
        tokens = {name: token.get_secret_value() for name, token in settings.tokens.items()}
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            f"{self.scheme}://{self._host}:{settings.port}",
            tls_certificates=[certificate] if certificate else None,
            auth_handler=FlightHandshake() if tokens else None,
            middleware={MIDDLEWARE: FlightAccess(tokens)} if tokens else None,
        )

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def streams(self) -> int:
        """That run now."""
        return self._running

    def stop(self) -> None:
        """Return when no call runs any more, which may be never: Arrow waits for each, also for one whose reader does
        not read."""
        self.shutdown()
        self.has_ended = True

    # -- Flight's calls; pyarrow has no types for them

    def list_actions(self, context: Any) -> list[Any]:  # noqa: ARG002
        return [fl.ActionType(name, what) for name, (_, what) in actions.ACTIONS.items()]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        with answered():
            given = read_json(action.body.to_pybytes())
            name = text_of(given, "destination", "default")
            live = StreamContext.of(name, self._destinations.instance, context.is_cancelled)
            with ExitStack() as stack:
                if action.type == "subscribe":
                    # A stream of that client goes by the filter before.
                    stack.enter_context(self._slots.of(name, client_of(given)).taken())
                elif action.type == "ack" and "client" in given:
                    # Its stream acks what the client sees nothing of.
                    stack.enter_context(self._slots.of(name, client_of(given)).lock)
                stack.enter_context(live.translating())
                return iter(list(actions.run(action.type, live.instance, given)))

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:  # noqa: ARG002
        """Of one destination, if the criteria name one."""
        with answered():
            wanted = criteria.decode(errors="replace")
            names = [wanted] if wanted else sorted(self._destinations.all)
            if not names:
                self._destinations.check_starting()
            for name in names:
                try:
                    instance = self._destinations.instance(name)
                except NotRunningError:
                    if wanted:
                        raise  # an empty list would say that it has no tables
                    continue  # it is starting, or on another server
                yield _flight([name], EVENT_SCHEMA, FlightRequest(name, form="raw"))
                yield from _flights_of(name, instance)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:  # noqa: ARG002
        with answered():
            request, instance = self._asked(descriptor)
            tickets = [request]
            if request.end is not None:
                tickets = [_part(request, *bounds) for bounds in instance.parts(*request.bounds(instance))]
            # Of a range of raw events nothing else needs to be asked for.
            schema = EVENT_SCHEMA if request.form == "raw" else shape_of(request, instance, request.wanted).schema
            endpoints = [fl.FlightEndpoint(json.dumps(one.to_json()).encode(), []) for one in tickets]
            return fl.FlightInfo(schema, descriptor, endpoints, -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:  # noqa: ARG002
        with answered():
            request, instance = self._asked(descriptor)
            return fl.SchemaResult(shape_of(request, instance, request.wanted).schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        with answered():
            request = FlightRequest.of_ticket(ticket.ticket)
            self._check_room()
            name = request.destination
            live = StreamContext.of(name, self._destinations.instance, context.is_cancelled)
            with live.translating():
                if request.client is not None:
                    turn = self._slots.of(name, request.client)
                    schema, pieces = client_stream(request, request.client, live, turn, _address(context.peer()))
                elif request.end is None:
                    schema, pieces = live_stream(request, live)
                else:
                    schema, pieces = range_stream(request, live)
            return fl.GeneratorStream(schema, self._given(live, pieces))

    def _asked(self, descriptor: Any) -> tuple[FlightRequest, Instance]:
        is_path = descriptor.descriptor_type == fl.DescriptorType.PATH
        request = FlightRequest.of_path(descriptor.path) if is_path else FlightRequest.of_ticket(descriptor.command)
        return request, self._destinations.instance(request.destination)

    def _given(self, live: StreamContext, pieces: Iterator[Piece]) -> Iterator[Piece]:
        with answered(), live.translating(), self._counted():
            yield from pieces

    def _check_room(self) -> None:
        if self._running >= self._most:
            raise NotRunningError(f"this server has its {self._most} streams already (flight.streams)")

    @contextmanager
    def _counted(self) -> Generator[None]:
        with self._lock:
            self._check_room()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


def _address(peer: str) -> str:
    """As host:port, of what gRPC says: ipv4:10.0.0.1:5000, or ipv6:%5B::1%5D:5000."""
    return unquote(peer.partition(":")[2])


def _flights_of(name: str, instance: Instance) -> Iterator[Any]:
    """A table each that passes the instance's filter, as far as its log was followed."""
    tables, settings = instance.components.tables, instance.settings.filter
    rules, columns = TableRules.parse(settings.allow, settings.deny), ColumnRules.from_settings(settings.columns)
    for table in filter(rules.passes, tables.table_names):
        try:
            found = tables.describe(table)
            schema = with_change_fields(describe_table(replace(found, columns=columns.columns_to_show(found))))
        except PenstockError as error:
            log.debug("table not listed destination=%s table=%s reason=%s", name, table, error)
            continue
        yield _flight([name, str(table)], schema, FlightRequest(name, (table,)))


def _flight(path: list[str], schema: pa.Schema, request: FlightRequest) -> Any:
    endpoint = fl.FlightEndpoint(json.dumps(request.to_json()).encode(), [])
    return fl.FlightInfo(schema, fl.FlightDescriptor.for_path(*path), [endpoint], -1, -1)


def _part(request: FlightRequest, start: Position, end: Position) -> FlightRequest:
    return FlightRequest(
        request.destination, request.tables, request.filter, request.columns, request.form, start.to_json(),
        end.to_json(),
    )  # fmt: skip


def _certificate(settings: FlightSettings) -> tuple[bytes, bytes] | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        return settings.tls_cert.read_bytes(), settings.tls_key.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {error.filename} ({error.strerror}): see flight.tls_cert") from None


def _check_free(host: str, port: int) -> None:
    """gRPC's own complaint about a busy port is three lines on stderr and no reason in the exception."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror}): if the port is in use, choose another one"
            ) from None
