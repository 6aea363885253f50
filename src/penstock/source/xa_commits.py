"""XA COMMIT statements of MariaDB that are running.

An XA COMMIT is in the log, and is counted by the positions of consistent snapshots, a moment before others can see its
rows. Other commits become visible in the order of the log, together with the position; these do not. So the position of
a snapshot says nothing of an XA COMMIT that was running when the snapshot was taken.

The server shows statements of other accounts to an account with PROCESS only.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

Rows = Sequence[tuple[Any, ...]]

_STARTED = "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'"
# One that waits for a lock has not written to the log yet.
_RUNNING = (
    "SELECT id, query_id FROM information_schema.processlist"
    " WHERE info RLIKE '^[[:space:]]*(/[*].*[*]/[[:space:]]*)?XA[[:space:]]+COMMIT'"
    " AND COALESCE(state, '') NOT LIKE 'Waiting for %lock'"
)


class XaCommits:
    """Asks a MariaDB server for XA COMMIT statements; `query` runs one statement and returns its rows."""

    def __init__(self, query: Callable[[str], Rows]) -> None:
        self._query = query

    def count_started(self) -> int:
        """Return how many were started since the server runs."""
        ((_, count),) = self._query(_STARTED)
        return int(count)

    def find_running(self) -> frozenset[Hashable]:
        """Return what identifies those that are running; the server is only asked if there was ever one."""
        return frozenset(self._query(_RUNNING)) if self.count_started() else frozenset()
