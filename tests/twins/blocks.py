"""Blocks made of sizes and roles alone, for rooms that never look into events."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import EVENT_SCHEMA, Block
from penstock.binlog.events.layout import Entry

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
    numbers = pa.array(np.zeros(count, np.int64))
    small = pa.array(np.zeros(count, np.uint8))
    columns = {name: small if EVENT_SCHEMA.field(name).type == pa.uint8() else numbers for name in EVENT_SCHEMA.names}
    columns |= {
        "event": pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(raw)]),
        "position": pa.array(start + ends - sizes),
        "span": pa.array(sizes),
        "entry": pa.array([entry for _, entry in events], pa.uint8()),
        "boundary": pa.array([int(entry in _BOUNDARIES) for _, entry in events], pa.uint8()),
        "commit_us": pa.array(np.full(count, time_us)),
        "gtid": pa.array([bytes(25)] * count, pa.binary(25)),
    }
    return Block(file, "", (), pa.RecordBatch.from_pydict(columns, schema=EVENT_SCHEMA), {}), raw
