"""What the index says of each event, as a struct of arrays."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.state import GTID_BYTES


@dataclass(slots=True)
class EventArrays:
    """Arrays with one cell per event; the reader knows how many are filled."""

    start: NDArray[np.int64]  # in the block
    size: NDArray[np.int64]
    position: NDArray[np.int64]  # in the file
    span: NDArray[np.int64]  # bytes of the file: the size, but for expanded events
    kind: NDArray[np.uint8]
    entry: NDArray[np.uint8]
    boundary: NDArray[np.uint8]
    checksum: NDArray[np.uint8]  # bytes of it at the end of the event
    timestamp: NDArray[np.int64]
    server_id: NDArray[np.int64]
    table_id: NDArray[np.int64]
    transaction: NDArray[np.int64]
    ordinal: NDArray[np.int64]  # of a rows event among those of its transaction
    commit_us: NDArray[np.int64]
    gtid: NDArray[np.uint8]

    @classmethod
    def allocate(cls, capacity: int) -> "EventArrays":
        """Return empty arrays for this many events."""

        def longs() -> NDArray[np.int64]:
            return np.zeros(capacity, np.int64)

        def bytes_() -> NDArray[np.uint8]:
            return np.zeros(capacity, np.uint8)

        return cls(
            start=longs(),
            size=longs(),
            position=longs(),
            span=longs(),
            kind=bytes_(),
            entry=bytes_(),
            boundary=bytes_(),
            checksum=bytes_(),
            timestamp=longs(),
            server_id=longs(),
            table_id=longs(),
            transaction=longs(),
            ordinal=longs(),
            commit_us=longs(),
            gtid=np.zeros((capacity, GTID_BYTES), np.uint8),
        )

    def bounds(self, first: int, stop: int) -> NDArray[np.int32]:
        """Return where the events begin, and where the last one ends, counted from the first."""
        bounds = np.empty(stop - first + 1, np.int32)
        bounds[:-1] = self.start[first:stop] - self.start[first]
        bounds[-1] = self.start[stop - 1] + self.size[stop - 1] - self.start[first]
        return bounds

    def drop(self, first: int, count: int) -> None:
        """Remove the events before `first`, of `count` events; the others begin the next block."""
        if first == count:
            return
        begin = int(self.start[first])
        for array_field in fields(self):
            values = getattr(self, array_field.name)
            values[: count - first] = values[first:count]
        self.start[: count - first] -= begin
