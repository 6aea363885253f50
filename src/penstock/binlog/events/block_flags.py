"""Flags of a block, from one pass over its events: whether it has statements or table maps that must be looked at
one by one."""

from typing import Any

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.kernel import BYTES, I64, I64S_IN, brief_kernel

STATEMENTS = 1  # statements other than the BEGIN and COMMIT of rows, or files of LOAD DATA
OTHER_MAPS = 2  # table maps of tables that have no rows in the block
_QUERY, _TABLE_MAP = int(EventType.QUERY), int(EventType.TABLE_MAP)
_OLD_LOAD, _LAST_OLD_LOAD = int(EventType.LOAD), int(EventType.DELETE_FILE)
_BEGIN_LOAD, _EXECUTE_LOAD = int(EventType.BEGIN_LOAD_QUERY), int(EventType.EXECUTE_LOAD_QUERY)
_OTHER, _DDL = int(Entry.OTHER), int(Entry.DDL)


def scan_flags(block: Block) -> int:
    """Return which kinds of events a block has, as a sum of flags; the block caches it."""
    if block.flags is None:
        tables, column = np.fromiter(sorted(block.tables), np.int64, len(block.tables)), block.column
        flags = int(_scan(column("kind"), column("entry"), column("boundary"), column("table_id"), tables))
        object.__setattr__(block, "flags", flags)
        return flags
    return block.flags


@brief_kernel(I64(BYTES, BYTES, BYTES, I64S_IN, I64S_IN))
def _scan(kind: Any, entry: Any, boundary: Any, table_id: Any, tables: Any) -> Any:
    flags, last = np.int64(0), np.int64(-1)
    for event in range(kind.size):
        is_query = kind[event] == _QUERY and entry[event] == _OTHER and not boundary[event]
        is_load = _BEGIN_LOAD <= kind[event] <= _EXECUTE_LOAD or _OLD_LOAD <= kind[event] <= _LAST_OLD_LOAD
        if entry[event] == _DDL or is_query or is_load:
            flags |= STATEMENTS
        elif kind[event] == _TABLE_MAP and table_id[event] != last:
            last = table_id[event]
            low, high = np.int64(0), np.int64(tables.size)
            while low < high:
                middle = (low + high) // 2
                if tables[middle] < last:
                    low = middle + 1
                else:
                    high = middle
            if low == tables.size or tables[low] != last:
                flags |= OTHER_MAPS
    return flags
