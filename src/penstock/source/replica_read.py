"""Consistent reads of a replica that are not older than the log of its primary.

A change is captured from the primary. Before a document is read from a replica, the replica must have executed
everything that is in the primary's log at that moment: the primary says its GTIDs, and the replica waits for them.
Both servers say that a GTID is executed after its rows are visible. MySQL says so on the primary too, where a
transaction is in the log before that: so it is waited for there first.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.config import SourceSettings
from penstock.errors import ConfigurationError, SourceBehindError
from penstock.model import GtidSet, Position
from penstock.source.connection import translate_errors
from penstock.source.consistent_read import Watermark
from penstock.source.preflight import current_position
from penstock.source.snapshot_position import Rows
from penstock.source.visibility import LogVisibility

_WAIT_S = 60.0
_ONE_WAIT_S = 5


class ReplicaRead:
    """Opens consistent reads on a connection to a replica; another connection asks its primary.

    reading = ReplicaRead(replica_connection, replica, primary_connection, primary)
    reading.open()  # SELECTs on the replica's connection see all that was in the primary's log
    reading.close()
    """

    def __init__(
        self,
        connection: Any,
        settings: SourceSettings,
        primary_connection: Any,
        primary: SourceSettings,
        *,
        timeout_s: float = _WAIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection, self._settings = connection, settings
        self._primary_connection, self._primary = primary_connection, primary
        self._timeout_s, self._clock = timeout_s, clock
        self._visibility = LogVisibility(self.ask_primary, address=primary.address)
        ((version,),) = self.ask_primary("SELECT VERSION()")
        self._is_mariadb = "mariadb" in str(version).lower()

    def open(self) -> None:
        """Open a read view of the replica when it has executed all that is in the primary's log."""
        gtids = self._read_logged_gtids()
        if gtids.ranges:
            self._wait(gtids)
        self._query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def open_between(self) -> Watermark:
        """Open a read view as `open` does, and return the positions of the primary's log that it lies between: the
        replica has executed all before the first, and received nothing behind the second."""
        low = self._find_log_end()
        self.open()
        return Watermark(low, self._find_log_end())

    def close(self) -> None:
        """Close the read view."""
        self._query("ROLLBACK")

    def _read_logged_gtids(self) -> GtidSet:
        """Return the GTIDs of all transactions that are in the primary's log."""
        if self._is_mariadb:
            ((gtids,),) = self.ask_primary("SELECT @@GLOBAL.gtid_binlog_pos")
            return replace(GtidSet.parse(str(gtids or "")), is_mariadb=True)
        ((mode,),) = self.ask_primary("SELECT @@GLOBAL.gtid_mode")
        if str(mode).upper() != "ON":
            raise ConfigurationError(
                f"{self._primary.address} has no GTIDs, by which its replica {self._settings.address} could be waited"
                " for: switch on gtid_mode, or read from the primary"
            )
        self._visibility.wait(self._timeout_s)
        ((gtids,),) = self.ask_primary("SELECT @@GLOBAL.gtid_executed")
        return GtidSet.parse(str(gtids or ""))

    def _wait(self, gtids: GtidSet) -> None:
        """Wait until the replica has executed a set of GTIDs; raise SourceBehindError at the deadline."""
        function = "MASTER_GTID_WAIT" if gtids.is_mariadb else "WAIT_FOR_EXECUTED_GTID_SET"
        deadline = self._clock() + self._timeout_s
        # In short waits: a connection that broke is noticed between them.
        while (left_s := deadline - self._clock()) > 0:
            ((result,),) = self._query(f"SELECT {function}(%s, %s)", gtids.text, min(left_s, _ONE_WAIT_S))
            if result == 0:
                return
        raise SourceBehindError(
            f"{self._settings.address} does not have all of {gtids.text} after {self._timeout_s:.0f} s: is it a replica"
            f" of {self._primary.address}, and does it replicate?"
        )

    def _find_log_end(self) -> Position:
        """Return where the primary's log ends now."""
        return current_position(self._primary_connection, self._primary)

    def ask_primary(self, sql: str, *arguments: object) -> Rows:
        """Run one statement on the primary, and return its rows."""
        with translate_errors(self._primary), self._primary_connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return cursor.fetchall()

    def _query(self, sql: str, *arguments: object) -> Rows:
        """Run one statement on the replica, and return its rows."""
        with translate_errors(self._settings), self._connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return cursor.fetchall()
