"""FORMAT_DESCRIPTION: how the events of a file are written.

version 2 | server version 50 | created 4 | header length 1 | length of each type's head 1 | checksum algorithm 1
| CRC32 4
"""

import re
import zlib
from dataclasses import dataclass

from penstock.binlog.events.layout import CHECKSUM, FLAGS_AT, HEADER, IN_USE, TYPE_AT, EventType, event_name
from penstock.binlog.events.problem import EventProblemError

_VERSION, _HEADER_LENGTH, _LENGTHS = slice(HEADER + 2, HEADER + 52), HEADER + 56, HEADER + 57
_HEADS = {EventType.QUERY: 13, EventType.TABLE_MAP: 8}  # since 5.5
_FIRST_WITH_CHECKSUM = (5, 6, 1)
_FIRST_READ = (5, 1)
_CRC32 = 1
_WHO_READS_IT = "the mysqlbinlog of such a server reads them"


@dataclass(frozen=True, slots=True)
class BinlogFormat:
    """What a FORMAT_DESCRIPTION event says about its file: the server's version and id, the creation time, the size of
    checksums."""

    server_version: str
    checksum: int  # bytes at the end of each event
    began: int  # when the file did, in seconds; the server says so also to who reads it from the middle
    server_id: int  # of the server that writes it


def parse_format(event: memoryview) -> BinlogFormat:
    """Parse a FORMAT_DESCRIPTION event, or the START_V3 event of an old server."""
    if event[TYPE_AT] == EventType.START_V3:
        raise EventProblemError(f"logs of MySQL 4.1 and older ones are not read; {_WHO_READS_IT}")
    if len(event) < _LENGTHS + EventType.DELETE_ROWS_V1:
        raise EventProblemError("the event does not hold what its type asks for")
    version = bytes(event[_VERSION]).rstrip(b"\0").decode("ascii", "replace")
    if event[_HEADER_LENGTH] != HEADER:
        raise EventProblemError(
            f"the events of server {version} have headers of {event[_HEADER_LENGTH]} bytes: only logs with headers of"
            f" {HEADER} bytes, as MySQL and MariaDB write them, are read",
            _HEADER_LENGTH,
        )
    if () < _numbers(version) < _FIRST_READ:  # a version without numbers says nothing
        raise EventProblemError(
            f"the log is of server {version}: logs of MySQL 5.0 and of early versions of 5.1 are not read;"
            f" {_WHO_READS_IT}",
            _VERSION.start,
        )
    for kind, length in _HEADS.items():
        actual = event[_LENGTHS + kind - 1]
        if actual != length:
            raise EventProblemError(
                f"{event_name(kind)} events of server {version} have a head of {actual} bytes instead of {length}: logs"
                f" of MySQL 5.0 and of early versions of 5.1 are not read; {_WHO_READS_IT}",
                _LENGTHS + kind - 1,
            )
    is_on = _knows_checksums(version) and event[-CHECKSUM - 1] == _CRC32
    began = int.from_bytes(event[:TYPE_AT], "little")
    server_id = int.from_bytes(event[TYPE_AT + 1 : TYPE_AT + 5], "little")
    return BinlogFormat(version, CHECKSUM if is_on else 0, began, server_id)


def has_valid_checksum(event: memoryview) -> bool:
    """Return whether an event matches its checksum. The flag of a file in use was not set when the checksum was
    made."""
    stop = len(event) - CHECKSUM
    mark = IN_USE if event[TYPE_AT] == EventType.FORMAT_DESCRIPTION else 0
    crc = zlib.crc32(event[:FLAGS_AT])
    crc = zlib.crc32(bytes([event[FLAGS_AT] & ~mark]), crc)
    crc = zlib.crc32(event[FLAGS_AT + 1 : stop], crc)
    return crc == int.from_bytes(event[stop:], "little")


def _knows_checksums(server_version: str) -> bool:
    """Return whether a server writes the checksum algorithm into its format event: MySQL before 5.6.1 does not."""
    return "MariaDB" in server_version or _numbers(server_version) >= _FIRST_WITH_CHECKSUM


def _numbers(server_version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", server_version)[:3]))
