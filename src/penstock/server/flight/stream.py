"""The batches of a stream, each with JSON beside it.

`position` is where the reader goes on when the stream breaks: between two transactions, so a part of the last one may
come again. `batch` is what a client acks; it comes with the last piece. A batch without lines says that, and no more.
"""

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.binlog.xa.placement import join_blocks
from penstock.config import FilterSettings
from penstock.errors import MetaError, NotRunningError, PenstockError
from penstock.instance import Instance
from penstock.instance.clients import Clients
from penstock.instance.filter import table_filter
from penstock.instance.tail_reader import open_tail
from penstock.model import Position
from penstock.server.flight.request import FlightRequest
from penstock.server.flight.shape import Shape, shape_of
from penstock.store import BatchSize

Piece = tuple[pa.RecordBatch, pa.Buffer]

_TELL_S = 1.0  # how often something is said, if only how far the log is: who waits can be interrupted, or is gone
_LOOK_S = 1.0
_ONE = BatchSize(1)
# Of a client, by form: what is shown is acked by the batch, so a batch is one Arrow batch. It has one block, whose
# events travel as they are, or so many small ones that their rows are worth a message.
_UNITS = {
    "raw": BatchSize(4096, "memory", enough_bytes=1),
    "decoded": BatchSize(4096, "memory", enough_bytes=64 << 10),
}


class StreamSlot:
    """Of the streams of one client: the last one that began."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: object | None = None

    @contextmanager
    def taken(self) -> Generator[None]:
        """From whoever has it."""
        with self.lock:
            self.holder = None
            yield


@dataclass(slots=True)
class StreamSlots:
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _found: dict[tuple[str, int], StreamSlot] = field(default_factory=dict[tuple[str, int], StreamSlot])

    def of(self, destination: str, client: int) -> StreamSlot:
        with self._lock:
            return self._found.setdefault((destination, client), StreamSlot())


@dataclass(frozen=True, slots=True)
class StreamContext:
    """Whether a stream goes on: its reader is there, and its instance is the one that serves, with the same filter."""

    destination: str
    instance: Instance
    instance_of: Callable[[str], Instance]
    is_gone: Callable[[], bool]
    filter: FilterSettings

    @classmethod
    def of(
        cls, destination: str, instance_of: Callable[[str], Instance], is_gone: Callable[[], bool]
    ) -> "StreamContext":
        instance = instance_of(destination)
        return cls(destination, instance, instance_of, is_gone, instance.settings.filter)

    def is_over(self) -> bool:
        self.check_serving()
        if self.instance.settings.filter is not self.filter:
            raise NotRunningError(f"destination '{self.destination}' has another filter now: open the stream again")
        return self.is_gone()

    def check_serving(self) -> None:
        """Raise NotRunningError when the instance is not the one that serves its destination any more."""
        if self.instance_of(self.destination) is not self.instance:
            raise NotRunningError(f"destination '{self.destination}' was started anew: open the stream again")

    @contextmanager
    def translating(self) -> Generator[None]:
        """Whatever an instance raises that was stopped meanwhile says no more than that: the call makes sense again,
        with the instance that comes after it."""
        try:
            yield
        except PenstockError:
            self.check_serving()
            raise


def range_stream(request: FlightRequest, context: StreamContext) -> tuple[pa.Schema, Iterator[Piece]]:
    """Stream the changes after one position, up to and including another one."""
    instance = context.instance
    start, end = request.bounds(instance)
    shape = shape_of(request, instance, request.wanted)

    def pieces() -> Iterator[Piece]:
        teller, place = _ProgressWriter(shape), start
        # A log that was captured while it was written is in the store as one block for each transaction.
        for block in join_blocks(instance.read(start, end)):
            if context.is_over():
                return
            ends = block.boundaries
            after = block.end_of_event(int(ends[-1])) if ends.size else place
            yield from teller.pieces((block,), place, after)
            place = after
        if request.form == "decoded":
            yield teller.told(end)

    return shape.schema, pieces()


def live_stream(request: FlightRequest, context: StreamContext) -> tuple[pa.Schema, Iterator[Piece]]:
    """All from a place on."""
    instance = context.instance
    shape, start = shape_of(request, instance, request.wanted), request.starts(instance)

    def pieces() -> Iterator[Piece]:
        with open_tail(instance, start) as follower:
            teller = _ProgressWriter(shape)
            yield teller.told(follower.place)
            for batch in follower.batches(context.is_over):
                if context.is_over():  # since it waited
                    return
                if batch is not None:
                    yield from teller.pieces(batch.blocks, follower.place, batch.ack)
                if teller.is_time():
                    yield teller.told(follower.place)

    return shape.schema, pieces()


class _ProgressWriter:
    """Says with each piece up to where its reader has everything."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._said_s = 0.0

    def pieces(self, blocks: tuple[Block, ...], before: Position, after: Position | None) -> Iterator[Piece]:
        """Of a batch: with its last one the reader has all up to `after`."""
        held: tuple[pa.RecordBatch, Block | None] | None = None
        for block in blocks:
            for found in self._shape.batches(block):
                if held is not None:
                    yield _piece(*held, {"position": before.to_json()})
                held = found
        if held is not None:
            self._said_s = time.monotonic()
            yield _piece(*held, {"position": (after or before).to_json()})

    def is_time(self) -> bool:
        return time.monotonic() - self._said_s >= _TELL_S

    def told(self, place: Position) -> Piece:
        """That it is still there, and where it is."""
        self._said_s = time.monotonic()
        return _piece(self._shape.nothing, None, {"position": place.to_json()})


