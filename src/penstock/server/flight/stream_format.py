"""How captured blocks become Arrow batches of a stream: raw events, the columns of one table, or rows of any table as
JSON."""

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
from penstock.store.rows_filter import TableFilter


class StreamFormat(ABC):
    """Turns blocks into Arrow batches that all have the same schema."""

    schema: pa.Schema

    @abstractmethod
    def to_batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        """Yield the Arrow batches of a block. A batch that cannot be decoded without its block's index comes with the
        block."""

    def to_joined_batches(self, blocks: Sequence[Block]) -> list[tuple[pa.RecordBatch, Block | None]]:
        """Return all rows of several blocks as one batch, where batches need no block to be decoded. Empty batches are
        left out."""
        batches = [batch for block in blocks for batch in self.to_batches(block) if batch[0].num_rows]
        if len(batches) < 2 or any(block is not None for _, block in batches):
            return batches
        return [(pa.concat_batches([batch for batch, _ in batches]), None)]

    @property
    def empty_batch(self) -> pa.RecordBatch:
        """Return a batch of this schema without rows."""
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in self.schema], schema=self.schema)


def choose_format(request: FlightRequest, instance: Instance, table_filter: TableFilter | None) -> StreamFormat:
    """Return the format of the stream that a request asks for. Raises SchemaError for a table that is not captured."""
    for table in request.tables:
        check_captured(instance, table)
    if request.form == "raw":
        return RawEventsFormat(table_filter)
    if len(request.tables) == 1:
        return TableColumnsFormat(instance, request.tables[0], request.columns)
    instance.check_letter_case(request.tables)
    return JsonRowsFormat(instance, table_filter)


class RawEventsFormat(StreamFormat):
    """Sends binlog events as raw bytes: all events, or the rows events of the selected tables."""

    schema = EVENT_SCHEMA

    def __init__(self, table_filter: TableFilter | None) -> None:
        self._table_filter = table_filter

    def to_batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        """Yield the selected events of a block as one Arrow batch of raw bytes, with the block that decodes them;
        nothing when none is selected."""
        selected = block if self._table_filter is None else block.select_tables_where(self._table_filter)
        if len(selected):
            yield selected.events, selected


class JsonRowsFormat(StreamFormat):
    """Sends row changes of any table as one line each, with the row as JSON."""

    schema = ROW_FIELDS

    def __init__(self, instance: Instance, table_filter: TableFilter | None) -> None:
        self._table_filter = table_filter
        self._rows = JsonRowReader(ColumnRules.from_settings(instance.settings.filter.columns).columns_to_show)

    def to_batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        """Yield the selected row changes of a block as one Arrow batch, with each row as JSON; nothing when there are
        none."""
        selected = block if self._table_filter is None else block.select_tables_where(self._table_filter)
        if (batch := self._rows.read_block(selected)) is not None:
            yield batch, None


class TableColumnsFormat(StreamFormat):
    """Sends row changes of one table in its own columns, as they are when the stream begins, followed by the change
    columns (kind of change, commit time, order)."""

    def __init__(self, instance: Instance, table: TableName, columns: tuple[str, ...]) -> None:
        self._instance, self._table, self._chosen = instance, table, columns
        self._schema_at_start = described = self._describe_table()
        self._fields = select_fields(table, described, columns or None)
        self.schema = with_change_fields(self._fields.with_metadata({"table": str(table)}))
        self._last: tuple[TableSchema, TableSchema] | None = None
        # Columns that it has, or had once.
        self._known = {*described.names, *refused_columns(described)}

    def _describe_table(self) -> pa.Schema:
        """Return the Arrow schema of the table as it is now."""
        return describe_tables(self._instance, [self._table])[0]

    def to_batches(self, block: Block) -> Iterator[tuple[pa.RecordBatch, Block | None]]:
        """Yield the row changes of the table in a block as Arrow batches in the columns of the stream. Raises
        TableAlteredError when the table has other columns by now."""
        for events, table in group_by_table_version(block, self._table):
            if not self._known.issuperset(names := [column.name for column in table.declared_columns]):
                self._check_not_altered(names)
            try:
                schema = self._with_stream_columns(table)
                batches = list(decode_changes_at(block, events, schema, self._fields, DEFAULT, self.schema))
            except SchemaError:
                self._check_not_altered(names)
                raise
            yield from ((batch, None) for batch in batches if batch.num_rows)

    def _with_stream_columns(self, table: TableSchema) -> TableSchema:
        """Return a table version with the column types of this stream. The last one is remembered: it is asked for with
        every commit."""
        if self._last is None or self._last[0] is not table:
            self._last = table, with_declared(table, self._fields)
        return self._last[1]

    def _check_not_altered(self, names: list[str]) -> None:
        """Raise TableAlteredError if the table was altered since the stream began. A column that is unknown may also be
        one that was dropped before."""
        if self._describe_table() != self._schema_at_start:
            raise TableAlteredError(f"table {self._table} has other columns now: open the stream again")
        self._known.update(names)


def with_change_fields(fields: pa.Schema) -> pa.Schema:
    """Return the columns of a table followed by the change columns: kind of change, commit time, order."""
    change_fields = map(pa.Field.with_name, CHANGE_FIELDS, choose_free_names(CHANGE_FIELDS.names, fields.names))
    return pa.schema([*fields, *change_fields], metadata=fields.metadata)


def check_captured(instance: Instance, table: TableName) -> None:
    """Raise SchemaError for a table that the instance's filter leaves out: a stream of it would stay empty for ever."""
    verdict = explain_filter(instance.settings.filter, table)
    if not verdict.passes:
        raise SchemaError(
            f"table {table} does not pass the filter of '{instance.settings.destination}': {verdict.reason}"
        )


def describe_tables(instance: Instance, tables: list[TableName]) -> list[pa.Schema]:
    """Return the Arrow schemas of tables as they are now, without the columns that the filter hides."""
    for table in tables:
        check_captured(instance, table)
    rules = ColumnRules.from_settings(instance.settings.filter.columns)
    return [
        describe_table(replace(table, columns=rules.columns_to_show(table)))
        for table in instance.describe_tables(tables)
    ]
