"""XA COMMIT statements of MariaDB that are running.

An XA COMMIT is in the log, and is counted by the positions of consistent snapshots, a moment before others can see its
rows. Other commits become visible in the order of the log, together with the position; these do not. So the position of
a snapshot says nothing of an XA COMMIT that was running when the snapshot was taken.

The server shows statements of other accounts to an account with PROCESS only: without it, reads do not wait for theirs.
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
    """Asks a MariaDB server for XA COMMIT statements; `query` runs one statement and returns its rows. Where there were
    any and the account cannot see those of others, `on_unseen` is called with the GRANT that it needs."""

    def __init__(self, query: Callable[[str], Rows], on_unseen: Callable[[str], None] = lambda _: None) -> None:
        self._query, self._on_unseen = query, on_unseen
        self._is_privilege_checked = False

    def count_started(self) -> int:
        """Return how many were started since the server runs."""
        ((_, count),) = self._query(_STARTED)
        return int(count)

    def find_running(self) -> frozenset[Hashable]:
        """Return what identifies those that are running; the server is only asked if there was ever one."""
        if not self.count_started():
            return frozenset()
        if not self._is_privilege_checked:
            self._is_privilege_checked = True
            if remedy := find_missing_privilege(self._query):
                self._on_unseen(remedy)
        return frozenset(self._query(_RUNNING))


def find_missing_privilege(query: Callable[[str], Rows]) -> str:
    """Return the GRANT without which the server does not show statements of other accounts; empty when the account has
    it."""
    grants = [str(grant).upper().partition(" ON *.* ") for (grant,) in query("SHOW GRANTS")]
    privileges = [privileges.removeprefix("GRANT ") for privileges, is_global, _ in grants if is_global]
    if any(name.strip() in {"PROCESS", "ALL PRIVILEGES"} for names in privileges for name in names.split(",")):
        return ""
    ((account,),) = query("SELECT CURRENT_USER()")
    user, _, host = str(account).rpartition("@")
    return f"GRANT PROCESS ON *.* TO '{user}'@'{host}'"