def client_stream(
    request: FlightRequest, client: int, context: StreamContext, slot: StreamSlot, address: str = ""
) -> tuple[pa.Schema, Iterator[Piece]]:
    """What a client has subscribed to, from its last ack on. A new stream of a client ends the one before."""
    instance, mine = context.instance, object()
    clients = instance.clients
    subscriptions = clients.subscriptions()
    if client not in subscriptions:
        raise MetaError(f"client {client} has not subscribed to {context.destination}: call the action subscribe first")
    shape = shape_of(request, instance, request.wanted or table_filter(subscriptions[client]))

    def pieces() -> Iterator[Piece]:
        disconnect = clients.connect(client, address)
        try:
            yield from connected_pieces()
        finally:
            disconnect()

    def connected_pieces() -> Iterator[Piece]:
        with slot.lock:
            slot.holder = mine
            clients.rollback(client)
        unseen, said_s = set[int](), 0.0  # batches with nothing to show that are not acked
        while not context.is_over():
            is_there = clients.wait(client, _ONE, _LOOK_S)
            with slot.lock:
                if slot.holder is not mine:
                    raise MetaError(f"client {client} has opened another stream, which goes on in place of this one")
                _ack_unseen(clients, client, unseen)
                got = clients.get(client, _UNITS[request.form]) if is_there else None
            if context.is_over():
                return
            found = list(_numbered(shape, *got)) if got is not None else []
            if got is not None and not found:
                unseen.add(got[0])
            if not found and time.monotonic() - said_s >= _TELL_S:
                found = [_piece(shape.nothing, None, {})]
            if found:
                said_s = time.monotonic()
                yield from found

    return shape.schema, pieces()


def _numbered(shape: Shape, batch_id: int, batch: Any) -> Iterator[Piece]:
    """What there is to show of a batch: with its last piece comes the number by which it is acked, and where its last
    transaction ends."""
    several = shape.join(batch.blocks)
    position = batch.ack.to_json() if batch.ack is not None else None
    for at, found in enumerate(several, 1):
        yield _piece(*found, {"batch": batch_id, "position": position} if at == len(several) else {})


def _ack_unseen(clients: Clients, client: int, unseen: set[int]) -> None:
    """Ack batches of which the client sees nothing, as soon as those before them are acked."""
    with suppress(MetaError):  # rolled back meanwhile: it comes again, with another number
        while unseen and (ids := clients.outstanding(client)) and ids[0] in unseen:
            clients.ack(client, ids[0])
            unseen.discard(ids[0])
        unseen.intersection_update(clients.outstanding(client))


def _piece(batch: pa.RecordBatch, block: Block | None, about: dict[str, Any]) -> Piece:
    raw = block.encode_description(**about) if block is not None else json.dumps(about).encode()
    return batch, pa.py_buffer(raw)
