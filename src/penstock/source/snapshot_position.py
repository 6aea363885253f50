"""Tells whether a consistent snapshot of MariaDB has reached a position in its log.

`START TRANSACTION WITH CONSISTENT SNAPSHOT` knows its own log position (`Binlog_snapshot_file` and `_position`): it is
set by each commit, and the snapshot sees all transactions before it. But three times it is set by something else, and
says nothing until the next commit:

- a rotation sets it to the head of the new file, although the old one may have commits to come;
- a `Binlog_checkpoint` event, which is written between transactions, sets it to its own end, although the transaction
  before it may not be committed; that one sets it back to its own end later;
- a commit that waited for a replica during a rotation sets it to its offset in the old file, but in the new file.

A checkpoint that names its own file is written when all transactions of the files before it are committed: a position
behind one with no transaction before it is exact. A position with nothing but checkpoints behind it has reached what
follows them.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import ProtocolError
from penstock.model import Position

Rows = Sequence[tuple[Any, ...]]

_POSITION = "SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')"
_CHECKPOINT = "Binlog_checkpoint"
_HEAD = {"Format_desc", "Gtid_list", "Start_encryption", _CHECKPOINT}  # what a file begins with
_EVENTS_PER_QUERY = 500
_FIRST = 4
# What is still to be committed is so within microseconds, or waits for a semi-sync replica, which the server tells.
_SETTLE_S = 1.0


class SnapshotPosition:
    """Compares the position of consistent snapshots with positions in the log of a MariaDB server.

    end = Position("binlog.000007", 1234)
    while not SnapshotPosition(run).has_reached(end): ...
    """

    def __init__(self, query: Callable[[str], Rows], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._query = query
        self._clock = clock
        self._checkpoints = _Checkpoints(query, "")
        # A position that says nothing, the log's end it is compared with, and since when both are seen.
        self._doubtful: tuple[Position, Position, float] | None = None

    def has_reached(self, end: Position) -> bool:
        """Return True when snapshots that are taken from now on see every transaction before `end`."""
        position = self._take_snapshot()
        if position < end:
            return self._is_followed_by_checkpoints(position, end)
        if not self._is_doubtful(position, end):
            return True
        if self._doubtful is None or self._doubtful[:2] != (position, end):
            self._doubtful = position, end, self._clock()
        return self._clock() - self._doubtful[2] >= _SETTLE_S and not self._waits_for_replica()

    def read_exact(self) -> Position | None:
        """Return the position of the snapshot that is open on the connection; None when it says nothing exact."""
        position = self._read_position()
        return None if self._is_doubtful(position, position) else position

    def log_end(self) -> Position:
        """Return where the log of the server ends now."""
        (row,) = self._query("SHOW MASTER STATUS")
        return Position(str(row[0]), int(row[1]))

    def _is_doubtful(self, position: Position, end: Position) -> bool:
        """Return True when no commit may have set this position, which is not before `end`."""
        if position > end and position > self.log_end():
            return True
        if self._checkpoints.file != position.file:
            self._checkpoints = _Checkpoints(self._query, position.file)
        return self._checkpoints.is_doubtful(position.offset)

    def _take_snapshot(self) -> Position:
        """Return the position of a consistent snapshot of this moment."""
        # At a lower level of isolation, there would be no snapshot.
        self._query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        try:
            return self._read_position()
        finally:
            self._query("ROLLBACK")

    def _read_position(self) -> Position:
        """Return the position of the open snapshot as the server says it."""
        status = dict(self._query(_POSITION))
        return Position(str(status["Binlog_snapshot_file"]), int(status["Binlog_snapshot_position"]))

    def _is_followed_by_checkpoints(self, position: Position, end: Position) -> bool:
        """Return True when there is nothing but checkpoints from `position` to `end`."""
        while position.file == end.file and position.offset < end.offset:
            try:
                events = self._query(f"SHOW BINLOG EVENTS IN '{position.file}' FROM {position.offset} LIMIT 1")
            except ProtocolError:  # an offset of another file is not the begin of an event
                return False
            if not events or events[0][2] != _CHECKPOINT:
                return False
            position = Position(position.file, int(events[0][4]))
        return position.file == end.file

    def _waits_for_replica(self) -> bool:
        """Return whether commits of the server wait for a semi-synchronous replica."""
        status = self._query("SHOW STATUS WHERE Variable_name = 'Rpl_semi_sync_master_wait_sessions'")
        return any(int(value) for _, value in status)


class _Checkpoints:
    """The checkpoint events of one file, read as far as they are needed. The one that names the file is the last."""

    def __init__(self, query: Callable[[str], Rows], file: str) -> None:
        self.file = file
        self._query = query
        self._next = _FIRST
        self._is_complete = False  # it has named itself
        self._has_transactions = False
        self._head_end = _FIRST  # where the first transaction begins
        self._doubtful: set[int] = set()  # where checkpoints end that have transactions before them

    def is_doubtful(self, offset: int) -> bool:
        """Return True when a snapshot's position may have been set by a checkpoint or by the rotation to this file."""
        while not self._is_complete and self._next < offset:
            try:
                events = self._query(f"SHOW BINLOG EVENTS IN '{self.file}' FROM {self._next} LIMIT {_EVENTS_PER_QUERY}")
            except ProtocolError:  # the server does not show an event that is larger than max_allowed_packet
                self._next = offset  # where one ends
                self._has_transactions = True
                self._doubtful.add(offset)
                return True
            before = self._next
            for _, begin, kind, _, end, info, *_ in events:
                self._next = max(int(begin), int(end))  # the end may be missing, and is of 32 bits
                self._has_transactions |= kind not in _HEAD
                if not self._has_transactions:
                    self._head_end = self._next
                if kind == _CHECKPOINT:
                    if self._has_transactions:
                        self._doubtful.add(self._next)
                    self._is_complete |= str(info) == self.file
            if self._next <= before:
                break
        is_head = offset <= self._head_end
        return offset in self._doubtful or (is_head and not self._is_complete)
