"""Cuts a table into chunks: ranges of its key that hold about as many rows and bytes as was asked for.

An integer key is cut into even pieces between its least and its greatest value; what the server estimates to be too
large is cut again, between the values that exist there, and small neighbours are joined: gaps and clusters of ids make
neither large chunks nor many. Any other key is walked in the order of its index, so many rows at a time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.snapshot.key_column import Key, KeyColumn, after, quote_name, up_to
from penstock.snapshot.table import SnapshotTable

_TOLERANCE = 2  # an estimate of so many times the wanted rows is cut again
_MOST_TIMES_BYTES = 4  # the wanted bytes of a chunk
_MOST_PIECES = 1000  # that a range is cut into at once


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """The limits of a chunk in rows and bytes, by the estimate of the server."""

    rows: int = 100_000
    bytes: int = 32 << 20

    @property
    def most_bytes(self) -> int:
        """Return how much memory the rows of a chunk may take: where the estimate was so wrong, it is split."""
        return _MOST_TIMES_BYTES * self.bytes

    def rows_for(self, table: SnapshotTable) -> int:
        """Return the rows of a chunk of this table."""
        return max(1, min(self.rows, int(self.bytes / table.row_bytes)))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of a table's key: rows behind `after`, up to and including `until`; None is no limit.

    A limit may have fewer columns than the key: then all keys that begin with it belong to it.
    """

    after: Key | None
    until: Key | None
    estimated_rows: int = 0

    def condition(self, table: SnapshotTable, values: Sequence[str] | None = None) -> str:
        """Return the condition for the rows of this chunk; or for a key of these values, which are SQL."""
        write = KeyColumn.literal if values is None else KeyColumn.typed_limit
        values = values or [column.quoted for column in table.key]
        parts = [
            f"({compare(values, [write(column, text) for column, text in zip(table.key, limit, strict=False)])})"
            for compare, limit in ((after, self.after), (up_to, self.until))
            if limit is not None
        ]
        return " AND ".join(parts) or "TRUE"


def plan_chunks(cursor: Any, table: SnapshotTable, size: ChunkSize, begin: Key | None = None) -> Iterator[Chunk]:
    """Yield the chunks of a table behind `begin` in the order of its key; together they cover every key that there can
    ever be."""
    rows = size.rows_for(table)
    if not table.key:
        yield Chunk(None, None, table.estimated_rows)
        return
    planner = _Planner(cursor, table, rows)
    is_walked = not table.key[0].is_integer or (begin is not None and len(begin) > 1)
    limits = planner.walk(begin, None) if is_walked else planner.find_integer_limits(begin)
    last = begin
    for limit in limits:
        yield Chunk(last, limit, rows)
        last = limit
    yield Chunk(last, None, min(rows, table.estimated_rows))


def split_chunk(cursor: Any, table: SnapshotTable, chunk: Chunk, rows: int) -> Iterator[Chunk]:
    """Split a chunk: yield chunks of at most so many rows."""
    last = chunk.after
    for limit in _Planner(cursor, table, rows).walk(chunk.after, chunk.until):
        yield Chunk(last, limit, rows)
        last = limit
    yield Chunk(last, chunk.until, rows)


class _Planner:
    """Finds the limits between the chunks of one table."""

    def __init__(self, cursor: Any, table: SnapshotTable, rows: int) -> None:
        self._cursor, self._table, self._rows = cursor, table, rows
        self._column = table.key[0].quoted

    def find_integer_limits(self, begin: Key | None) -> Iterator[Key]:
        """Yield the limits behind a key for a table whose first key column is an integer."""
        least, most = self._find_ends("TRUE" if begin is None else f"{self._column} > {int(begin[0])}")
        if least is not None and most is not None:
            known = self._table.estimated_rows if begin is None else 0
            estimate = max(self._estimate(least - 1, most), known)
            yield from self._cut(least - 1, most, estimate)

    def _cut(self, low: int, high: int, estimate: int) -> Iterator[Key]:
        """Yield the limits between chunks inside the range (low, high] of the first key column. `estimate` is how many
        rows the range is expected to have."""
        pieces = min(_MOST_PIECES, math.ceil(estimate / self._rows), high - low)
        if pieces < 2:
            if estimate > _TOLERANCE * self._rows and len(self._table.key) > 1:
                yield from self.walk((str(low),), (str(high),))
            return
        collected = 0  # rows since the last limit
        for begin, end in pairwise(low + (high - low) * piece // pieces for piece in range(pieces + 1)):
            rows = self._estimate(begin, end)
            if rows > _TOLERANCE * self._rows:
                if collected:
                    yield (str(begin),)
                yield from self._cut_again(begin, end, rows)
                collected = self._rows
            else:
                collected += rows
            if collected >= self._rows and end < high:
                yield (str(end),)
                collected = 0

    def _cut_again(self, low: int, high: int, estimate: int) -> Iterator[Key]:
        """Yield the limits inside a range that has too many rows, which may be a cluster in a part of it."""
        least, most = self._find_ends(f"{self._column} > {low} AND {self._column} <= {high}")
        if least is not None and most is not None:
            yield from self._cut(least - 1, most, estimate)

    def _find_ends(self, condition: str) -> tuple[int | None, int | None]:
        """Return the least and the greatest value of the first key column where a condition holds."""
        return self._select(
            f"SELECT MIN({self._column}), MAX({self._column}) FROM {self._table.quoted} WHERE {condition}"
        )[0]

    def _estimate(self, low: int, high: int) -> int:
        """Return how many rows the server expects in (low, high] of the first key column; it asks its index."""
        # With FORCE INDEX, MySQL 9 does not look into the index.
        source = f"{self._table.quoted} USE INDEX ({quote_name(self._table.index)})"
        rows = self._select(
            f"EXPLAIN FORMAT=TRADITIONAL SELECT {self._column} FROM {source}"
            f" WHERE {self._column} > {low} AND {self._column} <= {high}"
        )
        rows_column = [column[0].lower() for column in self._cursor.description].index("rows")
        return int(rows[0][rows_column] or 0)

    def walk(self, low: Key | None, high: Key | None) -> Iterator[Key]:
        """Yield the limits of a range by walking its keys in the order of the index."""
        key = self._table.key
        names = ", ".join(column.quoted for column in key)
        while True:
            condition = Chunk(low, high).condition(self._table)
            limit_rows = self._select(
                f"SELECT {', '.join(column.expression for column in key)} FROM {self._table.source}"
                f" WHERE {condition} ORDER BY {names} LIMIT 1 OFFSET {self._rows - 1}"
            )
            if not limit_rows:
                return
            low = tuple(map(str, limit_rows[0]))
            yield low

    def _select(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        self._cursor.execute(sql)
        return list(self._cursor.fetchall())
