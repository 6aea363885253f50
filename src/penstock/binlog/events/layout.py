"""Numbers of the binlog format that more than one file needs.

Event header, 19 bytes, little-endian:

    timestamp 4 | type 1 | server id 4 | size 4 | end position 4 | flags 2

The size counts the header and, where checksums are on, the CRC32 in the last four bytes. The end position is
that of the file and wraps at 4 GiB. It is 0 in events that the server makes up for the stream, and, from MariaDB 11.4
on (binlog_legacy_event_pos=OFF), in all events inside a transaction but its first and its last.
"""

from enum import IntEnum
from typing import Final

MAGIC: Final = b"\xfebin"
ENCRYPTED_MAGIC: Final = b"\xfdbin"  # of MySQL
HEADER: Final = 19
TYPE_AT, SERVER_AT, SIZE_AT, END_AT, FLAGS_AT = 4, 5, 9, 13, 17  # in the header
CHECKSUM: Final = 4
ARTIFICIAL: Final = 0x20
RELAYED: Final = 0x40  # written by a replica into its relay log
IN_USE: Final = 0x01  # of the format event while its file is being written; its checksum leaves the mark out
NO_TABLE: Final = 0xFFFFFF  # table id of a rows event that only ends a statement
LARGEST_EVENT: Final = (1 << 30) + (1 << 20)  # packets end at 1 GiB; a size beyond that is a broken one


class EventType(IntEnum):
    """The type codes of binlog events."""

    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS_V2 = 30
    UPDATE_ROWS_V2 = 31
    DELETE_ROWS_V2 = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED_V2 = 169
    MARIADB_UPDATE_ROWS_COMPRESSED_V2 = 170
    MARIADB_DELETE_ROWS_COMPRESSED_V2 = 171
    MARIADB_PARTIAL_ROW_DATA = 172


class Entry(IntEnum):
    """The role of an event in its transaction.

    An XA transaction is XA START, its rows, XA END and XA_PREPARE. It ends there in the log, decided or not: the first
    byte of the XA_PREPARE is 1 where it was committed at once (ONE PHASE). Otherwise XA COMMIT or XA ROLLBACK comes
    later, as another transaction that names the same id.
    """

    OTHER = 0  # all that is none of these: MySQL's GTID, table maps, notes, variables, statements inside (SAVEPOINT)
    BEGIN = 1  # frames the rows: MariaDB's GTID unless it stands alone, BEGIN, XA START, XA END
    ROWS = 2
    DDL = 3  # a statement that is a transaction of its own; XA COMMIT and XA ROLLBACK are
    END = 4  # XID, COMMIT, ROLLBACK, XA_PREPARE


def event_name(code: int) -> str:
    """Return the name of an event type, or its number where it is not known."""
    try:
        return EventType(code).name
    except ValueError:
        return f"event type {code}"
