"""Asks a server whether it has executed what a batch of changes needs, before rows are read from it.

Capture may follow another server than the one that is read: after a failover, its log is that of the new primary, while
the old one may live on at the address that a reader knows. Rows of the old one would be older than the changes.

| server               | is asked                                                                              |
| -------------------- | ------------------------------------------------------------------------------------- |
| MySQL with GTIDs     | are the transactions in `gtid_executed`?                                              |
| MariaDB              | are they in `gtid_binlog_state`, by domain and server, or in what it has replicated?  |
| MySQL without GTIDs  | is it the server that has written the log, and does its file reach to the position?   |

MySQL counts a transaction as executed a moment after it is in the log; so if one is missing, what is in the log is
waited for, and it is asked again.
"""

from collections.abc import Callable
from typing import Any

from penstock.errors import SourceBehindError
from penstock.model.log_requirement import LogRequirement, is_mariadb_list, mariadb_numbers
from penstock.source.snapshot_position import Rows
from penstock.source.visibility import LogVisibility

_VISIBILITY_TIMEOUT_S = 600.0


class LogReach:
    """Tells on one connection whether a server has executed what is needed; what it had once, it has.

    reach = LogReach(run, address="db1:3306")
    reach.require(LogRequirement.of_changes(gtids, end, log))  # SourceBehindError when it does not have it
    """

    def __init__(self, query: Callable[..., Rows], *, address: str) -> None:
        """Ask by `query`, which runs one statement with its arguments on a connection in autocommit mode."""
        self._query, self._address = query, address
        self._visibility = LogVisibility(query, address=address)
        self._reached: LogRequirement | None = None

    def require(self, needed: LogRequirement) -> None:
        """Return when the server has executed what is needed; raise SourceBehindError when it has not."""
        if needed == self._reached:
            return
        if missing := self._find_missing(needed):
            self._visibility.wait(_VISIBILITY_TIMEOUT_S)
            missing = self._find_missing(needed)
        if missing:
            raise SourceBehindError(
                f"{self._address} does not have {missing}, which the captured changes have: rows from there would be"
                " older than these. If the capture server follows another database now, start sync with the address of"
                " that one; else this waits until it has them"
            )
        self._reached = needed

    def _find_missing(self, needed: LogRequirement) -> str:
        """Return what of the needed transactions the server does not have, in words; nothing when it has all."""
        missing = self._find_missing_gtids(needed.gtids) if needed.gtids else ""
        return missing or self._find_missing_position(needed)

    def _find_missing_gtids(self, gtids: str) -> str:
        if is_mariadb_list(gtids):
            return self._find_missing_of_mariadb(gtids)
        ((missing,),) = self._query("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", gtids)
        return f"the transactions {_shorten(_text(missing))}" if missing else ""

    def _find_missing_of_mariadb(self, gtids: str) -> str:
        """Return the GTIDs that are neither in the log of a MariaDB server nor among what it has replicated. By the
        number alone an old primary that is still written to would seem to have what the new one has."""
        ((logged, replicated),) = self._query("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos")
        own, below = mariadb_numbers(_text(logged)), dict[int, int]()
        for (domain, _), number in mariadb_numbers(_text(replicated)).items():
            below[domain] = max(number, below.get(domain, -1))
        missing = [
            f"{domain}-{server}-{number}"
            for (domain, server), number in mariadb_numbers(gtids).items()
            if own.get((domain, server), -1) < number and below.get(domain, -1) < number
        ]
        return f"the transactions {_shorten(','.join(missing))}" if missing else ""

    def _find_missing_position(self, needed: LogRequirement) -> str:
        """Return which position of which log the server does not have. A file that it does not have was purged, or its
        log was reset: nothing can be said of that."""
        end = needed.end
        if end is None or needed.server_id is None:
            return ""
        ((server_id,),) = self._query("SELECT @@GLOBAL.server_id")
        if int(server_id) != needed.server_id:
            return (
                f"the log of the server with the id {needed.server_id} (its own is {server_id}, and without GTIDs"
                " nobody can compare the two)"
            )
        sizes = {str(file): int(size) for file, size, *_ in self._query("SHOW BINARY LOGS")}
        if sizes.get(end.file, end.offset) < end.offset:
            return f"the position {end.file}:{end.offset} in its log"
        return ""


def _text(value: Any) -> str:
    """Return a value of a system variable as text."""
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _shorten(text: str) -> str:
    """Return a list of GTIDs that fits a line."""
    return text if len(text) < 200 else f"{text[:200]}…"
