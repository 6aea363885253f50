"""`_seq`: one non-negative 63-bit integer that orders all row changes of an instance.

    bits  62 … 54   53 … 34           33 … 0
          epoch     log file number   offset of the row image in the file

Reading the same log again gives the same numbers. The epoch rises when the source changes identity or its log
restarts, and never falls.
"""

from dataclasses import dataclass

from penstock.model.position import Position

FILE_SHIFT = 34
EPOCH_SHIFT = 54
MAX_EPOCH = (1 << 9) - 1
MAX_FILE = (1 << 20) - 1
MAX_OFFSET = (1 << 34) - 1  # 16 GiB: a file outgrows the usual 1 GiB by one large transaction


@dataclass(frozen=True, slots=True)
class Sequence:
    """A `_seq` value in its parts: epoch, number of the log file, offset in it.

    Sequence.from_int(row["_seq"]).file_number
    """

    epoch: int
    file_number: int
    offset: int

    def __post_init__(self) -> None:
        if not (0 <= self.epoch <= MAX_EPOCH and 0 <= self.file_number <= MAX_FILE and 0 <= self.offset <= MAX_OFFSET):
            raise OverflowError(f"{self} does not fit in 63 bits (9 for the epoch, 20 for the file, 34 for the offset)")

    def __int__(self) -> int:
        return self.epoch << EPOCH_SHIFT | self.file_number << FILE_SHIFT | self.offset

    @classmethod
    def from_int(cls, value: int) -> "Sequence":
        """Return the parts of a `_seq` value."""
        return cls(value >> EPOCH_SHIFT, value >> FILE_SHIFT & MAX_FILE, value & MAX_OFFSET)

    @classmethod
    def from_position(cls, position: Position) -> "Sequence":
        """Return the `_seq` of a position."""
        return cls(position.epoch, position.file_number, position.offset)
