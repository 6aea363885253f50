"""Finds the events of a block that belong to XA transactions: where one begins, and where its outcome is.

A log without XA is passed over by one kernel call per block; only a block with such an event is looked into.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import HEADER, Entry, EventType
from penstock.binlog.kernel import BYTES, I32S_IN, I64, I64S, brief_kernel, u16
from penstock.binlog.xa.xid import GTID_FLAGS, PREPARED_XA

_QUERY, _GTID = int(EventType.QUERY), int(EventType.MARIADB_GTID)
_BEGIN, _DDL = int(Entry.BEGIN), int(Entry.DDL)
# QUERY: thread 4 | seconds 4 | database length 1 | error 2 | variables length 2 | variables | database, 0 | text
_DATABASE_LENGTH, _VARIABLES_LENGTH, _VARIABLES = 8, 11, 13
_NO_CASE, _X, _A, _SPACE = 0xDF, ord("X"), ord("A"), ord(" ")
_NONE = np.empty(0, np.int64)


def find_xa_events(block: Block) -> NDArray[np.int64]:
    """Return the events that begin an XA transaction, end its statements, or say what became of one."""
    data, bounds = block.data, block.index.bounds
    kind, entry = block.column("kind"), block.column("entry")
    if _find_events(data, bounds, kind, entry, _NONE) == 0:
        return _NONE
    events = np.empty(len(block), np.int64)
    return events[: _find_events(data, bounds, kind, entry, events)]


@brief_kernel(I64(BYTES, I32S_IN, BYTES, BYTES, I64S))
def _find_events(data: Any, bounds: Any, kind: Any, entry: Any, events: Any) -> Any:
    """Fill in the indexes of XA events and return how many there are; without room, return 1 at the first one."""
    count = np.int64(0)
    for event in range(kind.size):
        if entry[event] != _BEGIN and entry[event] != _DDL:
            continue
        body, end = np.int64(bounds[event]) + HEADER, np.int64(bounds[event + 1])
        is_xa = False
        if kind[event] == _QUERY and body + _VARIABLES <= end:
            text = body + _VARIABLES + u16(data, body + _VARIABLES_LENGTH) + np.int64(data[body + _DATABASE_LENGTH]) + 1
            is_xa = (
                text + 3 <= end
                and data[text] & _NO_CASE == _X
                and data[text + 1] & _NO_CASE == _A
                and data[text + 2] == _SPACE
            )
        elif kind[event] == _GTID and body + GTID_FLAGS < end:
            is_xa = data[body + GTID_FLAGS] & PREPARED_XA != 0
        if is_xa:
            if count >= events.size:
                return np.int64(1)
            events[count] = event
            count += 1
    return count
