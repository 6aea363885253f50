"""The streams of Arrow Flight: Arrow batches, each with JSON metadata beside it.

`position` is where the reader resumes when the stream breaks: a transaction boundary, so a part of the last transaction
may be redelivered. `batch` is what a client acks; it comes with the last Arrow batch. An empty batch is a heartbeat.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.binlog.rows.fields import select_fields
from penstock.binlog.xa.placement import join_blocks
from penstock.config import FilterSettings
from penstock.errors import MetaError, NotRunningError, PenstockError
from penstock.instance import Instance
from penstock.instance.clients import Clients
from penstock.instance.column_name_completer import ColumnNameCompleter
from penstock.instance.filter import parse_client_filter
from penstock.instance.tail_reader import open_tail
from penstock.server.flight.read_ahead import read_ahead
from penstock.server.flight.request import ChunkBounds, FlightRequest, resolve_position, resolve_start
from penstock.server.flight.stream_format import StreamFormat, choose_format, describe_tables
from penstock.server.flight.stream_items import (
    HEARTBEAT_S,
    ProgressWriter,
    SentItem,
    StreamItem,
    add_position,
    make_item,
)
from penstock.store import BatchSize

_POLL_S = 1.0
_ONE_ENTRY = BatchSize(1)
# Of a client, by form: what is shown is acked by the batch, so a batch is one Arrow batch. It has one block, whose
# events travel as they are, or so many small ones that their rows are worth a message.
_CLIENT_BATCH_SIZES = {
    "raw": BatchSize(4096, "memory", enough_bytes=1),
    "decoded": BatchSize(4096, "memory", enough_bytes=64 << 10),
}


class StreamSlot:
    """Knows which stream of a client is the current one: a new stream of a client ends the one before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: object | None = None

    @contextmanager
    def end_stream(self) -> Generator[None]:
        """End the client's stream, and let none of its batches be delivered during the block."""
        with self.lock:
            self.holder = None
            yield


