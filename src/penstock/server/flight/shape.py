"""What a stream looks like: events as they are, the columns of one table, or rows of any table as JSON."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.binlog.events.block import EVENT_SCHEMA, Block
from penstock.binlog.rows.changes import decode_changes_at, group_by_table_version
from penstock.binlog.rows.fields import (
    CHANGE_FIELDS,
    choose_free_names,
    describe_table,
    refused_columns,
    select_fields,
    with_declared,
)
from penstock.binlog.values.column import DEFAULT
from penstock.errors import SchemaError, TableAlteredError
from penstock.filter import ColumnRules, explain_filter
from penstock.instance import Instance
from penstock.model import TableName, TableSchema
from penstock.render.json_rows import ROW_FIELDS, JsonRowReader
from penstock.server.flight.request import FlightRequest
from penstock.store.client import TableFilter


class Shape(ABC):
    schema: pa.Schema

    @abstractmethod
    def batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        """With the block, where a batch cannot be read without what that says."""

    def join(self, blocks: Sequence[Block]) -> list[tuple[pa.RecordBatch, Block | None]]:
        """Everything of these blocks in one batch, where it can be read without a block; no batch for no lines."""
        batches = [found for block in blocks for found in self.batches(block) if found[0].num_rows]
        if len(batches) < 2 or any(block is not None for _, block in batches):
            return batches
        return [(pa.concat_batches([batch for batch, _ in batches]), None)]

    @property
    def nothing(self) -> pa.RecordBatch:
        """A batch without lines."""
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in self.schema], schema=self.schema)


def shape_of(request: FlightRequest, instance: Instance, wanted: TableFilter | None) -> Shape:
    for table in request.tables:
        _check_passes(instance, table)
    if request.form == "raw":
        return RawShape(wanted)
    if len(request.tables) == 1:
        return TableShape(instance, request.tables[0], request.columns)
    return RowsShape(instance, wanted)


class RawShape(Shape):
    """Of some tables their rows, of all everything that the log has."""

    schema = EVENT_SCHEMA

    def __init__(self, wanted: TableFilter | None) -> None:
        self._wanted = wanted

    def batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        shown = block if self._wanted is None else block.select_tables_where(self._wanted)
        if len(shown):
            yield shown.events, shown


class RowsShape(Shape):
    schema = ROW_FIELDS

    def __init__(self, instance: Instance, wanted: TableFilter | None) -> None:
        self._wanted = wanted
        self._rows = JsonRowReader(ColumnRules.from_settings(instance.settings.filter.columns).columns_to_show)

    def batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        shown = block if self._wanted is None else block.select_tables_where(self._wanted)
        if (found := self._rows.read_block(shown)) is not None:
            yield found, None


class TableShape(Shape):
    """Its columns as they are when the stream begins, then those that say what, when and in which order."""

    def __init__(self, instance: Instance, table: TableName, columns: tuple[str, ...]) -> None:
        self._instance, self._table, self._chosen = instance, table, columns
        self._described = described = self._describe()
        self._fields = select_fields(table, described, columns or None)
        self.schema = with_change_fields(self._fields.with_metadata({"table": str(table)}))
        self._last: tuple[TableSchema, TableSchema] | None = None
        # Columns that it has, or had once.
        self._known = {*described.names, *refused_columns(described)}

    def _describe(self) -> pa.Schema:
        return describe(self._instance, [self._table])[0]

    def batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        for events, table in group_by_table_version(block, self._table):
            if not self._known.issuperset(names := [column.name for column in table.declared_columns]):
                self._look_again(names)
            try:
                shape = self._declared(table)
                found = list(decode_changes_at(block, events, shape, self._fields, DEFAULT, self.schema))
            except SchemaError:
                self._look_again(names)
                raise
            yield from ((batch, None) for batch in found if batch.num_rows)

    def _declared(self, table: TableSchema) -> TableSchema:
        """The last version is remembered: it is asked for with every commit."""
        if self._last is None or self._last[0] is not table:
            self._last = table, with_declared(table, self._fields)
        return self._last[1]

    def _look_again(self, names: list[str]) -> None:
        """A column that was not there when the stream began is new, or was dropped before that."""
        if self._describe() != self._described:
            raise TableAlteredError(f"table {self._table} has other columns now: open the stream again")
        self._known.update(names)


def with_change_fields(fields: pa.Schema) -> pa.Schema:
    """A table's columns, then those that say what, when and in which order."""
    ours = map(pa.Field.with_name, CHANGE_FIELDS, choose_free_names(CHANGE_FIELDS.names, fields.names))
    return pa.schema([*fields, *ours], metadata=fields.metadata)


def _check_passes(instance: Instance, table: TableName) -> None:
    """Of what an instance leaves out nothing would ever come."""
    found = explain_filter(instance.settings.filter, table)
    if not found.passes:
        raise SchemaError(
            f"table {table} does not pass the filter of '{instance.settings.destination}': {found.reason}"
        )


def describe(instance: Instance, tables: list[TableName]) -> list[pa.Schema]:
    """As they are now, without the columns that nobody is to see."""
    for table in tables:
        _check_passes(instance, table)
    chosen = ColumnRules.from_settings(instance.settings.filter.columns)
    return [
        describe_table(replace(table, columns=chosen.columns_to_show(table))) for table in instance.describe(tables)
    ]
