"""Rows of a snapshot in the columns of a change stream."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.errors import SchemaError
from penstock.model import Position, TableName
from penstock.model.sequence import Sequence as LogSequence
from penstock.spark.struct_rows import rows_per_batch
from penstock.spark.types import cast_for_spark

_KIND = "snapshot"


def flat_batch(
    table: TableName, rows: pa.RecordBatch, fields: pa.Schema, schema: pa.Schema, position: Position
) -> pa.RecordBatch:
    """Return rows of a table with the change columns behind them."""
    columns = [_cast(table, rows, name, schema.field(index).type) for index, name in enumerate(fields.names)]
    return pa.RecordBatch.from_arrays([*columns, *_change_columns(rows.num_rows, schema, position)], schema=schema)


def struct_batches_of(
    table: TableName, rows: pa.RecordBatch, tables: Sequence[TableName], schema: pa.Schema, position: Position
) -> Iterator[pa.RecordBatch]:
    """Yield rows of one of several tables: its struct is filled, those of the others are null."""
    step = rows_per_batch(schema)
    for first in range(0, rows.num_rows, step):
        part = rows.slice(first, step)
        columns: list[pa.Array] = [pa.repeat(pa.scalar(str(table)), part.num_rows)]
        for number, other in enumerate(tables, 1):
            kind = schema.field(number).type
            if other != table:
                columns.append(pa.nulls(part.num_rows, kind))
                continue
            members = [kind.field(index) for index in range(kind.num_fields)]
            arrays = [_cast(table, part, member.name, member.type) for member in members]
            columns.append(pa.StructArray.from_arrays(arrays, fields=members))
        columns += _change_columns(part.num_rows, schema, position)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(table: TableName, rows: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column of rows in the type that the query has for it."""
    column = rows.column(rows.schema.get_field_index(name))
    try:
        return cast_for_spark(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"column {name} of {table} is {column.type} now, and the query was started with {kind}: the table was"
            " altered; start the query again with its checkpoint"
        ) from error


def _change_columns(count: int, schema: pa.Schema, position: Position) -> list[pa.Array]:
    """Return the change columns of rows that were there at a position: they come before every change behind it."""
    sequence = int(LogSequence.from_position(position))
    transaction = int(LogSequence.from_position(position.boundary))
    values = {
        "_change_type": _KIND,
        "_commit_version": transaction,
        "_seq": sequence,
        "_row": 0,
        "_file": position.file,
        "_offset": position.offset,
    }
    kinds = schema.types[-len(CHANGE_FIELDS) :]
    return [
        pa.nulls(count, kind) if name not in values else pa.repeat(pa.scalar(values[name], kind), count)
        for name, kind in zip(CHANGE_FIELDS.names, kinds, strict=True)
    ]
