"""A consistent read that knows which positions of the log it lies between.

`START TRANSACTION WITH CONSISTENT SNAPSHOT` opens a read view: every later SELECT of the transaction sees one moment of
the database, without a lock. Which moment, MariaDB tells exactly (`Binlog_snapshot_position`), unless an XA COMMIT was
started meanwhile, which its position counts before its rows can be seen. Elsewhere it is bounded: the view is opened
when all that was in the log a moment ago is visible, so it has all of that; and it has nothing that was not in the log
when it was open.
"""

import time
from dataclasses import dataclass
from typing import Any

from penstock.config import SourceSettings
from penstock.model import Position
from penstock.source.connection import translate_errors
from penstock.source.preflight import current_position
from penstock.source.snapshot_position import Rows, SnapshotPosition
from penstock.source.visibility import LogVisibility
from penstock.source.xa_commits import XaCommits

_VISIBILITY_TIMEOUT_S = 600.0
_TRIES, _PAUSE_S = 20, 0.005


@dataclass(frozen=True, slots=True)
class Watermark:
    """The positions that a consistent read lies between: it sees all before `low`, and nothing behind `high`."""

    low: Position
    high: Position

    @property
    def is_exact(self) -> bool:
        """Return whether the read is that of one known position."""
        return self.low == self.high


class ConsistentRead:
    """Opens consistent reads on one connection, which is in autocommit mode.

    reading = ConsistentRead(connection, settings)
    watermark = reading.open()  # SELECTs on the connection see the database as it was at the watermark
    reading.close()
    """

    def __init__(self, connection: Any, settings: SourceSettings) -> None:
        self._connection, self._settings = connection, settings
        self._visibility = LogVisibility(self.query, address=settings.address)
        self._snapshot = SnapshotPosition(self.query)
        self._xa_commits = XaCommits(self.query)
        self._is_beside_xa = False  # an XA COMMIT was started while the last view was opened
        ((version, has_log),) = self.query("SELECT VERSION(), @@GLOBAL.log_bin")
        self._is_mariadb = "mariadb" in str(version).lower()
        self._has_log = bool(int(has_log))

    def open(self) -> Watermark | None:
        """Open a read view, and return its watermark; None when the server writes no log."""
        if not self._has_log:
            self._start()
            return None
        watermark = self._open()
        for _ in range(_TRIES if self._is_mariadb else 0):
            if watermark.is_exact or self._is_beside_xa:
                break
            self.close()  # a position that says nothing does so until the next commit
            time.sleep(_PAUSE_S)
            watermark = self._open()
        return watermark

    def open_current(self) -> None:
        """Open a read view that sees all that is in the log now. Where in the log it lies is not asked: that takes five
        statements more, and where MariaDB cannot tell it exactly, up to twenty views."""
        if self._has_log:
            self._visibility.wait(_VISIBILITY_TIMEOUT_S)
        self._start()

    def _open(self) -> Watermark:
        """Open a read view when all that is in the log is visible, and return its watermark."""
        low = self._log_end()
        xa_commits = self._xa_commits.count_started() if self._is_mariadb else 0
        self._visibility.wait(_VISIBILITY_TIMEOUT_S)
        self._start()
        exact = self._snapshot.read_exact() if self._is_mariadb else None
        high = self._log_end()
        self._is_beside_xa = self._is_mariadb and self._xa_commits.count_started() != xa_commits
        if exact is not None and low <= exact <= high and not self._is_beside_xa:
            return Watermark(exact, exact)
        return Watermark(low, high)

    def _start(self) -> None:
        """Open the read view; at a lower level of isolation there would be none."""
        self.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def close(self) -> None:
        """Close the read view."""
        self.query("ROLLBACK")

    def _log_end(self) -> Position:
        """Return where the log ends now, without GTIDs on MariaDB, which takes three statements to tell them."""
        if self._is_mariadb:
            return self._snapshot.log_end()
        return current_position(self._connection, self._settings)

    def query(self, sql: str, *arguments: object) -> Rows:
        """Run one statement on the connection, and return its rows."""
        with translate_errors(self._settings), self._connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return cursor.fetchall()
