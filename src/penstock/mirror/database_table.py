"""A table of a MySQL or MariaDB server, as either side of a comparison: read in chunks, and again by keys."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import takewhile

import pyarrow as pa

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.config import SourceSettings
from penstock.errors import PenstockError, SchemaError
from penstock.mirror.comparison import RowComparison
from penstock.mirror.selection import RowSelection
from penstock.model import LogRequirement, TableName
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.key_column import KeyColumn
from penstock.snapshot.source_rows import SelectQuery, SourceRows
from penstock.snapshot.table import SnapshotTable
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.source.connection import translate_errors

_KEYS_PER_QUERY = 500


class DatabaseTable:
    """Reads the rows of a table, without locks.

    table = DatabaseTable(settings, TableName("shop", "orders"), SnapshotOptions())
    batches = table.scan(comparison, RowSelection())
    """

    def __init__(self, settings: SourceSettings, name: TableName, options: SnapshotOptions) -> None:
        self._settings, self._name, self._options = settings, name, options
        self._snapshot = TableSnapshot(settings, name, options)
        self._rows = SourceRows(settings, options.decode)

    @property
    def description(self) -> str:
        """Return what is read, for people."""
        return f"{self._name} at {self._settings.address}"

    @property
    def table(self) -> SnapshotTable:
        """Return what is known of the table."""
        return self._snapshot.table

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return self._snapshot.schema

    @property
    def json_columns(self) -> frozenset[str]:
        """Return the columns that hold JSON documents."""
        return frozenset(column.name for column in self.table.columns if kernel_family_of(column)[0] is Family.JSON)

    def require(self, requirement: LogRequirement | None) -> None:
        """Let rows be read by keys only if the server has executed what is required of it."""
        self._rows.requirement = requirement

    def estimate_rows(self) -> int:
        """Return about how many rows the table has."""
        return self.table.estimated_rows

    def find_bounds(self) -> tuple[int, int] | None:
        """Return the least and the greatest value of the first key column; None for an empty table, and where it is no
        integer."""
        key = self.table.key
        if not key or not key[0].is_integer:
            return None
        column = key[0].quoted
        with closing(connect_for_snapshot(self._settings)) as connection, translate_errors(self._settings):
            cursor = connection.cursor()
            cursor.execute(f"SELECT MIN({column}), MAX({column}) FROM {self.table.quoted}")
            low, high = cursor.fetchone()
        return None if low is None else (int(low), int(high))

    def scan(self, comparison: RowComparison, selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a selection."""
        snapshot = self._snapshot
        if comparison.names != [column.name for column in self.table.columns]:
            options = replace(self._options, columns=tuple(comparison.names))
            snapshot = TableSnapshot(self._settings, self._name, options)
        for chunk in snapshot.read(selection.choose_chunks(snapshot.plan())):
            for batch in chunk.batches:
                yield selection.filter_rows(batch, comparison)

    def read_keys(self, comparison: RowComparison, ids: Sequence[str]) -> list[pa.RecordBatch]:
        """Return the rows with these ids, and maybe others that the server takes for equal to them, as they are when
        all that is in its log can be seen."""
        columns = tuple(column for column in self.table.columns if column.name in comparison.names)
        decoder = RowDecoder(columns, self._options.decode)
        select = f"SELECT {', '.join(decoder.expressions)} FROM {self.table.quoted} WHERE "
        batches: list[pa.RecordBatch] = []
        # Each once: where the server finds rows by a part of the key, several ids have the same condition.
        found_by = dict.fromkeys(self._find_condition(comparison, name) for name in ids)
        conditions = [condition for condition in found_by if condition]
        with self._rows.open_view():
            for first in range(0, len(conditions), _KEYS_PER_QUERY):
                condition = " OR ".join(conditions[first : first + _KEYS_PER_QUERY])
                batches += self._rows.read(SelectQuery(select + condition, columns)).to_batches()
        return batches

    def _find_condition(self, comparison: RowComparison, name: str) -> str:
        """Return the SQL condition of the rows with an id; empty where no row can have it."""
        values = comparison.describe_key(name)
        parts: list[str] = []
        for column in self._find_key(comparison):
            value = values[column.name]
            literal = None if value is None else _find_literal(column, value)
            if literal is None:
                return ""
            parts.append(f"{column.quoted} = {literal}")
        return f"({' AND '.join(parts)})"

    def _find_key(self, comparison: RowComparison) -> list[KeyColumn]:
        """Return the columns by which the server finds rows of a key. Raises SchemaError if there are none."""
        names = {pair.name for pair in comparison.key}
        key = list(takewhile(lambda column: column.name in names, self.table.key))
        if not key:
            raise SchemaError(
                f"{self.description} has no key that begins with {' or '.join(sorted(names))}: rows that look different"
                " could not be read again; give it the key of the table that it mirrors"
            )
        return key

    def close(self) -> None:
        """Close the connections."""
        self._rows.close()


def _find_literal(column: KeyColumn, text: str) -> str | None:
    """Return the SQL of a value of a key; None where its column can have no such value."""
    try:
        return column.typed_value(text)
    except PenstockError:
        return None
