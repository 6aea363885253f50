"""PARTIAL_ROW_DATA (MariaDB 12.3): a rows event too large for one packet, in pieces, one directly after the other.

fragments 4 | number of this one 4, from 1 | flags 1 (1: has a size) | size of the whole 8 | a piece
"""

from penstock.binlog.events.layout import HEADER, LARGEST_EVENT, SIZE_AT, TYPE_AT
from penstock.binlog.events.problem import EventProblemError

_HEAD, _SIZE_BYTES, _HAS_SIZE = 9, 8, 1
_ROWS_KINDS = {*range(23, 26), *range(30, 33), *range(166, 172)}
_LONGEST_CHECKSUM = 4


class Fragments:
    """Collects the fragments of one large event."""

    def __init__(self) -> None:
        self.start = 0  # file offset of the first
        self._whole = bytearray()
        self._number = self._count = 0

    @property
    def is_open(self) -> bool:
        """Return whether fragments of an event were added, and its last one was not yet."""
        return self._number > 0

    def forget(self) -> None:
        """Drop the fragments: a server that stops between two of them does not resume with them."""
        self._whole = bytearray()
        self._number = self._count = 0

    def missing(self) -> EventProblemError:
        """Return the error for an event that came instead of the next fragment."""
        return EventProblemError(
            f"fragment {self._number + 1} of {self._count} of the event at {self.start} belongs here, and is missing"
        )

    def add(self, event: memoryview, position: int) -> bytearray | None:
        """Add a fragment, which comes without its checksum. Return the whole event with the last one, and None
        before."""
        body = event[HEADER:]
        count, number = int.from_bytes(body[:4], "little"), int.from_bytes(body[4:8], "little")
        if len(body) < _HEAD:
            raise EventProblemError("it ends early")
        if number != self._number + 1 or number > count or count != (self._count or count):
            raise EventProblemError(f"it is fragment {number} of {count}, but {self._next()} is next", HEADER)
        if number == 1:
            self.start, self._count = position, count
        first = _HEAD
        if body[_HEAD - 1] & _HAS_SIZE:
            first += _SIZE_BYTES
            self._check_size(int.from_bytes(body[_HEAD:first], "little"))
        self._check_size(len(self._whole) + len(body) - first)
        self._whole += body[first:]
        self._number = number
        if number < count:
            return None
        whole = self._whole
        self.forget()
        size = int.from_bytes(whole[SIZE_AT : SIZE_AT + 4], "little")
        if len(whole) < HEADER or whole[TYPE_AT] not in _ROWS_KINDS or not 0 <= size - len(whole) <= _LONGEST_CHECKSUM:
            raise EventProblemError("its fragments make no rows event")
        whole[SIZE_AT : SIZE_AT + 4] = len(whole).to_bytes(4, "little")
        return whole

    def _next(self) -> str:
        return f"fragment {self._number + 1}{f' of {self._count}' if self._count else ''}"

    def _check_size(self, size: int) -> None:
        if size > LARGEST_EVENT:
            raise EventProblemError(f"its event has {size} bytes, more than the {LARGEST_EVENT} that are read", HEADER)
