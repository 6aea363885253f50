"""Where a source's log begins and ends, once it is worth reading."""

from dataclasses import replace
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.config import SourceSettings
from penstock.errors import ConfigurationError, PositionLostError, SourceConnectionError
from penstock.model import GtidSet, Position
from penstock.source.checks import check_variables, read_variables
from penstock.source.connection import translate_errors
from penstock.source.finding import Verdict

# Of MariaDB's GTIDs, until nothing was committed meanwhile.
_MOST_READS = 50


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
        if "MariaDB" in version:
            row, executed = _read_mariadb_end(cursor, settings)
        else:
            row = _read_log_status(cursor, settings, "BINARY LOG" if _is_new_mysql(version) else "MASTER")
            cursor.execute("SELECT @@GLOBAL.gtid_mode")
            (mode,) = cursor.fetchone() or ("OFF",)
            executed = GtidSet.parse(row[4]) if str(mode).upper() == "ON" else None
        cursor.execute("SELECT UNIX_TIMESTAMP()")  # after it: what comes later is not older
        (now,) = cursor.fetchone() or (0,)
    return Position(row[0], int(row[1]), int(now), gtids=executed)


def _read_log_status(cursor: Cursor, settings: SourceSettings, kind: str = "MASTER") -> tuple[Any, ...]:
    """Return what the server says about the file that it writes its log to; the first two columns are the position."""
    cursor.execute(f"SHOW {kind} STATUS")
    row = cursor.fetchone()
    if not row:
        raise ConfigurationError(f"{settings.address} writes no binary log: start the server with --log-bin")
    return row


def _read_mariadb_end(cursor: Cursor, settings: SourceSettings) -> tuple[tuple[Any, ...], GtidSet]:
    """Return the end of MariaDB's log with its GTIDs, which the server does not tell in one statement.

    The GTIDs belong to the position when it is the same before and after they are read: both change under one lock.
    BINLOG_GTID_POS, which would tell them of a position, reads the whole file for it, and returns NULL when an event in
    it is larger than max_allowed_packet.
    """
    row = _read_log_status(cursor, settings)
    for _ in range(_MOST_READS):
        cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos")
        (gtids,) = cursor.fetchone() or ("",)
        before, row = row, _read_log_status(cursor, settings)
        if before[:2] == row[:2]:
            return row, replace(GtidSet.parse(gtids or ""), is_mariadb=True)
    cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", row[:2])
    (gtids,) = cursor.fetchone() or (None,)
    if gtids is None:
        raise SourceConnectionError(
            f"{settings.address} does not tell the GTIDs of {row[0]}:{row[1]}: its log grows all the time, and has an"
            " event larger than max_allowed_packet; it is asked again"
        )
    return row, replace(GtidSet.parse(gtids), is_mariadb=True)


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
