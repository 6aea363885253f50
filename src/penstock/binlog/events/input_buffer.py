"""The buffer between a transport and the blocks that are cut from its bytes."""

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.layout import HEADER, LARGEST_EVENT, SIZE_AT


class InputBuffer:
    """The buffer into which a transport writes bytes of the binlog: up to `fill` there are bytes, up to `at` their
    events are indexed, up to `run` they were taken for a block. Bytes never move within the buffer: blocks are views of
    it."""

    def __init__(self, data: NDArray[np.uint8], fill: int = 0) -> None:
        self.data = data
        self.fill = fill
        self.at = 0
        self.run = 0  # bytes before it were taken for a block

    @property
    def rest(self) -> int:
        """Return the number of bytes that are not a whole event yet."""
        return self.fill - self.at

    @property
    def event_size(self) -> int:
        """Return the size of the next event, as far as its bytes are there; 0 when it is not known, or is not a
        size."""
        if self.rest < HEADER:
            return 0
        size = int.from_bytes(self.data[self.at + SIZE_AT : self.at + SIZE_AT + 4].tobytes(), "little")
        return size if size <= LARGEST_EVENT else 0

    @property
    def event(self) -> memoryview:
        """Return the next event as a view of its bytes; all of them must be there."""
        return self.data[self.at : self.at + self.event_size].data.toreadonly()

    def take(self, rest: int = 0) -> NDArray[np.uint8]:
        """Return the bytes of indexed events that were not taken yet, except the last `rest` bytes; they count as
        taken."""
        taken = self.data[self.run : self.at - rest]
        self.run = self.at - rest
        return taken

    def move(self, size: int, margin: int = 0) -> None:
        """Move to a new buffer of this size, or of the size of the next event and `margin` bytes after it, if that is
        larger."""
        retained = self.data[self.run : self.fill]
        data = np.empty(max(size, self.at - self.run + self.event_size + margin), np.uint8)
        data[: retained.size] = retained
        self.data, self.fill = data, retained.size
        self.at, self.run = self.at - self.run, 0
