"""Collects indexed events and their bytes until a block is cut.

The index kernel fills `arrays`, of which `count` events are in no block yet. Their bytes are still in the input buffer,
or were taken from it as slices: a block of one slice shares its memory, a block of several copies them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import GtidsBody, parse_body
from penstock.binlog.events.checksum import block_checksum
from penstock.binlog.events.event_arrays import EventArrays
from penstock.binlog.events.input_buffer import InputBuffer
from penstock.binlog.events.layout import HEADER, Entry, EventType
from penstock.binlog.events.state import TRANSACTION, VERIFY, IndexState
from penstock.errors import BinlogError, ConfigurationError
from penstock.model import GtidSet, Position

_EVENTS = 1 << 16


class BlockBuilder:
    """Holds the events that are indexed and in no block yet, and cuts blocks of them."""

    def __init__(self, position: Position, state: IndexState) -> None:
        self.file, self.epoch = position.file, position.epoch
        self.server_version = ""  # known from the first FORMAT_DESCRIPTION on
        self.arrays = EventArrays.allocate(_EVENTS)
        self.count = 0  # events indexed and not yet in a block
        self.holds_trailing = False
        self.taken_bytes = 0  # of these events, no longer in the input buffer
        self._slices: list[NDArray[np.uint8]] = []  # of input buffers: these bytes
        self._state = state
        self._executed = position.gtids

    @property
    def trailing_count(self) -> int:
        """Return how many of the last events have to wait for the next block."""
        if not self.holds_trailing:
            return 0
        entry, boundary, first = self.arrays.entry, self.arrays.boundary, self.count
        while first and not entry[first - 1] and not boundary[first - 1]:
            first -= 1
        return self.count - first

    def pending_bytes(self, buffer: InputBuffer) -> int:
        """Return how many indexed bytes are in no block yet."""
        return self.taken_bytes + buffer.at - buffer.run

    def take(self, buffer: InputBuffer, rest: int = 0) -> None:
        """Take the bytes of indexed events, except the last `rest` bytes, from the buffer for the next block."""
        taken = buffer.take(rest)
        if taken.size:
            self._slices.append(taken)
            self.taken_bytes += taken.size

    def cut(self, buffer: InputBuffer) -> Block:
        """Return a block of what is indexed, except trailing events that have to wait; of everything when there are no
        others."""
        trailing = self.trailing_count
        arrays, count = self.arrays, self.count if trailing == self.count else self.count - trailing
        rest = self._take_all_but(buffer, int(arrays.size[count : self.count].sum()))
        used = distinct(arrays.table_id[:count][arrays.entry[:count] == Entry.ROWS])
        tables = dict(zip(used, self._state.known.maps_of(used), strict=True))
        data = self._slices[0] if len(self._slices) == 1 else np.concatenate(self._slices)
        if self._executed is None:
            self._executed = self._gtids_before(data)
        checksum = self._state.take_block_checksum(up_to_entry=bool(rest.size))
        if rest.size:
            are_verified = bool((arrays.checksum[count : self.count] != 0).all()) and self._state.slots[VERIFY]
            bounds = arrays.bounds(count, self.count)
            self._state.set_block_checksum(block_checksum(rest, bounds) if are_verified else None)
        block = Block.from_arrays(
            self.file, self.server_version, self._state.tag_names, data, arrays, count, tables,
            checksum, self.epoch, self._executed,
        )  # fmt: skip
        self._executed = block.executed_before(count)
        arrays.drop(count, self.count)
        self.count -= count
        self._slices = [rest] if rest.size and buffer.run == buffer.at else []
        self.taken_bytes = sum(piece.size for piece in self._slices)
        if not self.count and self._state.slots[TRANSACTION] < 0:
            self._state.known.shrink()
        return block

    def cut_any(self, buffer: InputBuffer) -> Iterator[Block]:
        """Yield a block if anything is indexed."""
        if self.count:
            yield self.cut(buffer)

    def cut_all(self, buffer: InputBuffer) -> Iterator[Block]:
        """Yield a block of everything that is indexed: no event waits for the next block."""
        self.holds_trailing, before = False, self.holds_trailing
        yield from self.cut_any(buffer)
        self.holds_trailing = before

    def has_rows_of(self, table_id: int) -> bool:
        """Return whether the block to come has rows with this table id."""
        are_rows = self.arrays.entry[: self.count] == Entry.ROWS
        return bool((self.arrays.table_id[: self.count][are_rows] == table_id).any())

    def _take_all_but(self, buffer: InputBuffer, rest: int) -> NDArray[np.uint8]:
        """Take the bytes of all indexed events except the last `rest` bytes, and return these last bytes; those that
        are in the buffer stay there."""
        if rest <= buffer.at - buffer.run:
            self.take(buffer, rest)
            return buffer.data[buffer.run : buffer.at]
        self.take(buffer)
        data = np.concatenate(self._slices)
        self._slices = [data[: data.size - rest]]
        return data[data.size - rest :].copy()

    def _gtids_before(self, data: NDArray[np.uint8]) -> GtidSet | None:
        """Return the GTIDs before a file, which its first events say; None when they do not."""
        arrays, first = self.arrays, 0
        kind = int(arrays.kind[first])
        if kind not in (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST):
            return None
        start, size = int(arrays.start[first]), int(arrays.size[first])
        raw = data[start + HEADER : start + size - int(arrays.checksum[first])].tobytes()
        try:
            body = parse_body(kind, raw)
            text = body.text if isinstance(body, GtidsBody) else ""
            return replace(GtidSet.parse(text), is_mariadb=kind == EventType.MARIADB_GTID_LIST)
        except (BinlogError, ConfigurationError):
            return None  # the events themselves can be read all the same
