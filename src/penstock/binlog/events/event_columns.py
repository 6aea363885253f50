"""What is known of each event of a block: columns of numbers, one after the other in one buffer.

8 bytes of each of `LONGS` | where in the block's bytes one event ends and the next begins, 4 each and 4 more
| 1 byte of each of `SHORTS` | the GTID
One buffer is one allocation however small the block, and goes to a file as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.state import GTID_BYTES

LONGS = ("position", "span", "timestamp", "server_id", "table_id", "transaction", "ordinal", "commit_us")
SHORTS = ("kind", "entry", "boundary", "checksum")
_BOUND_BYTES = 4
_BOUNDS_AT = 8 * len(LONGS)
_GTIDS_AT = _BOUNDS_AT + _BOUND_BYTES + len(SHORTS)
EVENT_INDEX_BYTES = _GTIDS_AT + GTID_BYTES

# Bytes of each cell before the column, bytes that no cell has, type.
_LAYOUT: dict[str, tuple[int, int, Any]] = {name: (8 * i, 0, np.dtype(np.int64)) for i, name in enumerate(LONGS)} | {
    name: (_BOUNDS_AT + _BOUND_BYTES + i, _BOUND_BYTES, np.dtype(np.uint8)) for i, name in enumerate(SHORTS)
}
_BOUND = np.dtype(np.int32)
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class EventColumns:
    """The index of a block's events: columns of numbers in one buffer, of which this is the range first …
    first+count-1."""

    raw: NDArray[np.uint8]
    room: int
    first: int
    count: int
    # What was found out of all events of the buffer, for all ranges of it: by whom, and the result.
    shared: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, NDArray[Any]], bounds: NDArray[Any], gtids: NDArray[np.uint8]
    ) -> "EventColumns":
        """Return an index with a copy of these columns; `bounds` has one number more than they."""
        count = bounds.size - 1
        index = cls.from_buffer(np.empty(cls.buffer_size(count), np.uint8))
        for name in _LAYOUT:
            index.column(name)[:] = columns[name]
        index.bounds[:] = bounds
        index.gtids[:] = gtids
        index.raw.flags.writeable = False
        return index

    @classmethod
    def from_buffer(cls, raw: NDArray[np.uint8]) -> "EventColumns":
        """Return an index that uses a whole buffer as its memory, without copying it."""
        count = (raw.size - _BOUND_BYTES) // EVENT_INDEX_BYTES
        return cls(raw, count, 0, count)

    @staticmethod
    def buffer_size(count: int) -> int:
        """Return the size in bytes of a buffer for `count` events."""
        return EVENT_INDEX_BYTES * count + _BOUND_BYTES

    def column(self, name: str) -> NDArray[Any]:
        """Return one value per event, such as `position`, `kind` or `timestamp`: the column of that name, as a view."""
        before, extra, dtype = _LAYOUT[name]
        return np.frombuffer(self.raw, dtype, self.count, before * self.room + extra + dtype.itemsize * self.first)

    @property
    def bounds(self) -> NDArray[np.int32]:
        """Return where each event begins in the block's data, and where the last one ends, as a view."""
        return np.frombuffer(self.raw, _BOUND, self.count + 1, _BOUNDS_AT * self.room + _BOUND_BYTES * self.first)

    @property
    def gtids(self) -> NDArray[np.uint8]:
        """Return GTID_BYTES bytes per event, one line each."""
        at = _GTIDS_AT * self.room + _BOUND_BYTES + GTID_BYTES * self.first
        return np.frombuffer(self.raw, _BYTE, GTID_BYTES * self.count, at).reshape(-1, GTID_BYTES)

    def slice(self, first: int, stop: int) -> "EventColumns":
        """Return the index of the events first … stop-1, without copying."""
        return EventColumns(self.raw, self.room, self.first + first, stop - first, self.shared)

    def with_preceding(self, stop: int) -> "EventColumns":
        """Return the index of all events in the buffer from its first one up to the event `stop` of this range."""
        return EventColumns(self.raw, self.room, 0, self.first + stop, self.shared)

    def to_buffer(self) -> NDArray[np.uint8]:
        """Return a buffer of this index alone, with bounds from 0: the buffer itself, where it holds nothing else."""
        bounds = self.bounds
        if self.count == self.room and not bounds[0]:
            return self.raw
        return EventColumns.from_columns(
            {name: self.column(name) for name in _LAYOUT}, bounds - bounds[0], self.gtids
        ).raw
