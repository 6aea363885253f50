"""Reads GTID events, with which transactions begin, in kernels.

GTID, ANONYMOUS_GTID  flags 1 | uuid 16 | number 8 | 2 | last committed 8 | sequence 8 | from 8.0 on: committed 7 …
MARIADB_GTID          number 8 | domain 4 | flags 1 (1: stands alone) …; the server's id is the header's
"""

from typing import Any

import numpy as np

from penstock.binlog.events.layout import HEADER, SERVER_AT, TYPE_AT, EventType
from penstock.binlog.events.state import (
    COMMIT_US,
    DOMAIN_AT,
    IN_TRANSACTION,
    MARIADB,
    MYSQL,
    NUMBER_AT,
    ORIGIN_AT,
    UUID_AT,
)
from penstock.binlog.events.stop_reason import BAD_EVENT, NO_REASON, TAGS_FULL
from penstock.binlog.events.tagged import BROKEN, NO_ROOM, read_tagged
from penstock.binlog.kernel import read_little_endian, shared

_GTID, _TAGGED, _MARIADB = int(EventType.GTID), int(EventType.GTID_TAGGED), int(EventType.MARIADB_GTID)
_MARIADB_SIZE, _MARIADB_DOMAIN, _MARIADB_FLAGS, _STANDS_ALONE = 13, 8, 12, 1
_MYSQL_SIZE, _MYSQL_UUID, _MYSQL_CLOCK, _HAS_TIMES = 25, 1, 25, 2
_MYSQL_COMMITTED, _COMMITTED_BYTES = 42, 7
_ORIGINAL_FOLLOWS = np.int64(1) << 55  # of the time: another one, of the first server, comes after it


@shared
def read_gtid_event(data: Any, at: Any, stop: Any, state: Any, gtid: Any, tags: Any) -> Any:
    """Read a GTID event data[at:stop]: write the GTID, which must be all zeros before, and the commit time. Return a
    reason to stop, or none."""
    body, kind = at + HEADER, data[at + TYPE_AT]
    state[IN_TRANSACTION] = 0
    if kind == _MARIADB:
        if body + _MARIADB_SIZE > stop:
            return BAD_EVENT
        gtid[0] = MARIADB
        _copy(data, body + _MARIADB_DOMAIN, gtid, DOMAIN_AT, 4)
        _copy(data, at + SERVER_AT, gtid, ORIGIN_AT, 4)
        _copy(data, body, gtid, NUMBER_AT, 8)
        state[IN_TRANSACTION] = 0 if data[body + _MARIADB_FLAGS] & _STANDS_ALONE else 1
        return NO_REASON
    if kind == _TAGGED:
        code = read_tagged(data, body, stop, state, gtid, tags)
        if code == NO_ROOM:
            return TAGS_FULL
        return BAD_EVENT if code == BROKEN else NO_REASON
    if body + _MYSQL_SIZE > stop:
        return BAD_EVENT
    if kind == _GTID:
        gtid[0] = MYSQL
        _copy(data, body + _MYSQL_UUID, gtid, UUID_AT, 24)
    if body + _MYSQL_COMMITTED + _COMMITTED_BYTES <= stop and data[body + _MYSQL_CLOCK] == _HAS_TIMES:
        state[COMMIT_US] = read_little_endian(data, body + _MYSQL_COMMITTED, _COMMITTED_BYTES) & ~_ORIGINAL_FOLLOWS
    return NO_REASON


@shared
def _copy(data: Any, at: Any, out: Any, to: Any, size: Any) -> None:
    for k in range(size):
        out[to + k] = data[at + k]
