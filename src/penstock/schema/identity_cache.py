"""Remembers what was found out about objects that many tables share, by the identity of these objects.

Thousands of tables may differ in their names only, and share their columns. To hash all columns of a table takes longer
than most of what is done when the table is met for the first time; to look at which object it is takes nothing.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class IdentityCache(Generic[V]):
    """A bounded cache of results by the identity of shared objects, which live as long as their results. Any thread may
    call it.

        types = IdentityCache[tuple[str, ...]](4096)
        types.get((table.columns,), version, lambda: describe(table.columns, version))
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: dict[tuple[Hashable, ...], tuple[tuple[object, ...], V]] = {}

    def get(self, shared: tuple[object, ...], other: Hashable, make: Callable[[], V]) -> V:
        """Return the result for these objects and for `other`, which is compared by value; `make` makes a new one."""
        key = *map(id, shared), other
        known = self._known.get(key)
        if known is None:
            value = make()
            if len(self._known) >= self._size:
                self._known = {}
            self._known[key] = shared, value
            return value
        return known[1]
