"""Where a log is read from: a server, or a folder with its files. Both answer the same questions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from penstock.binlog.events.block import Block
from penstock.model import FileIdentity, GtidSet, Position

FIRST = 4  # byte of a file after its magic
NO_DESTINATION = "-"  # in log lines of a source that no instance captures


@dataclass(frozen=True, slots=True)
class LogInventory:
    """What a source has now: the identity of the server, its binlog files, and where the binlog ends. It is read before
    capture follows the binlog."""

    server: str  # its uuid; "" where it has none
    sizes: dict[str, int]  # of its log files, in their order
    end: Position
    purged: GtidSet | None  # MySQL: what was in files that are gone

    @property
    def files(self) -> Sequence[str]:
        """Return the names of the log files, in their order."""
        return list(self.sizes)

    @property
    def oldest(self) -> Position:
        """Return the position at which the log begins."""
        return Position(self.files[0], FIRST, epoch=self.end.epoch)

    def bytes_between(self, start: Position, end: Position) -> int:
        """Return how many bytes of the log lie between two positions. Purged files count as empty."""
        return measure_bytes(self.sizes, start, end)

    def without_files_up_to(self, file: str) -> "LogInventory":
        """Return the inventory as if the files up to this one were purged."""
        number = Position(file, 0).file_number
        later = {name: size for name, size in self.sizes.items() if Position(name, 0).file_number > number}
        return LogInventory(self.server, later, self.end, None)


def measure_bytes(sizes: Mapping[str, int], start: Position, end: Position) -> int:
    """Return how many bytes lie between two positions of a log with files of these sizes. Purged files count as
    empty."""
    total = 0
    for file, size in sizes.items():
        number = Position(file, 0).file_number
        if start.file_number <= number <= end.file_number:
            low = start.offset if number == start.file_number else 0
            high = end.offset if number == end.file_number else size
            total += max(0, high - low)
    return total


class LogStream(Protocol):
    """A stream of a source's binlog: yields blocks, and None when no block has come for a while; `position` may have
    moved even then. Any thread may call `stop`."""

    waited_s: float  # for bytes to come

    @property
    def is_flowing(self) -> bool:
        """Return whether the source has found the position and begun to send; before that it may still refuse."""
        ...

    @property
    def position(self) -> Position:
        """Return the position up to which the log was read."""
        ...

    @property
    def file_identity(self) -> FileIdentity | None:
        """Return the identity of the file that is being read."""
        ...

    @property
    def is_continued(self) -> bool:
        """Return whether that file was named by the end of the previous one, or follows it by its number."""
        ...

    @property
    def semi_sync(self) -> bool:
        """Return whether commits at the source wait for `acknowledge`."""
        ...

    @property
    def wants_ack(self) -> bool:
        """Return whether a commit at the source waits for an acknowledgement."""
        ...

    def acknowledge(self, kept: Position) -> None:
        """Confirm to a semi-sync source that everything up to a position is persisted."""
        ...

    def stop(self) -> None:
        """End the stream soon; any thread may call it."""
        ...

    def __iter__(self) -> Iterator[Block | None]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class BinlogSource(Protocol):
    """A server or a folder of its log files. Any thread may call any method."""

    address: str
    destination: str  # of the instance that captures it, for log lines; "-" for none
    takes_gtids: bool  # `by_gtids` of a stream
    is_copied: bool  # somebody brings its files, which may be away for a while
    start_timeout_s: float  # until a log that does not flow yet is left to come by itself

    def check(self, *, is_standby: bool = False) -> None:
        """Raise an error that says why the log cannot be captured."""
        ...

    def check_answers(self, query: str, timeout_s: float) -> None:
        """Raise an error that says why the source does not answer a query in time."""
        ...

    def retention_s(self) -> float:
        """Return how long the source retains a log file; 0 when it never purges, or that is not known."""
        ...

    def inventory(self) -> LogInventory:
        """Return what the source has: its identity, its log files, the end of its log and what was purged."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the log files, in their order."""
        ...

    def end(self) -> Position:
        """Return the position at which the log ends now, a transaction boundary."""
        ...

    def end_for_display(self) -> Position:
        """Return the position at which the log ends now, for people and metrics that ask every second: over a
        connection that is used again. It may lead to the server that was at the source's address before."""
        ...

    def file_identity(self, file: str) -> FileIdentity:
        """Return the identity of a log file, from its first event."""
        ...

    def previous_gtids(self, file: str) -> GtidSet:
        """Return the GTIDs that were committed before a file was opened, from its first events."""
        ...

    def now_us(self) -> int:
        """Return the time by the source's own clock: nothing in the log is later."""
        ...

    def stream(
        self,
        start: Position,
        *,
        verify: bool,
        server_id: int | None = None,
        by_gtids: bool = False,
        semi_sync: bool = False,
        lenient: bool = False,
        annotations: bool = False,
    ) -> LogStream:
        """Return a stream of the log from a position; enter it as a context manager to connect."""
        ...
