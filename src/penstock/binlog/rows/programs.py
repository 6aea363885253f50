"""Tables as flat arrays, by which one kernel walks the rows of many tables.

A program is what the kernel has to know of one version of a table: how far each field reaches, and of which kind its
values are. Columns of different tables are of the same kind when their values are decoded and written alike, whatever
the columns are called: all values of a kind are decoded in one call. Programs are only ever added; whoever holds too
many of them begins with an empty set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.values.column import wire_size_of
from penstock.model import Column, TableSchema, WireType

# Cells of a column.
PREFIX, WIDTH, KIND = 0, 1, 2
_FIELDS = 3
HIDDEN = -1  # as a KIND: the column is not shown
MAX_TABLES = 1 << 16
MAX_TEXT_BYTES = 64 << 20
_LABELLED = {WireType.ENUM, WireType.SET}
_SIZE_IN_PREFIX = {
    WireType.VARCHAR, WireType.VARCHAR_COMPRESSED, WireType.BLOB, WireType.BLOB_COMPRESSED, WireType.JSON,
    WireType.GEOMETRY, WireType.VECTOR,
}  # fmt: skip


def representative_column(column: Column, *, has_labels: bool) -> Column:
    """Return a column that stands for all columns whose values are decoded and written as those of this one."""
    is_sized = column.type not in _SIZE_IN_PREFIX and (column.type is not WireType.STRING or column.charset == "binary")
    return replace(
        column,
        name="",
        size=column.size if is_sized else 0,
        nullable=True,
        labels=column.labels if has_labels else (),
        geometry=0,
        dimension=0,
        is_visible=True,
    )


class GrowingArray:
    """An array that is appended to; `view` is what it holds.

    numbers = GrowingArray(np.int64)
    numbers.append(np.array([1, 2]))
    """

    def __init__(self, dtype: Any, width: int = 0) -> None:
        self._data: NDArray[Any] = np.empty((64, width) if width else 64, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def view(self) -> NDArray[Any]:
        """Return the values so far as a view; later appends do not change it."""
        return self._data[: self._size]

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        stop = self._size + len(values)
        if stop > len(self._data):
            larger = np.empty((2 * stop, *self._data.shape[1:]), self._data.dtype)
            larger[: self._size] = self.view
            self._data = larger
        self._data[self._size : stop] = values
        self._size = stop


class GrowingTexts:
    """Texts one after the other; text i lies between bounds i and i + 1.

    texts = GrowingTexts()
    texts.append([b"id", b"name"])
    """

    def __init__(self) -> None:
        self._bytes, self._bounds = GrowingArray(np.uint8), GrowingArray(np.int64)
        self._bounds.append(np.zeros(1, np.int64))

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Return the bounds of the texts: one number more than there are texts."""
        return self._bounds.view

    @property
    def data(self) -> NDArray[np.uint8]:
        """Return the bytes of all texts."""
        return self._bytes.view

    def append(self, texts: Sequence[bytes]) -> None:
        """Add texts at the end."""
        first = len(self._bytes)
        self._bytes.append(np.frombuffer(b"".join(texts), np.uint8))
        self._bounds.append(first + np.cumsum([len(text) for text in texts], dtype=np.int64))


class TablePrograms:
    """The programs by which a kernel walks the rows of many tables: `add` a table and use its number. With
    `has_labels`, an ENUM or SET is shown by its labels."""

    def __init__(self, *, has_labels: bool) -> None:
        self.kinds: list[Column] = []
        self.texts = GrowingTexts()  # of columns: as many for each as who adds a table gives
        self._has_labels = has_labels
        self._kinds: dict[Column, int] = {}
        self._columns, self._bounds = GrowingArray(np.int64, _FIELDS), GrowingArray(np.int64)
        self._bounds.append(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @property
    def is_full(self) -> bool:
        """Return whether no more tables should be added: begin with an empty one then."""
        return len(self) >= MAX_TABLES or self.texts.data.size >= MAX_TEXT_BYTES

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Return the bounds of the programs: the columns of program p are bounds[p] … bounds[p + 1] - 1."""
        return self._bounds.view

    @property
    def columns(self) -> NDArray[np.int64]:
        """Return one line per column of each table: PREFIX, WIDTH, KIND."""
        return self._columns.view

    def add(self, table: TableSchema, shown: Iterable[Column], texts: Sequence[bytes]) -> int:
        """Add the program of a table and return its number; `texts` has the same number of texts for each column, also
        for those that are not shown."""
        are_shown = {column.name for column in shown}
        lines = list[tuple[int, int, int]]()
        for column in table.columns:
            wire = wire_size_of(column)
            lines.append((wire.length_bytes, wire.width, self._kind(column) if column.name in are_shown else HIDDEN))
        self._columns.append(np.array(lines, np.int64).reshape(-1, _FIELDS))
        self._bounds.append(np.array([len(self._columns)], np.int64))
        self.texts.append(texts)
        return len(self) - 1

    def _kind(self, column: Column) -> int:
        kind = representative_column(column, has_labels=self._has_labels and column.type in _LABELLED)
        number = self._kinds.get(kind)
        if number is None:
            number = self._kinds[kind] = len(self.kinds)
            self.kinds.append(kind)
        return number
