"""Connections that read snapshots: values come unchanged, and a slow reader is waited for."""

from typing import Any

from penstock.config import SourceSettings
from penstock.source.connection import connect, translate_errors

_SESSION_TIMEOUT_S = 3600  # for a reader that is paused or limited
_SESSION = (
    # Texts come in the charset of their column, so that they are decoded as those of the log.
    "SET character_set_results = NULL, sql_mode = '', net_write_timeout = {timeout}, net_read_timeout = {timeout},"
    " wait_timeout = {timeout}"
    # MySQL from 8.0 on: the size of a table as it is now, not of up to a day ago. The others skip the comment.
    " /*!80002 , information_schema_stats_expiry = 0 */"
    # A chunk may take longer than the server lets other statements take.
    " /*!50708 , max_execution_time = 0 */ /*M!100101 , max_statement_time = 0 */"
)


def connect_for_snapshot(settings: SourceSettings) -> Any:
    """Open a connection whose rows have the bytes that the table has."""
    connection = connect(settings)
    with translate_errors(settings), connection.cursor() as cursor:
        cursor.execute(_SESSION.format(timeout=_SESSION_TIMEOUT_S))
    return connection
