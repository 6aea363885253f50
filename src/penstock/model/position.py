"""A position in a source's log.

Positions are ordered by epoch, file number and offset. The epoch rises when the log is reset or replaced by that of
another server. File names are compared by their number, never as text: `binlog.1000000` comes after `binlog.999999`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from penstock.errors import ConfigurationError
from penstock.model.gtid_set import GtidSet

_MAX_DIGITS = 19  # of 63 bits


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """The end of everything before `offset` in `file`: reading from here gives the next event.

    position = Position.parse("binlog.000007:4")
    position < Position("binlog.000007", 1234)  # True
    """

    file: str
    offset: int
    timestamp: int = 0  # seconds, of the event that ends here; 0 when unknown
    epoch: int = 0
    gtids: GtidSet | None = None  # of all transactions before it; None when that is not known, or they have none
    transaction: int | None = None  # where the transaction begins that this position is inside of; None between two

    @property
    def file_number(self) -> int:
        """Return the number at the end of the file's name."""
        return file_number(self.file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._key == other._key

    def __lt__(self, other: "Position") -> bool:
        return self._key < other._key

    def __le__(self, other: "Position") -> bool:
        return self._key <= other._key

    def __gt__(self, other: "Position") -> bool:
        return self._key > other._key

    def __ge__(self, other: "Position") -> bool:
        return self._key >= other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int, int]:
        """Return the key by which positions are ordered: epoch, number of the file, offset."""
        return self.epoch, file_number(self.file), self.offset

    @property
    def boundary(self) -> "Position":
        """Return the position itself between two transactions; inside of one, where that begins."""
        return self if self.transaction is None else replace(self, offset=self.transaction, transaction=None)

    @property
    def file_key(self) -> tuple[int, int]:
        """Return the key that orders log files: the epoch and the number of the file."""
        return self.epoch, self.file_number

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}" + (f" (epoch {self.epoch})" if self.epoch else "")

    def to_json(self) -> dict[str, Any]:
        """Return what identifies the position, and its GTIDs, by which it is found in another server's log. Keys are in
        a fixed order: Spark compares offsets as text."""
        fields: dict[str, Any] = {"epoch": self.epoch, "file": self.file, "offset": self.offset}
        if self.gtids is not None and self.gtids.ranges:
            fields["gtids"] = self.gtids.text
        if self.transaction is not None:
            fields["transaction"] = self.transaction
        return fields

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Position":
        """Return the position that `to_json` returned as plain data."""
        gtids = GtidSet.parse(str(value["gtids"])) if value.get("gtids") else None
        inside = value.get("transaction")
        return cls(
            str(value["file"]),
            int(value["offset"]),
            epoch=int(value.get("epoch", 0)),
            gtids=gtids,
            transaction=None if inside is None else int(inside),
        )

    @classmethod
    def parse(cls, text: str, epoch: int = 0) -> "Position":
        """Parse `FILE:OFFSET`, as people type it."""
        file, _, offset = text.rpartition(":")
        if not file or not _is_number(offset):
            raise ConfigurationError(
                f"not a log position: {text!r}; write it as FILE:OFFSET, for example binlog.000007:4"
            )
        file_number(file)
        return cls(file, int(offset), epoch=epoch)


@lru_cache(1024)
def file_number(file: str) -> int:
    """Return the number at the end of a log file's name; raise ConfigurationError when it has none."""
    suffix = file.rpartition(".")[2]
    if not _is_number(suffix):
        raise ConfigurationError(f"log file {file!r} has no number at its end, for example binlog.000007")
    return int(suffix)


def ensure_file_number(file: str) -> str:
    """Return a file name that ends in a number: a name without one gets the number of a first file."""
    return file if _is_number(file.rpartition(".")[2]) else f"{file}.0"


def _is_number(text: str) -> bool:
    """Return whether a text is a file number. `isdigit` alone also accepts ², which `int` refuses. Servers count to
    2^31."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
