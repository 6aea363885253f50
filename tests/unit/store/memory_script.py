"""Puts a log into a store in memory, and prints the bytes that the store counts and those that the process took.

In a process of its own, since what others have freed would be taken again.
"""

import gc
import sys
from itertools import pairwise
from pathlib import Path

from penstock.binlog.events.reader import BlockReader
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.store import EventStore, MemoryShelf
from tests.twins.feed import START, feed
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

_TABLE = TableSchema(TableName("shop", "orders"), (Column("id", WireType.LONG),), ("id",))
_WARM = 100  # pieces that are put before
_PAGE = 4096


def resident() -> int:
    gc.collect()
    return _PAGE * int(Path("/proc/self/statm").read_text().split()[1])


def main(rows_each: int, per_piece: int, pieces: int) -> None:
    log = LogWriter().open()
    cuts = [len(log.data)]
    for number in range((pieces + _WARM) * per_piece):
        log.begin()
        if rows_each:
            log.map(7, _TABLE)
            log.rows(INSERT, 7, _TABLE, [[number]] * rows_each)
        log.commit()
        if number % per_piece == per_piece - 1:
            cuts.append(len(log.data))
    data = bytes(log.data)
    reader = BlockReader(START)
    list(feed(reader, data[: cuts[0]]))
    store = EventStore(MemoryShelf(1 << 40), START)
    before = 0, 0
    for number, (start, stop) in enumerate(pairwise(cuts)):
        if number == _WARM:
            before = resident(), store.size_bytes
        for block in feed(reader, data[start:stop]):
            store.put(block)
    print(store.size_bytes - before[1], resident() - before[0])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
