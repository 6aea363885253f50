"""Where a log is read from: a server, or a folder with its files. An instance asks both the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from penstock.binlog.events.block import Block
from penstock.model import FileMark, GtidSet, Position

FIRST = 4  # byte of a file after its magic


@dataclass(frozen=True, slots=True)
class Seen:
    """What is there, asked before the log is followed: whose it is, which files, and where it ends."""

    server: str  # its uuid; "" where it has none
    sizes: dict[str, int]  # of its log files, in their order
    end: Position
    purged: GtidSet | None  # MySQL: what was in files that are gone

    @property
    def files(self) -> Sequence[str]:
        return list(self.sizes)

    @property
    def oldest(self) -> Position:
        return Position(self.files[0], FIRST, epoch=self.end.epoch)

    def after(self, file: str) -> "Seen":
        """As if the files up to this one, and its end, were gone."""
        number = Position(file, 0).file_number
        later = {name: size for name, size in self.sizes.items() if Position(name, 0).file_number > number}
        return Seen(self.server, later, self.end, None)


class LogStream(Protocol):
    """Iterate to get blocks, and None when nothing new came; `position` may have moved. `stop` is for any thread."""

    waited_s: float  # for bytes to come

    @property
    def is_flowing(self) -> bool: ...

    @property
    def position(self) -> Position: ...

    @property
    def mark(self) -> FileMark | None:
        """Of the file that is read."""
        ...

    @property
    def is_continued(self) -> bool:
        """That file was named by the end of the one before it, or follows it by its number."""
        ...

    @property
    def semi_sync(self) -> bool:
        """Commits at the source wait for `acknowledge`."""
        ...

    @property
    def wants_ack(self) -> bool: ...

    def acknowledge(self, kept: Position) -> None: ...

    def stop(self) -> None: ...

    def __iter__(self) -> Iterator[Block | None]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Origin(Protocol):
    """Any thread may ask."""

    address: str
    takes_gtids: bool  # `by_gtids` of a stream
    is_copied: bool  # somebody brings its files, which may be away for a while
    patience_s: float  # until a log that does not flow yet is left to come by itself

    def check(self, *, is_standby: bool = False) -> None:
        """Raises why its log cannot be captured."""
        ...

    def answers(self, query: str, timeout_s: float) -> None:
        """Raises why it does not."""
        ...

    def kept_s(self) -> float:
        """How long a file of the log is kept; 0 when for ever, or that is not known."""
        ...

    def look(self) -> Seen: ...

    def sizes(self) -> dict[str, int]:
        """Of the log's files, in their order."""
        ...

    def end(self) -> Position:
        """Of the log, now: between two transactions."""
        ...

    def mark_of(self, file: str) -> FileMark:
        """As the file's first event says."""
        ...

    def previous_gtids(self, file: str) -> GtidSet:
        """What was committed before a file was opened, as its first events say."""
        ...

    def now_us(self) -> int:
        """By its own clock: what is later is not in the log."""
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
    ) -> LogStream: ...
