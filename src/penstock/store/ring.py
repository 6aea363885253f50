"""An array of 2^n slots that is written and freed in a circle. Items are numbered for ever; a number's slot is its
lowest bits."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from penstock.errors import StoreError

T = TypeVar("T")


class Ring(Generic[T]):
    """Holds the items `head` … `tail` - 1. Doubles its slots when they are not enough."""

    def __init__(self, slots: int = 64) -> None:
        if slots < 1 or slots & (slots - 1):
            raise StoreError(f"the ring needs a power of two of slots, not {slots}")
        self._slots: list[T | None] = [None] * slots
        self.head = 0
        self.tail = 0

    def __len__(self) -> int:
        return self.tail - self.head

    def __getitem__(self, number: int) -> T:
        item = self._slots[number & (len(self._slots) - 1)] if self.head <= number < self.tail else None
        if item is None:
            raise StoreError(f"item {number} is not in the ring ({self.head} to {self.tail})")
        return item

    def __iter__(self) -> Iterator[T]:
        return self.iter_from(self.head)

    def iter_from(self, number: int) -> Iterator[T]:
        """Return the items from this number on, in order, as an iterator."""
        return (self[n] for n in range(number, self.tail))

    def append(self, item: T) -> None:
        """Add an item at the end; when all slots are taken, their number is doubled."""
        if len(self) == len(self._slots):
            items = list(self)
            self._slots = [None] * (2 * len(self._slots))
            for number, old in enumerate(items, self.head):
                self._slots[number & (len(self._slots) - 1)] = old
        self._slots[self.tail & (len(self._slots) - 1)] = item
        self.tail += 1

    def drop_first(self) -> T:
        """Remove the first item, and return it."""
        item = self[self.head]
        self._slots[self.head & (len(self._slots) - 1)] = None
        self.head += 1
        return item

    def drop_last(self) -> T:
        """Remove the last item, and return it."""
        item = self[self.tail - 1]
        self.tail -= 1
        self._slots[self.tail & (len(self._slots) - 1)] = None
        return item

    def clear(self) -> None:
        """Remove all items; their numbers are not used again."""
        self._slots = [None] * len(self._slots)
        self.head = self.tail

    def find(self, is_before: Callable[[T], bool]) -> int:
        """Return the number of the first item for which `is_before` does not hold; it holds for all items before that
        one."""
        numbers = range(self.head, self.tail)
        return self.head + bisect_left(numbers, True, key=lambda number: not is_before(self[number]))
