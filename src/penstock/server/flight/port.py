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
from penstock.server.flight.access import MIDDLEWARE, FlightHandshake, TokenMiddleware
from penstock.server.flight.errors import FlightCall, translate_errors
from penstock.server.flight.request import FlightRequest, read_client, read_json, read_text
from penstock.server.flight.stream import (
    StreamContext,
    StreamSlots,
    open_chunk_stream,
    open_client_stream,
    open_live_stream,
    open_range_stream,
)
from penstock.server.flight.stream_format import choose_format, with_change_fields
from penstock.server.flight.stream_items import StreamItem

log = logging.getLogger(__name__)


class FlightPort(fl.FlightServerBase):
    """Serves the destinations of this server over Arrow Flight. It binds when constructed, and answers calls from then
    on. Arrow's `serve` is not called: it only waits, and takes over the signals of the process."""

    def __init__(self, settings: FlightSettings, destinations: Destinations) -> None:
        self._destinations, self._host = destinations, settings.host
        self._slots, self._max_streams = StreamSlots(), settings.streams
        self._lock, self._running = threading.Lock(), 0
        self.has_ended = False
        _check_port_free(self._host, settings.port)
        certificate = _read_certificate(settings)
        self.scheme = "grpc+tls" if certificate else "grpc"
        tokens = {name: token.get_secret_value() for name, token in settings.tokens.items()}
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            f"{self.scheme}://{self._host}:{settings.port}",
            tls_certificates=[certificate] if certificate else None,
            auth_handler=FlightHandshake() if tokens else None,
            middleware={MIDDLEWARE: TokenMiddleware(tokens)} if tokens else None,
        )

    @property
    def address(self) -> str:
        """The host and port that clients connect to, as `host:port`."""
        return f"{self._host}:{self.port}"

    @property
    def streams(self) -> int:
        """Return how many streams are open now."""
        return self._running

    def stop(self) -> None:
        """Shut the port down, and return when no call runs any more. That may be never: Arrow waits for each call, also
        for one whose reader does not read."""
        self.shutdown()
        self.has_ended = True

    # -- Flight's calls; pyarrow has no types for them

    def list_actions(self, context: Any) -> list[Any]:  # noqa: ARG002
        """Return the names and help texts of the actions."""
        return [fl.ActionType(name, help_text) for name, (_, help_text) in actions.ACTIONS.items()]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Run an action on one destination, and return its results."""
        with translate_errors(_describe_call("do_action", context, action.type)) as call:
            arguments = read_json(action.body.to_pybytes())
            name = call.destination = read_text(arguments, "destination", "default")
            stream_context = StreamContext.open(name, self._destinations.running_instance, context.is_cancelled)
            with ExitStack() as stack:
                if action.type == "subscribe":
                    # A stream of that client goes by the filter before.
                    stack.enter_context(self._slots.find(name, read_client(arguments)).end_stream())
                elif action.type == "ack" and "client" in arguments:
                    # Its stream acks what the client sees nothing of.
                    stack.enter_context(self._slots.find(name, read_client(arguments)).lock)
                stack.enter_context(stream_context.translate_stop_errors())
                return iter(list(actions.run_action(action.type, stream_context.instance, arguments)))

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """Yield the flights of all running destinations, or of the one that the criteria name: its events, and each
        captured table."""
        only = criteria.decode(errors="replace")
        with translate_errors(_describe_call("list_flights", context, only)) as call:
            names = [only] if only else sorted(self._destinations.all)
            if not names:
                self._destinations.check_starting()
            for name in names:
                call.destination = name
                try:
                    instance = self._destinations.running_instance(name)
                except NotRunningError:
                    if only:
                        raise  # an empty list would say that it has no tables
                    continue  # it is starting, or on another server
                yield _make_flight_info([name], EVENT_SCHEMA, FlightRequest(name, form="raw"))
                yield from _list_tables(name, instance)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Return the schema of a request and its tickets: several for a range, which can be read in parallel. Of a
        range that is asked for in pieces, the metadata has the `rest`, which is asked for next."""
        with translate_errors(_describe_call("get_flight_info", context)) as call:
            request, instance = self._parse_descriptor(descriptor, call)
            tickets, metadata = [request], b""
            if request.end is not None:
                bounds = request.resolve_range(instance)
                if request.in_pieces:
                    parts, rest = instance.split_piece(*bounds)
                    if rest is not None:
                        metadata = json.dumps({"rest": [position.to_json() for position in rest]}).encode()
                else:
                    parts = instance.split_range(*bounds)
                tickets = [_make_part(request, *part) for part in parts]
            # Of a range of raw events nothing else needs to be asked for.
            schema = (
                EVENT_SCHEMA
                if request.form == "raw"
                else choose_format(request, instance, request.table_predicate).schema
            )
            endpoints = [fl.FlightEndpoint(json.dumps(ticket.to_json()).encode(), []) for ticket in tickets]
            return fl.FlightInfo(schema, descriptor, endpoints, -1, -1, app_metadata=metadata)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Return the Arrow schema of the stream that a request would open."""
        with translate_errors(_describe_call("get_schema", context)) as call:
            request, instance = self._parse_descriptor(descriptor, call)
            return fl.SchemaResult(choose_format(request, instance, request.table_predicate).schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Open the stream that a ticket asks for: of a subscribed client, from a position on, or of a range."""
        with translate_errors(_describe_call("do_get", context)) as call:
            request = FlightRequest.from_ticket(ticket.ticket)
            self._check_stream_limit()
            name = request.destination
            call.set_request(name, request.describe(), request.client)
            stream_context = StreamContext.open(name, self._destinations.running_instance, context.is_cancelled)
            with stream_context.translate_stop_errors():
                if request.client is not None:
                    slot = self._slots.find(name, request.client)
                    schema, items = open_client_stream(
                        request, request.client, stream_context, slot, _peer_address(context.peer())
                    )
                elif request.chunk is not None:
                    schema, items = open_chunk_stream(request, request.chunk, stream_context)
                elif request.end is None:
                    schema, items = open_live_stream(request, stream_context)
                else:
                    schema, items = open_range_stream(request, stream_context)
            return fl.GeneratorStream(schema, self._translate_stream_errors(call, stream_context, items))

    def _parse_descriptor(self, descriptor: Any, call: FlightCall) -> tuple[FlightRequest, Instance]:
        """Return the request of a Flight descriptor, and the running instance of its destination."""
        is_path = descriptor.descriptor_type == fl.DescriptorType.PATH
        request = FlightRequest.from_path(descriptor.path) if is_path else FlightRequest.from_ticket(descriptor.command)
        call.set_request(request.destination, request.describe())
        return request, self._destinations.running_instance(request.destination)

    def _translate_stream_errors(
        self, call: FlightCall, stream_context: StreamContext, items: Iterator[StreamItem]
    ) -> Iterator[StreamItem]:
        """Yield the batches of a stream; count it as open, and translate its errors."""
        with translate_errors(call), stream_context.translate_stop_errors(), self._count_stream():
            yield from items

    def _check_stream_limit(self) -> None:
        """Raise NotRunningError when as many streams are open as `flight.streams` allows."""
        if self._running >= self._max_streams:
            raise NotRunningError(f"this server has its {self._max_streams} streams already (flight.streams)")

    @contextmanager
    def _count_stream(self) -> Generator[None]:
        """Count a stream as open during the block."""
        with self._lock:
            self._check_stream_limit()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


