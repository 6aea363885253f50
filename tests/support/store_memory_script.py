"""Puts a log, piece by piece, into a store in memory, and prints the bytes that it counts and those the process took.

In a process of its own, which has nothing to do before: what was freed is taken again, and does not show.
"""

import ctypes
import gc
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from penstock.binlog.events.reader import BlockReader
from penstock.model import Position
from penstock.store import EventStore, MemoryStorage

_START = Position("binlog.000001", 4)
_WARM = 100  # pieces that are put before
_PAGE = 4096


def resident() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _PAGE * int(Path("/proc/self/statm").read_text().split()[1])


def main(log: Path, cuts: list[int]) -> None:
    reader, store, before = BlockReader(_START), EventStore(MemoryStorage(1 << 40), _START), (0, 0)
    with log.open("rb", buffering=0) as file:
        for number, (start, stop) in enumerate(pairwise([0, *cuts])):
            if number == _WARM:
                before = resident(), store.size_bytes
            size = stop - start
            assert file.readinto(reader.room(size)[:size].data) == size
            reader.advance(size)
            for block in reader.blocks(flush=True):
                store.put(block)
    print(store.size_bytes - before[1], resident() - before[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), np.fromfile(sys.argv[2], np.int64).tolist())
