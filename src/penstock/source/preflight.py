"""What must hold on a source before its log is worth reading, each with the statement that mends it."""

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.config import SourceSettings
from penstock.errors import ConfigurationError, PositionLostError
from penstock.model import Position
from penstock.source.connection import translated

_MEND = {
    "log_bin": ("ON", "start the server with --log-bin"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = 'ROW', then reconnect the writers"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = 'FULL', then reconnect the writers"),
    "binlog_row_metadata": (
        "FULL",
        "SET GLOBAL binlog_row_metadata = 'FULL' (there from MariaDB 10.5 and MySQL 8.0.1 on)",
    ),
}


def check_source(connection: "Connection[Cursor]", settings: SourceSettings) -> None:
    """Raise one line that names every setting to change."""
    with translated(settings), connection.cursor() as cursor:
        names = (*_MEND, "binlog_order_commits")
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join(['%s'] * len(names))})", names)
        found = {str(name).lower(): str(value).upper() for name, value in cursor.fetchall()}
    # Documents are read back in the trust that engines commit in the order of the log; only MySQL can turn it off.
    if found.get("binlog_order_commits", "ON") != "ON":
        raise ConfigurationError(
            f"binlog_order_commits is OFF on {settings.address}, needed is ON: SET GLOBAL binlog_order_commits = ON"
        )
    wrong = [
        f"{name} is {found.get(name, 'not there')}, needed is {needed}: {mend}"
        for name, (needed, mend) in _MEND.items()
        if found.get(name) != needed
    ]
    if wrong:
        raise ConfigurationError(f"the log of {settings.address} cannot be captured: {'; '.join(wrong)}")


def current_position(connection: "Connection[Cursor]", settings: SourceSettings) -> Position:
    """The end of the log, always between two transactions."""
    with translated(settings), connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
        cursor.execute("SHOW BINARY LOG STATUS" if _is_new_mysql(version) else "SHOW MASTER STATUS")
        row = cursor.fetchone()
    if not row:
        raise ConfigurationError(f"{settings.address} writes no binary log: {_MEND['log_bin'][1]}")
    return Position(row[0], int(row[1]))


def oldest_position(connection: "Connection[Cursor]", settings: SourceSettings) -> Position:
    with translated(settings), connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        row = cursor.fetchone()
    if not row:
        raise PositionLostError(f"{settings.address} has no log files")
    return Position(row[0], 4)


def _is_new_mysql(version: str) -> bool:
    """SHOW MASTER STATUS went away in MySQL 8.4."""
    if "MariaDB" in version:
        return False
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (8, 4)
