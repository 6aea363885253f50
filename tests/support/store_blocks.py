"""Blocks of made-up transactions for tests of the store, and short ways to get and ack them."""

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.model import Position
from penstock.store import Batch, BatchSize, EventStore, MemoryStorage
from tests.twins.blocks import block_of

START = Position("binlog.000001", 4)
OTHER, BEGIN, ROWS, DDL, END = Entry
ALL = BatchSize(1 << 30)


def blocks_of(*contents: list[tuple[int, int]]) -> list[Block]:
    at, blocks = 4, list[Block]()
    for number, events in enumerate(contents):
        block, _ = block_of(events, start=at, time_us=number * 1000)
        blocks.append(block)
        at = block.end.offset
    return blocks


def transaction(rows: int = 1) -> list[tuple[int, int]]:
    return [(10, BEGIN), *[(10, ROWS)] * rows, (10, END)]


def store_of(*contents: list[tuple[int, int]], limit_bytes: int = 1 << 20, slots: int | None = None) -> EventStore:
    store = EventStore(MemoryStorage(limit_bytes, slots=slots), START)
    store.add_client("one")
    for block in blocks_of(*contents):
        assert store.put(block, timeout_s=0)
    return store


def got(store: EventStore, size: BatchSize = ALL, name: str = "one", *, is_ddl_alone: bool = False) -> Batch:
    batch = store.get(name, size, is_ddl_alone=is_ddl_alone)
    assert batch is not None
    return batch
