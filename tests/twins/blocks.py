"""Blocks made of sizes and roles alone, for rooms that never look into events."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import LONGS, SHORTS, EventColumns
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.state import GTID_BYTES

_BOUNDARIES = (Entry.DDL, Entry.END)


def block_of(
    events: Sequence[tuple[int, int]], *, file: str = "binlog.000001", start: int = 4, time_us: int = 0
) -> tuple[Block, NDArray[np.uint8]]:
    """A block of (size, Entry) from `start` on, and the array its event bytes live in."""
    sizes = np.array([size for size, _ in events], np.int64)
    ends = np.cumsum(sizes)
    bounds = np.concatenate([[0], ends]).astype(np.int32)
    raw = (start + np.arange(int(ends[-1]))).astype(np.uint8)
    count = len(events)
    columns = dict.fromkeys([*LONGS, *SHORTS], np.zeros(count, np.int64)) | {
        "position": start + ends - sizes,
        "span": sizes,
        "entry": np.array([entry for _, entry in events], np.uint8),
        "boundary": np.array([entry in _BOUNDARIES for _, entry in events], np.uint8),
        "commit_us": np.full(count, time_us),
    }
    cells = EventColumns.from_columns(columns, bounds, np.zeros((count, GTID_BYTES), np.uint8))
    return Block(file, "", (), raw, cells, {}), raw
