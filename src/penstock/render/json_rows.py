"""Rows of any table in one shape: the row as a JSON text beside the columns that say what, when and in which order.

Values are those of `json_lines`; a column that an image does not carry is null, and named in `_absent`. A JSON document
of which the log has only changes is such a column, and `_partial` has the operations.
"""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct, to_arrow_numbers, to_arrow_strings
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.changes import decode_changes_at
from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table
from penstock.binlog.rows.mixed import should_decode_alone
from penstock.binlog.values.column import DecodeOptions
from penstock.model import Column, TableName
from penstock.render.json_lines import JsonValueWriter
from penstock.render.mixed_json import MixedRowsInput, read_mixed_rows
from penstock.render.row_plans import ColumnsOf, RowPlan, RowPlanCache
from penstock.render.weave import ColumnPiece, FormattedColumn, write_lines

ROW_FIELDS = pa.schema([pa.field("_table", pa.string()), pa.field("row", pa.string()), *CHANGE_FIELDS])
_DECODING = DecodeOptions(dates="text", partial_json="operations")
_ORDER = [("_seq", "ascending"), ("_row", "ascending")]


class TypedJsonWriter(JsonValueWriter):
    """Writes values as JSON for programs: what kind of text a column holds does not depend on its values."""

    def write_guessed_texts(self, array: pa.Array) -> FormattedColumn:
        """Write texts whose charset is unknown always as bytes."""
        return self.write_binaries(array)


_VALUES = TypedJsonWriter()


class JsonRowReader:
    """Turns the blocks of one stream into row images as JSON texts; plans of tables are cached between blocks."""

    def __init__(self, columns_of: ColumnsOf) -> None:
        self._plans = RowPlanCache(columns_of)

    def read_block(self, block: Block) -> pa.RecordBatch | None:
        """Return all row images of a block in the order of the log, or None if it has none."""
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        if not events.size:
            return None
        ids = block.column("table_id")[events]
        table_ids = distinct(ids)
        plans = self._plans.find_or_add(block, table_ids)
        parts = list(self._read_rows(block, events, np.searchsorted(np.array(table_ids, np.int64), ids), plans))
        if len(parts) > 1:
            return pa.Table.from_batches(parts).sort_by(_ORDER).combine_chunks().to_batches()[0]
        return parts[0] if parts else None

    def _read_rows(
        self, block: Block, events: NDArray[np.int64], table: NDArray[np.int64], plans: NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tables with few rows together, and of the others one by one; `plans[table[i]]` is the
        number of the plan of event i.
        """
        program = self._plans.programs_by_plan[plans]
        alone = should_decode_alone(block, events, table, plans.size) | (program < 0)
        if not alone.all():
            is_mixed = ~alone[table]
            own = table[is_mixed]
            mixed_events = MixedRowsInput(block, events[is_mixed], self._plans.programs, program[own])
            arrays = read_mixed_rows(mixed_events, _DECODING, _VALUES, self._plans.names, plans[own])
            if arrays is None:
                alone[:] = True
            elif len(arrays[0]):
                yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)
        for number in np.flatnonzero(alone).tolist():
            yield from _read_table_rows(block, events[table == number], self._plans[int(plans[number])])


def _read_table_rows(block: Block, events: NDArray[np.int64], plan: RowPlan) -> Iterator[pa.RecordBatch]:
    """Yield the row images of the rows events of one table version."""
    fields = arrow_fields_of_table(plan.table, [column.name for column in plan.columns], _DECODING)
    for changes in decode_changes_at(block, events, plan.table, fields, _DECODING):
        rows: int = changes.num_rows
        if rows:
            arrays = [
                _repeat_name(plan.table.name, rows),
                _write_objects(plan.columns, changes),
                *changes.columns[len(fields) :],
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)


def _repeat_name(name: TableName, rows: int) -> pa.Array:
    """Return the name of a table as a column of so many rows."""
    return to_arrow_strings([str(name)]).take(to_arrow_numbers(np.zeros(rows, np.int8)))


def _write_objects(columns: Sequence[Column], changes: pa.RecordBatch) -> pa.Array:
    """Write each row image as a JSON object."""
    rows, line = np.arange(changes.num_rows, dtype=np.int64), list[str | ColumnPiece]()
    for number, column in enumerate(columns):
        head = json.dumps(column.name, ensure_ascii=False)
        line += [
            f"{',' if number else '{'}{head}:",
            _VALUES.write_column(column, changes.column(number)).pick_rows(rows),
        ]
    return write_lines([*line, "}" if columns else "{}"], changes.num_rows).cast(pa.string())
