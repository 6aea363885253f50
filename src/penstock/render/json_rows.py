"""Rows of any table in one shape: the row as a JSON text beside the columns that say what, when and in which order.

Values are those of `json_lines`; a column that an image does not carry is null, and named in `_absent`. A JSON document
of which the log has only changes is such a column, and `_partial` has the operations.
"""

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import numbers, texts
from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import changes_at, versions_of
from penstock.binlog.rows.fields import CHANGE_FIELDS, table_fields
from penstock.binlog.values.column import Decoding
from penstock.model import Column, TableName, TableSchema
from penstock.render.json_lines import JsonValues
from penstock.render.weave import Chosen, weave

ROW_FIELDS = pa.schema([pa.field("_table", pa.string()), pa.field("row", pa.string()), *CHANGE_FIELDS])
_DECODING = Decoding(dates="text", partial_json="operations")
_VALUES = JsonValues()
_ORDER = [("_seq", "ascending"), ("_row", "ascending")]

ColumnsOf = Callable[[TableSchema], Sequence[Column]]


def json_rows(block: Block, columns_of: ColumnsOf) -> pa.RecordBatch | None:
    """All rows of a block, in the order of the log."""
    names = dict.fromkeys(table_name(body) for body in block.tables.values())
    parts = [part for name in names for part in _of_table(block, name, columns_of)]
    if len(parts) > 1:
        return pa.Table.from_batches(parts).sort_by(_ORDER).combine_chunks().to_batches()[0]
    return parts[0] if parts else None


def _of_table(block: Block, name: TableName, columns_of: ColumnsOf) -> Iterator[pa.RecordBatch]:
    for events, table in versions_of(block, name):
        columns = columns_of(table)
        fields = table_fields(table, [column.name for column in columns], _DECODING)
        for changes in changes_at(block, events, table, fields, _DECODING):
            rows: int = changes.num_rows
            if rows:
                names = texts([str(name)]).take(numbers(np.zeros(rows, np.int8)))
                arrays = [names, _texts(columns, changes), *changes.columns[len(fields) :]]
                yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)


def _texts(columns: Sequence[Column], changes: pa.RecordBatch) -> pa.Array:
    every, line = np.arange(changes.num_rows, dtype=np.int64), list[str | Chosen]()
    for number, column in enumerate(columns):
        head = json.dumps(column.name, ensure_ascii=False)
        line += [f"{',' if number else '{'}{head}:", _VALUES.write(column, changes.column(number)).at(every)]
    return weave([*line, "}" if columns else "{}"], changes.num_rows).cast(pa.string())
