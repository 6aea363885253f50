"""Indexes of the stored blocks, in order. An entry takes few bytes, because files may hold millions of blocks for a
slow client."""

import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.block_info import BlockInfo
from penstock.store.block_storage import BlockGoneError
from penstock.store.ring import Ring

_WIDTH = 15  # numbers of a block
_FIRST, _SEGMENT, _AT, _LENGTH = 0, 12, 13, 14
_LOW = 0xFFFFFFFF
_PER_PAGE = 4096  # blocks
_CACHED = 256  # blocks that were looked at last


class BlockIndex(Protocol):
    """The blocks of a storage, in order. Their numbers do not change while blocks are added at the end and freed at the
    beginning."""

    @property
    def head(self) -> int:
        """The number of the first block."""
        ...

    @property
    def tail(self) -> int:
        """The number that the next block gets: one more than that of the last block."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> BlockInfo: ...

    def __iter__(self) -> Iterator[BlockInfo]: ...

    def iter_from(self, number: int) -> Iterator[BlockInfo]:
        """Yield the blocks from this number on, in order."""
        ...

    def find(self, is_before: Callable[[BlockInfo], bool]) -> int:
        """Return the number of the first block for which `is_before` does not hold; it holds for all blocks before that
        one."""
        ...


class FileBlockIndex:
    """An index of blocks in files, with their locations there. One thread changes it; any thread may read it."""

    def __init__(self) -> None:
        self.head = 0
        self.tail = 0
        self._lock = threading.Lock()
        # Protected by _lock: everything below.
        self._pages: dict[int, array[int]] = {}
        self._names: list[str] = []
        self._codes: dict[str, int] = {}
        self._cache: OrderedDict[int, BlockInfo] = OrderedDict()

    def __len__(self) -> int:
        return self.tail - self.head

    def __iter__(self) -> Iterator[BlockInfo]:
        return self.iter_from(self.head)

    def iter_from(self, number: int) -> Iterator[BlockInfo]:
        """Yield the blocks from this number on, in order."""
        while number < self.tail:
            yield self[number]
            number += 1

    def __getitem__(self, number: int) -> BlockInfo:
        with self._lock:
            if not self.head <= number < self.tail:
                raise StoreError(f"block {number} is not in the index ({self.head} to {self.tail})")
            info = self._cache.get(number)
            if info is None:
                info = self._cache[number] = self._info(number)
                if len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)
            return info

    def append(self, info: BlockInfo, location: tuple[int, int, int]) -> None:
        """Add a block to the end of the index. `location` is where its bytes are: the number of the segment file, the
        offset in it, and the length."""
        with self._lock:
            page = self._pages.setdefault(self.tail // _PER_PAGE, array("q"))
            page.extend(
                (
                    info.first, info.count, info.base, info.size, info.boundary, info.is_begin,
                    self._code(info.after.file) << 32 | self._code(info.start.file),
                    info.after.offset, info.start.offset, info.end.offset, info.end.timestamp,
                    info.after.epoch << 32 | info.end.epoch, *location,
                )
            )  # fmt: skip
            self.tail += 1

    def location_of(self, info: BlockInfo) -> tuple[int, int, int] | None:
        """Return the location of a block: segment, offset and length; None when it is no longer there."""
        with self._lock:
            number = self._number_of(info.first)
            if number == self.tail or not self._info(number).is_same(info):
                return None
            row = self._row(number)
            return row[_SEGMENT], row[_AT], row[_LENGTH]

    def segment_of(self, number: int) -> int:
        """Return the number of the segment that a block is in."""
        with self._lock:
            return self._row(number)[_SEGMENT]

    def drop_until(self, sequence: int) -> BlockInfo | None:
        """Drop all blocks up to the one that ends with this entry; return the last one that was dropped."""
        with self._lock:
            stop = self._number_of(sequence + 1)
            if stop == self.head:
                return None
            dropped = self._info(stop - 1)
            for page in range(self.head // _PER_PAGE, stop // _PER_PAGE):
                del self._pages[page]
            for number in [cached for cached in self._cache if cached < stop]:
                del self._cache[number]
            self.head = stop
            return dropped

    def drop_last(self) -> BlockInfo:
        """Remove the newest block from the index of stored blocks, and return what the index had on it."""
        with self._lock:
            self.tail -= 1
            info = self._info(self.tail)
            page = self._pages[self.tail // _PER_PAGE]
            del page[-_WIDTH:]
            if not page:
                del self._pages[self.tail // _PER_PAGE]
            self._cache.pop(self.tail, None)
            return info

    def clear(self) -> None:
        """Remove all blocks from the index; their numbers are not used again."""
        with self._lock:
            self.head = self.tail = -(-self.tail // _PER_PAGE) * _PER_PAGE  # where a page begins
            self._pages.clear()
            self._cache.clear()

    def find(self, is_before: Callable[[BlockInfo], bool]) -> int:
        """Return the number of the first block for which `is_before` does not hold; it holds for all blocks before that
        one."""
        numbers = range(self.head, self.tail)
        return self.head + bisect_left(numbers, True, key=lambda number: not is_before(self[number]))

    # -- inside the lock

    def _number_of(self, first: int) -> int:
        """Return the number of the first block that begins with this entry or later."""
        numbers = range(self.head, self.tail)
        return self.head + bisect_left(numbers, first, key=lambda number: self._row(number)[_FIRST])

    def _row(self, number: int) -> "array[int]":
        page, row = divmod(number, _PER_PAGE)
        return self._pages[page][row * _WIDTH : (row + 1) * _WIDTH]

    def _info(self, number: int) -> BlockInfo:
        first, count, base, size, boundary, is_begin, names, after, start, end, time_s, epochs, *_ = self._row(number)
        file, epoch = self._names[names & _LOW], epochs & _LOW
        before = Position(self._names[names >> 32], after, epoch=epochs >> 32)
        positions = before, Position(file, start, epoch=epoch), Position(file, end, time_s, epoch)
        return BlockInfo(first, count, base, size, *positions, boundary, bool(is_begin))

    def _code(self, name: str) -> int:
        if name not in self._codes:
            self._codes[name] = len(self._names)
            self._names.append(name)
        return self._codes[name]


class TieredIndex:
    """Blocks in files, and after them those in memory. A block that moves from memory to files keeps its number.
    `lock` protects both."""

    def __init__(self, files: FileBlockIndex, memory: Ring[BlockInfo], lock: threading.Lock) -> None:
        self._files, self._memory, self._lock = files, memory, lock
        self.head = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._files) + len(self._memory)

    @property
    def tail(self) -> int:
        """The number that the next block gets: one more than that of the last block."""
        return self.head + len(self)

    def __getitem__(self, number: int) -> BlockInfo:
        with self._lock:
            return self._at(number)

    def _at(self, number: int) -> BlockInfo:
        at = number - self.head
        if at < len(self._files):
            return self._files[self._files.head + at]
        return self._memory[self._memory.head + at - len(self._files)]

    def __iter__(self) -> Iterator[BlockInfo]:
        return self.iter_from(self.head)

    def iter_from(self, number: int) -> Iterator[BlockInfo]:
        """Yield the blocks from this number on, in order."""
        while number < self.tail:
            yield self[number]
            number += 1

    def find(self, is_before: Callable[[BlockInfo], bool]) -> int:
        """Return the number of the first block for which `is_before` does not hold; it holds for all blocks before that
        one."""
        with self._lock:
            files, memory = self._files, self._memory
            if len(files) and not is_before(files[files.tail - 1]):
                return self.head + files.find(is_before) - files.head
            return self.head + len(files) + memory.find(is_before) - memory.head


class IndexSnapshot(Sequence[BlockInfo]):
    """A view of the blocks that the store had at one moment, without a copy of them. Reading a block that was freed
    since raises BlockGoneError."""

    def __init__(self, blocks: BlockIndex, lock: AbstractContextManager[object]) -> None:
        """Take a snapshot; called under the lock of the index."""
        self._blocks, self._lock = blocks, lock
        self._head, self._tail = blocks.head, blocks.tail

    def __len__(self) -> int:
        return self._tail - self._head

    def __getitem__(self, index: int) -> BlockInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not 0 <= index < len(self):
            raise IndexError(index)
        try:
            with self._lock:
                return self._blocks[self._head + index]
        except StoreError:
            raise BlockGoneError(f"block {self._head + index} is no longer in the store") from None
