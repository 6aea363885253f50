"""An immutable map whose changed copies share all parts with it but the one that was changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

V = TypeVar("V")
_PARTS = 128


class SharedMap(Mapping[str, V], Generic[V]):
    """An immutable map that is divided into parts. A copy with one entry changed shares all other parts with the
    original: of a map of ten thousand entries, about two hundred references are copied."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[dict[str, V]] = ()) -> None:
        self._parts: Sequence[dict[str, V]] = parts or [{}] * _PARTS

    @classmethod
    def from_items(cls, items: Iterable[tuple[str, V]]) -> "SharedMap[V]":
        """Return a map of these items."""
        parts: list[dict[str, V]] = [{} for _ in range(_PARTS)]
        for key, value in items:
            parts[hash(key) % _PARTS][key] = value
        return cls(parts)

    def with_item(self, key: str, value: V) -> "SharedMap[V]":
        """Return the map with an item added or replaced."""
        parts, at = list(self._parts), hash(key) % _PARTS
        parts[at] = {**parts[at], key: value}
        return SharedMap(parts)

    def without(self, key: str) -> "SharedMap[V]":
        """Return the map without a key."""
        parts, at = list(self._parts), hash(key) % _PARTS
        parts[at] = {each: value for each, value in parts[at].items() if each != key}
        return SharedMap(parts)

    def __getitem__(self, key: str) -> V:
        return self._parts[hash(key) % _PARTS][key]

    def __iter__(self) -> Iterator[str]:
        for part in self._parts:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __reduce__(self) -> tuple[object, tuple[list[tuple[str, V]]]]:
        """Pickle the entries: texts have other hashes in another process."""
        return SharedMap[V].from_items, (list(self.items()),)