@dataclass(slots=True)
class StreamSlots:
    """The stream slots of all clients of a server."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _slots: dict[tuple[str, int], StreamSlot] = field(default_factory=dict[tuple[str, int], StreamSlot])

    def find(self, destination: str, client: int) -> StreamSlot:
        """Return the slot of a client of a destination."""
        with self._lock:
            return self._slots.setdefault((destination, client), StreamSlot())


@dataclass(frozen=True, slots=True)
class StreamContext:
    """What an open stream depends on: its reader is connected, the instance still serves the destination, and its
    filter is the same. When one of them changes, the stream ends."""

    destination: str
    instance: Instance
    get_instance: Callable[[str], Instance]
    is_gone: Callable[[], bool]
    filter: FilterSettings

    @classmethod
    def open(
        cls, destination: str, get_instance: Callable[[str], Instance], is_gone: Callable[[], bool]
    ) -> "StreamContext":
        """Return the context of a new stream of the running instance of a destination."""
        instance = get_instance(destination)
        return cls(destination, instance, get_instance, is_gone, instance.settings.filter)

    def is_over(self) -> bool:
        """Return whether the reader is gone. Raises NotRunningError when the instance or its filter was replaced."""
        self.check_serving()
        if self.instance.settings.filter is not self.filter:
            raise NotRunningError(f"destination '{self.destination}' has another filter now: open the stream again")
        return self.is_gone()

    def check_serving(self) -> None:
        """Raise NotRunningError when the instance is no longer the one that serves its destination."""
        if self.get_instance(self.destination) is not self.instance:
            raise NotRunningError(f"destination '{self.destination}' was restarted: open the stream again")

    @contextmanager
    def translate_stop_errors(self) -> Generator[None]:
        """Turn any error in the block into NotRunningError if the instance was stopped meanwhile: a retry reaches its
        successor."""
        try:
            yield
        except PenstockError:
            self.check_serving()
            raise


def open_range_stream(request: FlightRequest, context: StreamContext) -> tuple[pa.Schema, Iterator[StreamItem]]:
    """Stream the changes after one position, up to and including another one. Returns the schema and the batches."""
    instance = context.instance
    start, end = request.resolve_range(instance)
    stream_format = choose_format(request, instance, request.table_predicate)

    def read_items() -> Iterator[SentItem]:
        progress, position, blocks = (
            ProgressWriter(stream_format),
            start,
            instance.read(start, end, is_part=request.form == "raw"),
        )
        if request.form == "raw" and not request.tables:  # whoever takes any table takes columns without names
            blocks = map(ColumnNameCompleter(instance).complete, blocks)
        # A log that was captured while it was written is in the store as one block for each transaction.
        for block in join_blocks(blocks):
            ends = block.boundaries
            after = block.end_of_event(int(ends[-1])) if ends.size else position
            yield from progress.items((block,), position, after)
            position = after
        if request.form == "decoded":
            yield progress.heartbeat(end)

    def items() -> Iterator[StreamItem]:
        sent = add_position(stream_format.empty_batch, None, start)
        with closing(read_ahead(read_items(), HEARTBEAT_S)) as ready:
            for made in ready:
                if context.is_over():
                    return
                sent = made or add_position(stream_format.empty_batch, None, sent.position)
                yield sent.item

    return stream_format.schema, items()


def open_chunk_stream(
    request: FlightRequest, bounds: ChunkBounds, context: StreamContext
) -> tuple[pa.Schema, Iterator[StreamItem]]:
    """Stream the rows that a chunk of a table had at a position of the log. Returns the schema and the batches."""
    from penstock.snapshot.chunks import Chunk  # noqa: PLC0415 - brings kernels that few need

    instance = context.instance
    (table,) = request.tables
    (described,) = describe_tables(instance, [table])
    fields = select_fields(table, described, request.columns or None)
    position = resolve_position(request.end, instance)
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=fields)

    def items() -> Iterator[StreamItem]:
        rows = instance.snapshots.read(table, Chunk(*bounds), position, fields, context.is_over, request.key)
        with closing(read_ahead(rows, HEARTBEAT_S)) as ready:
            for batch in ready:
                if context.is_over():
                    return
                yield make_item(empty if batch is None else batch.cast(fields), None, {})

    return fields, items()


def open_live_stream(request: FlightRequest, context: StreamContext) -> tuple[pa.Schema, Iterator[StreamItem]]:
    """Stream all changes from a position on, without an end. Returns the schema and the batches."""
    instance = context.instance
    stream_format = choose_format(request, instance, request.table_predicate)
    start = resolve_start(request.start, instance)

    def items() -> Iterator[StreamItem]:
        with open_tail(instance, start) as tail:
            progress = ProgressWriter(stream_format)
            yield progress.heartbeat(tail.position).item
            for batch in tail.batches(context.is_over):
                if context.is_over():  # since it waited
                    return
                if batch is not None:
                    yield from (sent.item for sent in progress.items(batch.blocks, tail.position, batch.ack))
                if progress.is_heartbeat_due():
                    yield progress.heartbeat(tail.position).item

    return stream_format.schema, items()


def open_client_stream(
    request: FlightRequest, client: int, context: StreamContext, slot: StreamSlot, address: str = ""
) -> tuple[pa.Schema, Iterator[StreamItem]]:
    """Stream what a client has subscribed to, from its last ack on, and end an older stream of the client. Returns the
    schema and the batches."""
    instance, mine = context.instance, object()
    clients = instance.clients
    subscriptions = clients.subscriptions()
    if client not in subscriptions:
        raise MetaError(f"client {client} has not subscribed to {context.destination}: call the action subscribe first")
    stream_format = choose_format(
        request, instance, request.table_predicate or parse_client_filter(subscriptions[client])
    )

    def items() -> Iterator[StreamItem]:
        disconnect = clients.connect(client, address)
        try:
            yield from connected_items()
        finally:
            disconnect()

    def connected_items() -> Iterator[StreamItem]:
        with slot.lock:
            slot.holder = mine
            clients.rollback(client)
        hidden, last_sent_s = set[int](), 0.0  # batches with nothing to show that are not acked
        while not context.is_over():
            is_available = clients.wait(client, _ONE_ENTRY, _POLL_S)
            with slot.lock:
                if slot.holder is not mine:
                    raise MetaError(f"client {client} has opened another stream, which replaces this one")
                _ack_hidden_batches(clients, client, hidden)
                got = clients.get(client, _CLIENT_BATCH_SIZES[request.form]) if is_available else None
            if context.is_over():
                return
            sent = list(_make_batch_items(stream_format, *got)) if got is not None else []
            if got is not None and not sent:
                hidden.add(got[0])
            if not sent and time.monotonic() - last_sent_s >= HEARTBEAT_S:
                sent = [make_item(stream_format.empty_batch, None, {})]
            if sent:
                last_sent_s = time.monotonic()
                yield from sent

    return stream_format.schema, items()


def _make_batch_items(stream_format: StreamFormat, batch_id: int, batch: Any) -> Iterator[StreamItem]:
    """Yield the Arrow batches of a client's batch. The last one carries the batch id, by which it is acked, and the
    position of its last transaction boundary."""
    batches = stream_format.to_joined_batches(batch.blocks)
    position = batch.ack.to_json() if batch.ack is not None else None
    for number, batch_and_block in enumerate(batches, 1):
        yield make_item(*batch_and_block, {"batch": batch_id, "position": position} if number == len(batches) else {})


def _ack_hidden_batches(clients: Clients, client: int, hidden: set[int]) -> None:
    """Ack batches of which the client sees nothing, as soon as those before them are acked."""
    with suppress(MetaError):  # rolled back meanwhile: it is redelivered with another id
        while hidden and (ids := clients.outstanding(client)) and ids[0] in hidden:
            clients.ack(client, ids[0])
            hidden.discard(ids[0])
        hidden.intersection_update(clients.outstanding(client))
