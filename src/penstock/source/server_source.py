"""A server as the origin of a log: what is asked of it, by SQL and by the log itself."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from penstock.config import SourceSettings
from penstock.errors import BinlogError, PositionLostError
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source.binlog_source import FIRST, NO_DESTINATION, LogInventory
from penstock.source.checks import read_variables, retention_s
from penstock.source.connection import connect, translate_errors
from penstock.source.connection_pool import ConnectionPool
from penstock.source.preflight import check_source, current_position
from penstock.source.stream import BinlogStream

_MAX_IDLE = 4  # connections: queries that ask at the same moment have one each


class ServerSource:
    """A MySQL or MariaDB server as a source. Each call opens a connection of its own, except `end_for_display`.

    source = ServerSource(SourceSettings(host="db1", user="repl", password="..."))
    """

    takes_gtids, is_copied = True, False

    def __init__(self, settings: SourceSettings, destination: str = NO_DESTINATION) -> None:
        self.destination = destination
        self.address, self.start_timeout_s = settings.address, settings.connect_timeout_s
        self._settings = settings
        self._pool = ConnectionPool(max_idle=_MAX_IDLE)

    def check(self, *, is_standby: bool = False) -> None:
        """Raise ConfigurationError that names every server variable to change before its log can be captured."""
        with closing(connect(self._settings)) as connection:
            check_source(connection, self._settings, is_standby=is_standby)

    def check_answers(self, query: str, timeout_s: float) -> None:
        """Raise an error that says why the server does not answer a query in time."""
        timeout = max(1, round(timeout_s))
        self._query(query, connect_timeout=timeout, read_timeout=timeout, write_timeout=timeout)

    def retention_s(self) -> float:
        """Return how long the server retains a log file; 0 when it never purges."""
        with closing(connect(self._settings)) as connection:
            return retention_s(read_variables(connection, self._settings))

    def inventory(self) -> LogInventory:
        """Return the server's identity, its log files with their sizes, the end of its log and its purged GTIDs."""
        with closing(connect(self._settings)) as connection:
            end = current_position(connection, self._settings)
            with translate_errors(self._settings), connection.cursor() as cursor:
                cursor.execute("SHOW BINARY LOGS")
                sizes = {str(row[0]): int(row[1]) for row in cursor.fetchall()}
                cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'gtid_purged')")
                variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        if not sizes:
            raise PositionLostError(f"{self.address} has no log files")
        purged = (
            GtidSet.parse(variables["gtid_purged"]) if "gtid_purged" in variables and end.gtids is not None else None
        )
        return LogInventory(variables.get("server_uuid", ""), sizes, end, purged)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the log files, in their order."""
        return {str(row[0]): int(str(row[1])) for row in self._query("SHOW BINARY LOGS")}

    def end(self) -> Position:
        """Return the position at which the log ends now, a transaction boundary."""
        with closing(connect(self._settings)) as connection:
            return current_position(connection, self._settings)

    def end_for_display(self) -> Position:
        """Return the position at which the log ends now, over a connection that is used again."""
        with self._pool.connection(self._settings) as connection:
            return current_position(connection, self._settings)

    def file_identity(self, file: str) -> FileIdentity:
        """Return the identity of a log file, from its first event."""
        with self.stream(Position(file, FIRST), verify=False) as stream:
            for _ in stream:
                if stream.file_identity is not None and stream.file_identity.file == file:
                    return stream.file_identity
        raise PositionLostError(f"{self.address} sent nothing of its log file {file}")

    def previous_gtids(self, file: str) -> GtidSet:
        """Return the GTIDs that were committed before a file was opened, from its first events."""
        for row in self._query(f"SHOW BINLOG EVENTS IN '{file}' LIMIT 3"):
            if str(row[2]) in {"Previous_gtids", "Gtid_list"}:
                return replace(GtidSet.parse(str(row[5]).strip("[]")), is_mariadb=str(row[2]) == "Gtid_list")
        raise BinlogError(f"{file} of {self.address} does not say which GTIDs it begins with")

    def now_us(self) -> int:
        """Return the time by the server's own clock, in microseconds since 1970."""
        ((now,),) = self._query("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
        return int(str(now))

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
    ) -> BinlogStream:
        """Return a stream of the server's log from a position."""
        return BinlogStream(
            self._settings,
            start,
            verify=verify,
            server_id=server_id,
            by_gtids=by_gtids,
            semi_sync=semi_sync,
            lenient=lenient,
            annotations=annotations,
            destination=self.destination,
        )

    def _query(self, sql: str, **limits: Any) -> Sequence[tuple[object, ...]]:
        """Run a statement over a connection of its own and return its rows."""
        source = self._settings
        with closing(connect(source, **limits)) as connection, translate_errors(source), connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
