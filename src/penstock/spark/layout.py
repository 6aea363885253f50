"""The columns of a `penstock` stream, and how a block's changes are put into them.

One table: its columns, then the change columns. Several tables: `_table`, one nullable struct per table that holds
the row of a change in that table, then the change columns.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from penstock.binlog.rows.fields import CHANGE_FIELDS, choose_free_names, select_fields
from penstock.binlog.values.column import DecodeOptions
from penstock.client import FlightClient
from penstock.model import Position, TableName
from penstock.model.table_rules import TableRules
from penstock.spark.generic_layout import GenericLayout
from penstock.spark.options import ReadOptions
from penstock.spark.types import cast_for_spark, for_spark

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block
    from penstock.spark.delivered_rows import DeliveredRows
    from penstock.spark.struct_rows import StructRows


class ChangeLayout(Protocol):
    """Puts the changes of a block into the columns of a query. It is picklable, and travels to the executors."""

    schema: pa.Schema

    def batches(self, block: "Block", delivered: "DeliveredRows | None" = None) -> Iterator[pa.RecordBatch]:
        """Return all changes of a block in the order of the log, or those of rows that were delivered."""
        ...


def layout_of(options: ReadOptions, client: FlightClient) -> ChangeLayout:
    """Return how the changes of a query look, as the server has the tables now."""
    if not options.filter:
        return TableLayout.ask(options, client)
    from penstock.config import ColumnSettings  # noqa: PLC0415 - brings pydantic, which queries of tables do without
    from penstock.filter import ColumnRules  # noqa: PLC0415

    shown = ColumnRules.from_settings(
        [ColumnSettings.model_validate(settings) for settings in client.column_settings()]
    )
    rules = TableRules.parse(options.filter)
    return GenericLayout(rules, include_ddl=options.includes_ddl, columns_of=shown.columns_to_show)


class TableLayout:
    """Puts the changes of one or several tables into the columns of a query. It is picklable: it travels to the
    executors with the reader."""

    def __init__(self, options: ReadOptions, fields: dict[TableName, pa.Schema]) -> None:
        self._is_flat = options.is_flat
        self._names = options.struct_names()
        self._fields = fields
        self._decoding = DecodeOptions(partial_json=options.partial_json)
        self.schema = self._schema()
        self._struct_rows: StructRows | None = None  # of several tables; each task makes its own

    @classmethod
    def ask(cls, options: ReadOptions, client: FlightClient) -> "TableLayout":
        """Ask the Penstock server for the present columns of a query's tables, and return their layout."""
        described = client.describe_tables(options.tables)
        fields = {
            table: select_fields(table, schema, options.columns_of(table))
            for table, schema in zip(options.tables, described, strict=True)
        }
        return cls(options, fields)

    def _schema(self) -> pa.Schema:
        if self._is_flat:
            (fields,) = self._fields.values()
            ours = map(pa.Field.with_name, CHANGE_FIELDS, choose_free_names(CHANGE_FIELDS.names, fields.names))
            return for_spark(pa.schema([*fields, *ours]))
        structs = [pa.field(self._names[table], pa.struct(list(fields))) for table, fields in self._fields.items()]
        return for_spark(pa.schema([pa.field("_table", pa.string()), *structs, *CHANGE_FIELDS]))

    def columns_of(self, table: TableName) -> list[str]:
        """Return the columns of a table that the query has."""
        return self._fields[table].names

    def snapshot_batches(self, table: TableName, rows: pa.RecordBatch, position: Position) -> Iterator[pa.RecordBatch]:
        """Yield rows of a table as they were at a position, with `snapshot` as the kind of change."""
        from penstock.spark.snapshot_rows import flat_batch, struct_batches_of  # noqa: PLC0415

        fields = self._fields[table]
        if self._is_flat:
            yield flat_batch(table, rows, fields, self.schema, position)
        else:
            yield from struct_batches_of(table, rows, list(self._fields), self.schema, position)

    def batches(self, block: "Block", delivered: "DeliveredRows | None" = None) -> Iterator[pa.RecordBatch]:
        """Yield all changes of a block in log order, or those of rows that were delivered."""
        # What decodes brings numba, which planning does without.
        if not self._is_flat:
            from penstock.spark.struct_rows import StructRows  # noqa: PLC0415

            if self._struct_rows is None:
                self._struct_rows = StructRows(self._fields, self.schema, self._decoding)
            yield from self._struct_rows.batches(block, delivered)
            return
        from penstock.binlog.rows.changes import decode_changes  # noqa: PLC0415

        ((table, fields),) = self._fields.items()
        decoded = decode_changes(block, table, fields, self._decoding)
        if delivered is not None:
            decoded = (delivered.select(table, changes) for changes in decoded)
        parts = [self._cast(changes) for changes in decoded if changes.num_rows]
        if len(parts) > 1:
            ours = dict(zip(CHANGE_FIELDS.names, self.schema.names[-len(CHANGE_FIELDS) :], strict=True))
            order = [(ours[name], "ascending") for name in ("_seq", "_row")]
            yield from pa.Table.from_batches(parts).sort_by(order).combine_chunks().to_batches()
        else:
            yield from parts

    def _cast(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            cast_for_spark(column, field.type) for column, field in zip(changes.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
