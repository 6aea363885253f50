"""Rows of a table and of its mirror in a form in which they can be compared: ids, digests, and texts of their values.

| key                | id            |
|--------------------|---------------|
| 7                  | `7`           |
| ("a:b", 7)         | `a%3Ab:7`     |
| a null (a damage)  | `%N`          |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import SchemaError
from penstock.mirror.mirror_column import MirrorColumn, digest_values, show_values
from penstock.model.json_equality import is_same_json, parse_json
from penstock.render.digest_spool import DIGESTS
from penstock.render.text import join_columns
from penstock.snapshot.table import SnapshotTable

_MIX, _LAST_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_29, _32 = np.uint64(29), np.uint64(32)
_NO_VALUE = "%N"

Row = tuple[str | None, ...]
"""The values of a row as texts, in the order of the columns that are compared."""


@dataclass(frozen=True, slots=True)
class RowComparison:
    """The columns by which rows of a table and of its mirror are compared, and told from each other.

    comparison = RowComparison.of(table, source_schema, mirror.schema)
    digests = comparison.digest_rows(batch)
    """

    pairs: tuple[MirrorColumn, ...]
    key: tuple[MirrorColumn, ...]

    @classmethod
    def of(
        cls,
        table: SnapshotTable,
        source: pa.Schema,
        mirror: pa.Schema,
        *,
        json_columns: frozenset[str] = frozenset(),
        chosen: Sequence[str] | None = None,
    ) -> "RowComparison":
        """Pair the columns of a table, or the chosen ones, with those of its mirror. Columns of the mirror that begin
        with `_` and that the table does not have are those of our streams, and are ignored. Raises SchemaError for a
        table without a key, and for a mirror with other columns."""
        if not table.key:
            raise SchemaError(f"{table.name} has no key by which its rows could be told from each other")
        names = [column.name for column in table.columns]
        check_names(str(table.name), names, mirror.names, is_chosen=chosen is not None)
        pairs = {
            column.name: MirrorColumn.of(
                column,
                source.field(column.name).type,
                mirror.field(column.name).type,
                is_json=column.name in json_columns,
            )
            for column in table.columns
        }
        return cls(tuple(pairs.values()), tuple(pairs[name] for name in table.identity))

    @property
    def names(self) -> list[str]:
        """Return the names of the columns that are compared."""
        return [pair.name for pair in self.pairs]

    def make_ids(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the ids of rows."""
        parts: list[pa.Array | str] = []
        for pair in self.key:
            texts = pair.key_texts(pair.convert(_column(rows, pair.name)))
            escaped = pc.replace_substring(texts, "%", "%25")
            if len(self.key) > 1:
                escaped = pc.replace_substring(escaped, ":", "%3A")
            parts += [":", pc.fill_null(escaped, _NO_VALUE)]
        return join_columns(*parts[1:]).cast(pa.string())

    def parse_id(self, name: str) -> list[str | None]:
        """Return the texts of the key of an id."""
        parts = name.split(":") if len(self.key) > 1 else [name]
        return [None if part == _NO_VALUE else part.replace("%3A", ":").replace("%25", "%") for part in parts]

    def describe_key(self, name: str) -> dict[str, str | None]:
        """Return the columns of the key of an id, with the texts of their values."""
        return {pair.name: text for pair, text in zip(self.key, self.parse_id(name), strict=True)}

    def digest_rows(self, rows: pa.RecordBatch) -> pa.Table:
        """Return the digests of rows as a table of DIGESTS."""
        digests = np.zeros((rows.num_rows, 2), np.uint64)
        for pair in self.pairs:
            _mix(digests, digest_values(pair.convert(_column(rows, pair.name))).view(np.uint64))
        numbers = [pa.array(digests[:, number].view(np.int64)) for number in range(2)]
        return pa.Table.from_arrays([self.make_ids(rows), *numbers, pa.nulls(len(rows), pa.string())], schema=DIGESTS)

    def read_rows(self, batches: Sequence[pa.RecordBatch], wanted: frozenset[str]) -> dict[str, list[Row]]:
        """Return the rows with these ids as texts; a mirror may have several with one id."""
        rows: dict[str, list[Row]] = {}
        for batch in batches:
            ids = self.make_ids(batch)
            mask = pc.is_in(ids, value_set=pa.array(list(wanted), pa.string()))
            some = batch.filter(mask)
            values = [show_values(pair.convert(_column(some, pair.name))) for pair in self.pairs]
            for name, *texts in zip(ids.filter(mask).to_pylist(), *values, strict=True):
                rows.setdefault(name, []).append(tuple(texts))
        return {name: sorted(copies, key=repr) for name, copies in rows.items()}

    def are_equal(self, left: Row, right: Row) -> bool:
        """Return whether two rows have the same values."""
        return left == right or self.find_difference(left, right) is None

    def find_difference(self, left: Row, right: Row) -> tuple[str, str | None, str | None] | None:
        """Return the first column in which two rows differ, and its values; None if there is none."""
        for pair, first, second in zip(self.pairs, left, right, strict=True):
            if first != second and not (pair.is_json and _are_equal_documents(first, second)):
                return pair.name, first, second
        return None


def check_names(table: str, names: Sequence[str], mirrored: Sequence[str], *, is_chosen: bool) -> None:
    """Raise SchemaError when a mirror lacks a column, or has one that the table does not have."""
    if missing := [name for name in names if name not in mirrored]:
        raise SchemaError(
            f"the mirror has no column {', '.join(missing)}, which {table} has: start the stream that keeps it again,"
            " or name the columns to compare with --columns"
        )
    extra = [name for name in mirrored if name not in names and not name.startswith("_")]
    if extra and not is_chosen:
        raise SchemaError(
            f"the mirror has the column {', '.join(extra)}, which {table} does not have: name the columns to compare"
            " with --columns, if that is meant"
        )


def _mix(digests: NDArray[np.uint64], values: NDArray[np.uint64]) -> None:
    """Mix the digests of one more column into those of rows: the order of columns counts."""
    low, high = digests[:, 0], digests[:, 1]
    low ^= values[:, 0]
    low *= _MIX
    low ^= low >> _32
    high += values[:, 1]
    high *= _LAST_MIX
    high ^= high >> _29


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column by its name."""
    return rows.column(rows.schema.get_field_index(name))


def _are_equal_documents(left: str | None, right: str | None) -> bool:
    """Return whether two texts are the same JSON."""
    if left is None or right is None:
        return False
    try:
        return is_same_json(parse_json(left), parse_json(right))
    except ValueError:
        return False
