"""Numbers of canal's protocol."""

from enum import IntEnum


class EntryType(IntEnum):
    """What an entry of canal is: the begin or end of a transaction, or row data."""

    TRANSACTIONBEGIN = 1
    ROWDATA = 2
    TRANSACTIONEND = 3
    HEARTBEAT = 4
    GTIDLOG = 5


class CanalEventType(IntEnum):
    """What kind of change or statement an entry of canal carries."""

    NONE = 0
    INSERT = 1
    UPDATE = 2
    DELETE = 3
    CREATE = 4
    ALTER = 5
    ERASE = 6
    QUERY = 7
    TRUNCATE = 8
    RENAME = 9
    CINDEX = 10
    DINDEX = 11
    GTID = 12
    XACOMMIT = 13
    XAROLLBACK = 14
    MHEARTBEAT = 15
