"""Indexes the events that another event holds: a compressed transaction, a compressed event, fragments of a large one.

A compressed transaction is expanded in parts, because it may be larger than the memory.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.block_builder import BlockBuilder
from penstock.binlog.events.event_offsets import share_offsets
from penstock.binlog.events.expand import COMPRESSED_KINDS, decompress_event, open_payload
from penstock.binlog.events.fragments import Fragments
from penstock.binlog.events.input_buffer import InputBuffer
from penstock.binlog.events.layout import TYPE_AT, EventType
from penstock.binlog.events.problem import EventProblemError
from penstock.binlog.events.state import ALERT, CHECKSUM_BYTES, FRAME_SHIFT, POSITION, IndexState

_MAX_DEPTH = 3  # payloads in payloads
IndexEvents = Callable[[InputBuffer, int], Iterator[Block]]


class EventLocation(NamedTuple):
    """Says where an event lies in its file, and in how many others it is nested."""

    start: int
    span: int
    depth: int


class NestedEvents:
    """Expands compressed and nested events for a reader, whose `index` is called with the expanded bytes and their
    depth. The reader is passed to each call, and not held, so that it is freed without the garbage collector."""

    def __init__(self, state: IndexState, builder: BlockBuilder, *, is_decrypted: bool, block_bytes: int) -> None:
        self._state, self._builder = state, builder
        self._is_decrypted, self._block_bytes = is_decrypted, block_bytes
        self._fragments = Fragments()

    def forget_fragments(self) -> None:
        """Drop the fragments of an event that was not complete at the end of a log file."""
        self._fragments.forget()
        self._state.slots[ALERT] = 0

    def expand(self, event: memoryview, location: EventLocation, index: IndexEvents) -> Iterator[Block]:
        """Yield blocks of the events that an event holds, if it holds any. Raises EventProblemError for an event that
        cannot be expanded, or that says that the log cannot be trusted."""
        kind, (start, span, depth) = event[TYPE_AT], location
        held = event[: len(event) - int(self._state.slots[CHECKSUM_BYTES])]
        if self._fragments.is_open and kind != EventType.MARIADB_PARTIAL_ROW_DATA:
            raise self._fragments.missing()
        if kind == EventType.TRANSACTION_PAYLOAD:
            if depth == _MAX_DEPTH:
                raise EventProblemError("it is a payload in a payload in a payload")
            stream, total = open_payload(held)
            yield from self._index_stream(stream, total, location, index)
        elif kind in COMPRESSED_KINDS:
            yield from self._index_event(decompress_event(held), location, index)
        elif kind == EventType.MARIADB_PARTIAL_ROW_DATA:
            yield from self._add_fragment(held, location, index)
        elif kind == EventType.INCIDENT:
            raise EventProblemError(
                "the source says that it may have lost events here; compare the data, then start after it, at"
                f" {self._builder.file}:{start + span}"
            )
        elif kind == EventType.MARIADB_START_ENCRYPTION and not self._is_decrypted:
            raise EventProblemError(
                "the log is encrypted from here on, and only its server has the key: read it from there with --host"
            )

    def _add_fragment(self, event: memoryview, location: EventLocation, index: IndexEvents) -> Iterator[Block]:
        """Add a fragment of a large event; with the last one, index the whole event."""
        start, span, depth = location
        whole = self._fragments.add(event, start)
        self._state.slots[POSITION] = start + span
        self._state.slots[ALERT] = self._fragments.is_open
        if whole is not None:
            if whole[TYPE_AT] in COMPRESSED_KINDS:
                whole = decompress_event(whole)
            first = self._fragments.start
            yield from self._index_event(whole, EventLocation(first, start + span - first, depth), index)

    def _index_event(self, event: bytearray, location: EventLocation, index: IndexEvents) -> Iterator[Block]:
        """Index a decompressed event, with the offsets of the one that held it."""
        inner = InputBuffer(np.frombuffer(event, np.uint8), len(event))
        with share_offsets(self._state, location.start, location.span, len(event)):
            yield from self._index_inner(inner, location.depth, index)
        _check_end(inner)

    def _index_stream(self, stream: Any, total: int, location: EventLocation, index: IndexEvents) -> Iterator[Block]:
        """Index the `total` bytes of events in a compressed transaction, part by part."""
        done, inner = 0, InputBuffer(np.empty(0, np.uint8))
        with share_offsets(self._state, location.start, location.span, total):
            while done < total:
                if inner.fill == inner.data.size:
                    inner.move(inner.rest + min(total - done, self._block_bytes))
                size = min(total - done, inner.data.size - inner.fill)
                self._state.slots[FRAME_SHIFT] = done - inner.fill
                read = _read(stream, inner.data[inner.fill : inner.fill + size])
                if not read:
                    raise EventProblemError(f"it holds {done} bytes instead of {total}")
                inner.fill += read
                done += read
                yield from self._index_inner(inner, location.depth, index)
        if _read(stream, np.empty(1, np.uint8)):
            raise EventProblemError(f"it holds more than the {total} bytes it speaks of")
        _check_end(inner)

    def _index_inner(self, inner: InputBuffer, depth: int, index: IndexEvents) -> Iterator[Block]:
        """Index events that another event held, and yield a block when there is enough of them."""
        yield from index(inner, depth + 1)
        self._builder.take(inner)
        if self._builder.taken_bytes >= self._block_bytes:
            yield self._builder.cut(inner)


def _read(stream: Any, into: NDArray[np.uint8]) -> int:
    try:
        return stream.readinto(into.data)
    except OSError as error:
        raise EventProblemError(f"it cannot be expanded: {error}") from None


def _check_end(inner: InputBuffer) -> None:
    if inner.rest:
        raise EventProblemError(f"it ends with {inner.rest} bytes that are no event")
