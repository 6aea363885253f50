"""What the index does with each type of event."""

from typing import Any

import numpy as np

from penstock.binlog.events.layout import EventType

PLAIN, FOR_PYTHON, INCIDENT, OPENS, STATEMENT, ENDS, MAPS, ROWS, BETWEEN = range(9)

_ROLES = {
    # Format, old or new, rotation, made up by the server, encrypted, or holding other events.
    FOR_PYTHON: (
        EventType.START_V3,
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.TRANSACTION_PAYLOAD,
        *range(EventType.MARIADB_START_ENCRYPTION, EventType.MARIADB_PARTIAL_ROW_DATA + 1),
    ),
    INCIDENT: (EventType.INCIDENT,),
    OPENS: (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID),
    STATEMENT: (EventType.QUERY,),
    ENDS: (EventType.XID, EventType.XA_PREPARE),
    MAPS: (EventType.TABLE_MAP,),
    ROWS: (
        *range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1),
        *range(EventType.WRITE_ROWS_V2, EventType.DELETE_ROWS_V2 + 1),
        EventType.PARTIAL_UPDATE_ROWS,
    ),
    # They open or close a file, or lie between two transactions: a position to resume from, even in a quiet log.
    BETWEEN: (
        EventType.STOP,
        EventType.PREVIOUS_GTIDS,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
    ),
}


def _by_type() -> "np.ndarray[Any, np.dtype[np.uint8]]":
    roles = np.full(256, PLAIN, np.uint8)
    for role, kinds in _ROLES.items():
        roles[list(kinds)] = role
    return roles


ROLE_OF = _by_type()
