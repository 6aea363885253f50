"""Reads a part of a source's log: over a replication connection, or from a folder of its files."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.commit_time import has_commit_since
from penstock.binlog.events.file_log import Warn
from penstock.binlog.events.layout import MAGIC, EventType
from penstock.errors import BinlogError, PositionLostError
from penstock.model import GtidSet, Position
from penstock.model.start_point import LogPoint, Moment
from penstock.source.binlog_source import BinlogSource

_NEVER = 1 << 40
_LAST_OFFSET = 0xFFFFFFFF  # that the protocol can ask for
# Before these no transaction is under way. Not before a QUERY: it may be the BEGIN after a GTID, or a SAVEPOINT.
_FIRST_EVENTS = [
    EventType.GTID,
    EventType.ANONYMOUS_GTID,
    EventType.GTID_TAGGED,
    EventType.MARIADB_GTID,
    EventType.PREVIOUS_GTIDS,
    EventType.MARIADB_GTID_LIST,
    EventType.MARIADB_BINLOG_CHECKPOINT,
    EventType.STOP,
]  # fmt: skip


class ServerLog:
    """Yields the blocks of a log from a position to its present end, or without end. It begins at a transaction
    boundary, at the position or before it.

        for block in ServerLog(ServerSource(settings), Position("binlog.000007", 4), print, follow=False):
            ...
    """

    def __init__(
        self, server: BinlogSource, since: LogPoint | None, warn: Warn, *, follow: bool, verify: bool = True
    ) -> None:
        self._server = server
        self._warn = warn
        self._follow, self._verify = follow, verify
        self.done = self.total = 0
        self.end = server.end()
        self._sizes = server.sizes()
        self.files = list(self._sizes)
        self.start = self._find_start(since)

    def __iter__(self) -> Iterator[Block]:
        if self.start >= self.end and not self._follow:
            return
        options = {"verify": self._verify, "lenient": True, "annotations": True}
        with self._server.stream(self._clamp_request(self.start), **options) as stream:
            for block in stream:
                if block is not None and (rest := self._cut_before_start(block)):
                    yield rest
                if not self._follow and (block.end if block is not None else stream.position) >= self.end:
                    return

    def earlier(self) -> Iterator[Block]:
        """Yield nothing: a server is asked for its tables instead, and its log may be too long to read for that."""
        return iter(())

    def _clamp_request(self, start: Position) -> Position:
        """Return the position to request: the protocol has 32 bits for an offset, beyond that a file is read from its
        beginning."""
        if start.offset <= _LAST_OFFSET:
            return start
        self._warn(
            f"the server cannot be asked for {start}, which is beyond 4 GiB: its file is read from the start,"
            " and what is before that position is skipped"
        )
        return Position(start.file, len(MAGIC))

    def _cut_before_start(self, block: Block) -> Block | None:
        """Return the events of a block that begin at the start position or later; None when there are none."""
        if block.file != self.start.file or block.start >= self.start:
            return block
        first = int(np.searchsorted(block.column("position"), self.start.offset))
        return block.slice(first, len(block)) if first < len(block) else None

    def _find_start(self, since: LogPoint | None) -> Position:
        """Return where to begin reading: at the beginning of the file that has the position."""
        match since:
            case None:
                return self.end
            case Position():
                return self._check_position(since)
            case Moment():
                if since.us >= self._server.now_us():
                    return self.end
                at = _find_last(len(self.files), lambda i: since.is_after(self._opened_at_s(self.files[i])))
                # A file is opened at the time at which a statement began, while others still committed before it.
                while at and self._file_reaches(self.files[at - 1], since):
                    at -= 1
            case GtidSet() if since.is_single:
                at = _find_last(
                    len(self.files), lambda i: not self._previous_gtids(self.files[i]).includes(_single_gtid_set(since))
                )
            case GtidSet():
                at = _find_last(len(self.files), lambda i: since.includes(self._previous_gtids(self.files[i])))
                if not since.includes(self._previous_gtids(self.files[at])):
                    raise PositionLostError(
                        f"{self._server.address} no longer has all transactions after {since.text}:"
                        f" its oldest file, {self.files[0]}, begins after {self._previous_gtids(self.files[0]).text}"
                    )
        return Position(self.files[at], len(MAGIC))

    def _check_position(self, since: Position) -> Position:
        """Return the position, or raise PositionLostError when the log does not have it."""
        if since > self.end:
            raise PositionLostError(f"{since} is ahead of the log of {self._server.address}, which ends at {self.end}")
        if since.file not in self._sizes:
            raise PositionLostError(
                f"{self._server.address} has no log file {since.file}: it has {self.files[0]} to {self.files[-1]}"
            )
        if since.file != self.end.file and since.offset > self._sizes[since.file]:
            raise PositionLostError(
                f"{since} is after the end of its file on {self._server.address},"
                f" which is at {self._sizes[since.file]}: the next file begins at 4"
            )
        if since.offset > _LAST_OFFSET:
            self._clamp_request(since)
            return Position(since.file, len(MAGIC))
        return since if self._is_between_transactions(since) else Position(since.file, len(MAGIC))

    def _is_between_transactions(self, position: Position) -> bool:
        """Return whether a position is a transaction boundary. Inside a transaction, rows lack the table map and the
        GTID that came before them. Where no event begins, the server may refuse, or send garbage."""
        try:
            first = self._read_first_block(position)
        except (BinlogError, PositionLostError):
            return False
        return first is None or first.column("kind")[0] in _FIRST_EVENTS

    def _opened_at_s(self, file: str) -> int:
        """Return the time of a file's first event; the newest file may have none."""
        block = self._read_first_block(Position(file, len(MAGIC)))
        return _NEVER if block is None else int(block.column("timestamp")[0])

    def _file_reaches(self, file: str, since: Moment) -> bool:
        """Return whether a file has a transaction of this time or later."""
        with self._server.stream(Position(file, len(MAGIC)), verify=self._verify, lenient=True) as stream:
            for block in stream:
                if block is not None and block.file == file and has_commit_since(block, since):
                    return True
                if (block.file if block is not None else stream.position.file) != file:
                    return False
        return False

    def _read_first_block(self, position: Position) -> Block | None:
        """Return the first block from a position on; None when the log ends before it."""
        with self._server.stream(position, verify=self._verify, lenient=True) as stream:
            for block in stream:
                if block is not None or stream.position >= self.end:
                    return block
        return None

    def _previous_gtids(self, file: str) -> GtidSet:
        """Return the GTIDs that were committed before a file was opened."""
        return self._server.previous_gtids(file)


def _single_gtid_set(gtid: GtidSet) -> GtidSet:
    """Return the set of one GTID alone: in MariaDB's sets a GTID includes all before it."""
    if not gtid.is_mariadb:
        return gtid
    return replace(gtid, ranges={domain: ((last, last),) for domain, ((_, last),) in gtid.ranges.items()})


def _find_last(count: int, holds: Callable[[int], bool]) -> int:
    """Return the last index for which `holds` is true, when it is true up to some index and false after it; 0 when
    nowhere."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
