"""Waits until reads see what the log says: a transaction is in the log a moment before other sessions can see its rows.

The server writes a transaction to the log and commits it in the storage engine afterwards; with semi-synchronous
replication the gap lasts until a replica has answered. A row that is read back in the gap is older than the change that
named it. `LogVisibility.wait` returns when the gap is over for everything that is in the log when it is called. It
takes no lock and waits for no lock: a transaction that is open, or prepared with XA, does not delay it. (On a replica
with GTIDs, a transaction is owned from when it begins to be applied: there it waits for the end of that one.)

| server                 | what is asked                                                                             |
| ---------------------- | ----------------------------------------------------------------------------------------- |
| MariaDB                | a consistent snapshot knows its own log position: has one reached the log's end? It says   |
|                        | nothing of XA COMMIT: have those of now ended? (only with PROCESS)                         |
| MySQL with GTIDs       | a GTID is owned from before it is logged until it is committed: are those of now released? |
| MySQL without GTIDs    | a commit is part of a statement: have the statements of now that may commit ended?         |
"""

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import Any

from penstock.errors import AuthenticationError, ConfigurationError, SourceConnectionError
from penstock.source.snapshot_position import SnapshotPosition
from penstock.source.xa_commits import XaCommits

log = logging.getLogger(__name__)

Rows = Sequence[tuple[Any, ...]]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05
_TOLD_AFTER_S = 5.0

_STATEMENTS = (
    "SELECT statement.THREAD_ID, statement.EVENT_ID, thread.PROCESSLIST_STATE,"
    " thread.PROCESSLIST_ID = CONNECTION_ID()"
    " FROM performance_schema.events_statements_current AS statement"
    " JOIN performance_schema.threads AS thread USING (THREAD_ID)"
    " WHERE statement.END_EVENT_ID IS NULL"
    " AND thread.PROCESSLIST_COMMAND NOT IN ('Binlog Dump', 'Binlog Dump GTID')"  # they send the log, and never end
)
# A statement in one of these states changes rows, waits for a lock or reads: it has not begun to commit. Statements
# that wait for the locks of a prepared transaction are among them.
_BEFORE_COMMIT = frozenset(
    {
        "altering table",
        "copy to tmp table",
        "Copying to tmp table",
        "Copying to tmp table on disk",
        "Creating sort index",
        "Creating tmp table",
        "deleting from main table",
        "deleting from reference tables",
        "executing",
        "Opening tables",
        "optimizing",
        "preparing",
        "Searching rows for update",
        "Sending data",
        "Sending to client",
        "Sorting for group",
        "Sorting for order",
        "Sorting result",
        "statistics",
        "update",
        "updating",
        "updating reference tables",
        "User lock",
        "User sleep",
        "Waiting for commit lock",  # taken before the log is written
        "Waiting for global read lock",
        "Waiting for table flush",
        "Waiting for table level lock",
        "Waiting for table metadata lock",
        "Writing to net",
    }
)


class LogVisibility:
    """Waits until reads of a server see everything that is in its log.

    `query` runs one statement on an open connection in autocommit mode, and returns its rows:

        LogVisibility(run).wait(60.0)
        run("SELECT …")  # not older than the log was before `wait`
    """

    def __init__(
        self,
        query: Callable[[str], Rows],
        *,
        address: str = "the server",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._query = query
        self._address = address
        self._clock = clock
        self._sleep = sleep
        self._is_mariadb: bool | None = None
        self._snapshot = SnapshotPosition(query, clock=clock)  # of MariaDB
        self._xa_commits = XaCommits(query, partial(_warn_of_privilege, address))  # of MariaDB

    def wait(self, timeout_s: float) -> None:
        """Return when reads that begin now see all that was in the log at the call."""
        deadline = self._clock() + timeout_s
        if self._is_mariadb is None:
            ((version,),) = self._query("SELECT VERSION()")
            self._is_mariadb = "mariadb" in str(version).lower()
        if self._is_mariadb:
            end = self._snapshot.log_end()
            committing = self._xa_commits.find_running()
            self._wait_for(lambda: self._snapshot.has_reached(end), deadline)
            if committing:
                self._wait_for(lambda: committing.isdisjoint(self._xa_commits.find_running()), deadline)
        else:
            committing = self._find_committing()
            if committing:
                self._wait_for(lambda: committing.isdisjoint(self._find_committing()), deadline)

    def _wait_for(self, is_reached: Callable[[], bool], deadline: float) -> None:
        """Wait with growing pauses until a condition holds; raise SourceConnectionError at the deadline."""
        began, pause_s, is_told = self._clock(), _FIRST_PAUSE_S, False
        while not is_reached():
            if self._clock() > deadline:
                raise SourceConnectionError(
                    f"transactions that are in the log of {self._address} are still not committed: is it waiting for a"
                    " semi-synchronous replica, or is its disk full?"
                )
            if not is_told and self._clock() - began > _TOLD_AFTER_S:
                log.warning(
                    "read waits for transactions that are in the binlog and not yet visible in the tables source=%s"
                    " waited_s=%.0f",
                    *(self._address, self._clock() - began),
                )
                is_told = True
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _find_committing(self) -> frozenset[Hashable]:
        """Return what identifies every transaction of MySQL that is, or may be, in the log and not committed."""
        ((gtid_mode, owned),) = self._query("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_owned")
        return parse_owned_gtids(str(owned)) if gtid_mode == "ON" else self._find_committing_statements()

    def _find_committing_statements(self) -> frozenset[Hashable]:
        """Return the running statements that may be committing, from performance_schema, for a server without GTIDs."""
        remedy = "switch on gtid_mode, or give the account SELECT on performance_schema and switch that on"
        try:
            statements = self._query(_STATEMENTS)
        except AuthenticationError as error:
            raise AuthenticationError(f"{error}; to know when reads see what the log says, {remedy}") from error
        if not any(is_own for *_, is_own in statements):  # our own statement runs, so it must be there
            raise ConfigurationError(
                f"without GTIDs, performance_schema must show running statements, and it does not: {remedy}"
                " (performance_schema = ON, and events_statements_current in setup_consumers)"
            )
        return frozenset(
            (thread, statement)
            for thread, statement, state, is_own in statements
            if not is_own and state not in _BEFORE_COMMIT
        )


@cache  # once for each server
def _warn_of_privilege(address: str, remedy: str) -> None:
    """Warn that reads cannot wait for what the server does not show."""
    log.warning(
        "reads may miss rows of an XA transaction that is being committed source=%s reason=the user of the source may"
        " not see XA COMMIT statements of others: %s",
        *(address, remedy),
    )


def parse_owned_gtids(text: str) -> frozenset[Hashable]:
    """Parse `@@GLOBAL.gtid_owned`, such as `UUID:4#17:5#18,\\nUUID:tag:6#19`, into one value per GTID and owner."""
    gtids: set[Hashable] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        uuid, *rest = part.split(":")
        tag = ""
        for item in rest:
            if "#" in item:
                gtids.add((uuid, tag, item))
            else:
                tag = item
    return frozenset(gtids)
