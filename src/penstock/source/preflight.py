"""Where a source's log begins and ends, once it is worth reading."""

from dataclasses import replace

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.config import SourceSettings
from penstock.errors import ConfigurationError, PositionLostError
from penstock.model import GtidSet, Position
from penstock.source.checks import check_variables, read_variables
from penstock.source.connection import translate_errors
from penstock.source.finding import Verdict


def check_source(connection: "Connection[Cursor]", settings: SourceSettings, *, is_standby: bool = False) -> None:
    """Raise one ConfigurationError that names every server variable to change."""
    findings = check_variables(read_variables(connection, settings), is_standby=is_standby)
    wrong = [finding for finding in findings if finding.verdict is Verdict.FAIL]
    if wrong:
        raise ConfigurationError(f"the log of {settings.address} cannot be captured: {'; '.join(map(str, wrong))}")


def current_position(connection: "Connection[Cursor]", settings: SourceSettings) -> Position:
    """Return the position at which the server's log ends, always a transaction boundary, with the GTIDs before it."""
    with translate_errors(settings), connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
        cursor.execute("SHOW BINARY LOG STATUS" if _is_new_mysql(version) else "SHOW MASTER STATUS")
        row = cursor.fetchone()
        if not row:
            raise ConfigurationError(f"{settings.address} writes no binary log: start the server with --log-bin")
        if "MariaDB" in version:
            cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", row[:2])
            (gtids,) = cursor.fetchone() or (None,)
            executed = replace(GtidSet.parse(gtids or ""), is_mariadb=True)
        else:
            cursor.execute("SELECT @@GLOBAL.gtid_mode")
            (mode,) = cursor.fetchone() or ("OFF",)
            executed = GtidSet.parse(row[4]) if str(mode).upper() == "ON" else None
        cursor.execute("SELECT UNIX_TIMESTAMP()")  # after it: what comes later is not older
        (now,) = cursor.fetchone() or (0,)
    return Position(row[0], int(row[1]), int(now), gtids=executed)


def oldest_position(connection: "Connection[Cursor]", settings: SourceSettings) -> Position:
    """Return the position at which the server's log begins."""
    with translate_errors(settings), connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        row = cursor.fetchone()
    if not row:
        raise PositionLostError(f"{settings.address} has no log files")
    return Position(row[0], 4)


def _is_new_mysql(version: str) -> bool:
    """Return whether the server is a MySQL from 8.4 on, which no longer knows SHOW MASTER STATUS."""
    if "MariaDB" in version:
        return False
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (8, 4)
