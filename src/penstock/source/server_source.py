"""A server as the origin of a log: what is asked of it, by SQL and by the log itself."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from penstock.config import SourceSettings
from penstock.errors import BinlogError, PositionLostError
from penstock.model import FileIdentity, GtidSet, Position
from penstock.source.binlog_source import FIRST, LogInventory
from penstock.source.checks import retention_s, variables_of
from penstock.source.connection import connect, translated
from penstock.source.preflight import check_source, current_position
from penstock.source.stream import BinlogStream


class ServerSource:
    """A server as a source; each question opens its own connection.

    source = ServerSource(SourceSettings(host="db1", user="repl", password="..."))
    """

    takes_gtids, is_copied = True, False

    def __init__(self, settings: SourceSettings) -> None:
        self.address, self.start_timeout_s = settings.address, settings.connect_timeout_s
        self._settings = settings

    def check(self, *, is_standby: bool = False) -> None:
        with closing(connect(self._settings)) as connection:
            check_source(connection, self._settings, is_standby=is_standby)

    def answers(self, query: str, timeout_s: float) -> None:
        timeout = max(1, round(timeout_s))
        self._rows(query, connect_timeout=timeout, read_timeout=timeout, write_timeout=timeout)

    def retention_s(self) -> float:
        with closing(connect(self._settings)) as connection:
            return retention_s(variables_of(connection, self._settings))

    def inventory(self) -> LogInventory:
        with closing(connect(self._settings)) as connection:
            end = current_position(connection, self._settings)
            with translated(self._settings), connection.cursor() as cursor:
                cursor.execute("SHOW BINARY LOGS")
                sizes = {str(row[0]): int(row[1]) for row in cursor.fetchall()}
                cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'gtid_purged')")
                found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        if not sizes:
            raise PositionLostError(f"{self.address} has no log files")
        purged = GtidSet.parse(found["gtid_purged"]) if "gtid_purged" in found and end.gtids is not None else None
        return LogInventory(found.get("server_uuid", ""), sizes, end, purged)

    def sizes(self) -> dict[str, int]:
        return {str(row[0]): int(str(row[1])) for row in self._rows("SHOW BINARY LOGS")}

    def end(self) -> Position:
        with closing(connect(self._settings)) as connection:
            return current_position(connection, self._settings)

    def file_identity(self, file: str) -> FileIdentity:
        with BinlogStream(self._settings, Position(file, FIRST), verify=False) as stream:
            for _ in stream:
                if stream.file_identity is not None and stream.file_identity.file == file:
                    return stream.file_identity
        raise PositionLostError(f"{self.address} sent nothing of its log file {file}")

    def previous_gtids(self, file: str) -> GtidSet:
        for row in self._rows(f"SHOW BINLOG EVENTS IN '{file}' LIMIT 3"):
            if str(row[2]) in {"Previous_gtids", "Gtid_list"}:
                return replace(GtidSet.parse(str(row[5]).strip("[]")), is_mariadb=str(row[2]) == "Gtid_list")
        raise BinlogError(f"{file} of {self.address} does not say which GTIDs it begins with")

    def now_us(self) -> int:
        ((now,),) = self._rows("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
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
        how = {"by_gtids": by_gtids, "semi_sync": semi_sync, "lenient": lenient, "annotations": annotations}
        return BinlogStream(self._settings, start, verify=verify, server_id=server_id, **how)

    def _rows(self, sql: str, **limits: Any) -> Sequence[tuple[object, ...]]:
        source = self._settings
        with closing(connect(source, **limits)) as connection, translated(source), connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
