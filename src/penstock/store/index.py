"""Which blocks there are, in order: in few bytes each, for there may be millions in files that a slow client needs."""

import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.held import Held
from penstock.store.ring import Ring
from penstock.store.shelf import BlockGoneError

_WIDTH = 15  # numbers of a block
_FIRST, _SEGMENT, _AT, _LENGTH = 0, 12, 13, 14
_LOW = 0xFFFFFFFF
_PER_PAGE = 4096  # blocks
_REMEMBERED = 256  # that were looked at last


class Blocks(Protocol):
    """In order, with numbers that do not change while blocks come at the end and go at the beginning."""

    @property
    def head(self) -> int: ...

    @property
    def tail(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Held: ...

    def __iter__(self) -> Iterator[Held]: ...

    def since(self, number: int) -> Iterator[Held]: ...

    def find(self, is_before: Callable[[Held], bool]) -> int:
        """Number of the first for which that does not hold; it holds for all before."""
        ...


class FileIndex:
    """Of blocks in files, with their places there. One thread changes it, any may look."""

    def __init__(self) -> None:
        self.head = 0
        self.tail = 0
        self._lock = threading.Lock()
        # Protected by _lock: everything below.
        self._pages: dict[int, array[int]] = {}
        self._names: list[str] = []
        self._codes: dict[str, int] = {}
        self._seen: OrderedDict[int, Held] = OrderedDict()

    def __len__(self) -> int:
        return self.tail - self.head

    def __iter__(self) -> Iterator[Held]:
        return self.since(self.head)

    def since(self, number: int) -> Iterator[Held]:
        while number < self.tail:
            yield self[number]
            number += 1

    def __getitem__(self, number: int) -> Held:
        with self._lock:
            if not self.head <= number < self.tail:
                raise StoreError(f"block {number} is not in the index ({self.head} to {self.tail})")
            found = self._seen.get(number)
            if found is None:
                found = self._seen[number] = self._held(number)
                if len(self._seen) > _REMEMBERED:
                    self._seen.popitem(last=False)
            return found

    def append(self, held: Held, place: tuple[int, int, int]) -> None:
        """At a place: the number of the segment, the byte in it, and the length."""
        with self._lock:
            page = self._pages.setdefault(self.tail // _PER_PAGE, array("q"))
            page.extend(
                (
                    held.first, held.count, held.base, held.size, held.boundary, held.is_begin,
                    self._code(held.after.file) << 32 | self._code(held.start.file),
                    held.after.offset, held.start.offset, held.end.offset, held.end.timestamp,
                    held.after.epoch << 32 | held.end.epoch, *place,
                )
            )  # fmt: skip
            self.tail += 1

    def place_of(self, held: Held) -> tuple[int, int, int] | None:
        """None when it is not there any more."""
        with self._lock:
            number = self._number_of(held.first)
            if number == self.tail or not self._held(number).is_same(held):
                return None
            row = self._row(number)
            return row[_SEGMENT], row[_AT], row[_LENGTH]

    def segment_of(self, number: int) -> int:
        with self._lock:
            return self._row(number)[_SEGMENT]

    def drop_until(self, sequence: int) -> Held | None:
        """All up to the block that ends with this entry; gives the last one that went."""
        with self._lock:
            stop = self._number_of(sequence + 1)
            if stop == self.head:
                return None
            dropped = self._held(stop - 1)
            for page in range(self.head // _PER_PAGE, stop // _PER_PAGE):
                del self._pages[page]
            for number in [one for one in self._seen if one < stop]:
                del self._seen[number]
            self.head = stop
            return dropped

    def drop_last(self) -> Held:
        with self._lock:
            self.tail -= 1
            held = self._held(self.tail)
            page = self._pages[self.tail // _PER_PAGE]
            del page[-_WIDTH:]
            if not page:
                del self._pages[self.tail // _PER_PAGE]
            self._seen.pop(self.tail, None)
            return held

    def clear(self) -> None:
        with self._lock:
            self.head = self.tail = -(-self.tail // _PER_PAGE) * _PER_PAGE  # where a page begins
            self._pages.clear()
            self._seen.clear()

    def find(self, is_before: Callable[[Held], bool]) -> int:
        numbers = range(self.head, self.tail)
        return self.head + bisect_left(numbers, True, key=lambda number: not is_before(self[number]))

    # -- inside the lock

    def _number_of(self, first: int) -> int:
        """Of the first block that begins with this entry or later."""
        numbers = range(self.head, self.tail)
        return self.head + bisect_left(numbers, first, key=lambda number: self._row(number)[_FIRST])

    def _row(self, number: int) -> "array[int]":
        page, row = divmod(number, _PER_PAGE)
        return self._pages[page][row * _WIDTH : (row + 1) * _WIDTH]

    def _held(self, number: int) -> Held:
        first, count, base, size, boundary, is_begin, names, after, start, end, time_s, epochs, *_ = self._row(number)
        file, epoch = self._names[names & _LOW], epochs & _LOW
        before = Position(self._names[names >> 32], after, epoch=epochs >> 32)
        places = before, Position(file, start, epoch=epoch), Position(file, end, time_s, epoch)
        return Held(first, count, base, size, *places, boundary, bool(is_begin))

    def _code(self, name: str) -> int:
        if name not in self._codes:
            self._codes[name] = len(self._names)
            self._names.append(name)
        return self._codes[name]


class Joined:
    """Blocks in files, and after them those in memory. One that moves from memory to files keeps its number. `lock`
    protects both."""

    def __init__(self, files: FileIndex, memory: Ring[Held], lock: threading.Lock) -> None:
        self._files, self._memory, self._lock = files, memory, lock
        self.head = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._files) + len(self._memory)

    @property
    def tail(self) -> int:
        return self.head + len(self)

    def __getitem__(self, number: int) -> Held:
        with self._lock:
            return self._at(number)

    def _at(self, number: int) -> Held:
        at = number - self.head
        if at < len(self._files):
            return self._files[self._files.head + at]
        return self._memory[self._memory.head + at - len(self._files)]

    def __iter__(self) -> Iterator[Held]:
        return self.since(self.head)

    def since(self, number: int) -> Iterator[Held]:
        while number < self.tail:
            yield self[number]
            number += 1

    def find(self, is_before: Callable[[Held], bool]) -> int:
        with self._lock:
            files, memory = self._files, self._memory
            if len(files) and not is_before(files[files.tail - 1]):
                return self.head + files.find(is_before) - files.head
            return self.head + len(files) + memory.find(is_before) - memory.head


class Snapshot(Sequence[Held]):
    """The blocks that there were at a moment, without a copy. One that has gone since raises BlockGoneError."""

    def __init__(self, blocks: Blocks, lock: AbstractContextManager[object]) -> None:
        """Inside the lock."""
        self._blocks, self._lock = blocks, lock
        self._head, self._tail = blocks.head, blocks.tail

    def __len__(self) -> int:
        return self._tail - self._head

    def __getitem__(self, index: int) -> Held:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not 0 <= index < len(self):
            raise IndexError(index)
        try:
            with self._lock:
                return self._blocks[self._head + index]
        except StoreError:
            raise BlockGoneError(f"block {self._head + index} is no longer in the store") from None
