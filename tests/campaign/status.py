"""What a worker is at and how its mutants ended, in a small file that outlives it: a crash loses nothing.

file: number of the mutant at work 8 | how often each outcome was 8 each
"""

import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

OUTCOMES: tuple[str, ...] = ("whole", "BinlogError", "SchemaError", "failed")
WARMING = -1  # instead of a number: kernels are being compiled or loaded
_LAYOUT = struct.Struct(f"<{1 + len(OUTCOMES)}q")


class Status:
    """The worker's side."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._counts = dict.fromkeys(OUTCOMES, 0)

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator["Status"]:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), _LAYOUT.size) as memory:
            yield cls(memory)

    def begin(self, number: int) -> None:
        _LAYOUT.pack_into(self._memory, 0, number, *self._counts.values())

    def end(self, number: int, outcome: str) -> None:
        self._counts[outcome] += 1
        self.begin(number)


def clear(path: Path) -> None:
    path.write_bytes(_LAYOUT.pack(WARMING, *(0 for _ in OUTCOMES)))


def read(path: Path) -> tuple[int, Mapping[str, int]]:
    number, *counts = _LAYOUT.unpack(path.read_bytes())
    return number, dict(zip(OUTCOMES, counts, strict=True))