def _describe_call(name: str, context: Any, request: str = "") -> FlightCall:
    """Return the description of a call that is logged when it fails."""
    return FlightCall(name, _peer_address(context.peer()), request)


def _peer_address(peer: str) -> str:
    """Return host:port of a peer as gRPC names it: ipv4:10.0.0.1:5000, or ipv6:%5B::1%5D:5000."""
    return unquote(peer.partition(":")[2])


def _list_tables(name: str, instance: Instance) -> Iterator[Any]:
    """Yield a flight for each table that was seen in the log and passes the instance's filter."""
    tables, settings = instance.components.tables, instance.settings.filter
    rules, columns = TableRules.parse(settings.allow, settings.deny), ColumnRules.from_settings(settings.columns)
    for table in filter(rules.passes, tables.table_names):
        try:
            table_schema = tables.describe(table)
            schema = with_change_fields(
                describe_table(replace(table_schema, columns=columns.columns_to_show(table_schema)))
            )
        except PenstockError as error:
            log.debug("table not listed destination=%s table=%s reason=%s", name, table, error)
            continue
        yield _make_flight_info([name, str(table)], schema, FlightRequest(name, (table,)))


def _make_flight_info(path: list[str], schema: pa.Schema, request: FlightRequest) -> Any:
    endpoint = fl.FlightEndpoint(json.dumps(request.to_json()).encode(), [])
    return fl.FlightInfo(schema, fl.FlightDescriptor.for_path(*path), [endpoint], -1, -1)


def _make_part(request: FlightRequest, start: Position, end: Position) -> FlightRequest:
    """Return the request for one part of a range."""
    return FlightRequest(
        request.destination, request.tables, request.filter, request.columns, request.form, start.to_json(),
        end.to_json(),
    )  # fmt: skip


def _read_certificate(settings: FlightSettings) -> tuple[bytes, bytes] | None:
    """Return the bytes of the TLS certificate and its key, or None without TLS."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        return settings.tls_cert.read_bytes(), settings.tls_key.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {error.filename} ({error.strerror}): see flight.tls_cert") from None


def _check_port_free(host: str, port: int) -> None:
    """Raise ConfigurationError when a port is in use: gRPC writes its own complaint to stderr and raises no reason."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror}): if the port is in use, choose another one"
            ) from None
