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
from penstock.render.json_lines import JsonValues
from penstock.render.mixed_json import MixedJson, mixed_json_rows
from penstock.render.row_plans import ColumnsOf, RowPlan, RowPlans
from penstock.render.weave import Chosen, Written, weave

ROW_FIELDS = pa.schema([pa.field("_table", pa.string()), pa.field("row", pa.string()), *CHANGE_FIELDS])
_DECODING = DecodeOptions(dates="text", partial_json="operations")
_ORDER = [("_seq", "ascending"), ("_row", "ascending")]


class RowValues(JsonValues):
    """For programs: what kind of text a column holds must not depend on its values."""

    def guessed(self, array: pa.Array) -> Written:
        return self.binary(array)


_VALUES = RowValues()


class JsonRows:
    """Of one stream. What it has found out of tables it remembers."""

    def __init__(self, columns_of: ColumnsOf) -> None:
        self._plans = RowPlans(columns_of)

    def of(self, block: Block) -> pa.RecordBatch | None:
        """Return all rows of a block in the order of the log, or None when it has none."""
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        if not events.size:
            return None
        ids = block.column("table_id")[events]
        there = distinct(ids)
        plans = self._plans.of(block, there)
        parts = list(self._parts(block, events, np.searchsorted(np.array(there, np.int64), ids), plans))
        if len(parts) > 1:
            return pa.Table.from_batches(parts).sort_by(_ORDER).combine_chunks().to_batches()[0]
        return parts[0] if parts else None

    def _parts(
        self, block: Block, events: NDArray[np.int64], table: NDArray[np.int64], plans: NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """Tables with few rows together, the others one after the other; `plans[table[i]]` is the number of the plan of
        event i."""
        program = self._plans.program[plans]
        alone = should_decode_alone(block, events, table, plans.size) | (program < 0)
        if not alone.all():
            mixed = ~alone[table]
            own = table[mixed]
            several = MixedJson(block, events[mixed], self._plans.programs, program[own])
            arrays = mixed_json_rows(several, _DECODING, _VALUES, self._plans.names, plans[own])
            if arrays is None:
                alone[:] = True
            elif len(arrays[0]):
                yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)
        for number in np.flatnonzero(alone).tolist():
            yield from _of_table(block, events[table == number], self._plans[int(plans[number])])


def _of_table(block: Block, events: NDArray[np.int64], plan: RowPlan) -> Iterator[pa.RecordBatch]:
    fields = arrow_fields_of_table(plan.table, [column.name for column in plan.columns], _DECODING)
    for changes in decode_changes_at(block, events, plan.table, fields, _DECODING):
        rows: int = changes.num_rows
        if rows:
            arrays = [_repeated(plan.table.name, rows), _texts(plan.columns, changes), *changes.columns[len(fields) :]]
            yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)


def _repeated(name: TableName, rows: int) -> pa.Array:
    return to_arrow_strings([str(name)]).take(to_arrow_numbers(np.zeros(rows, np.int8)))


def _texts(columns: Sequence[Column], changes: pa.RecordBatch) -> pa.Array:
    every, line = np.arange(changes.num_rows, dtype=np.int64), list[str | Chosen]()
    for number, column in enumerate(columns):
        head = json.dumps(column.name, ensure_ascii=False)
        line += [f"{',' if number else '{'}{head}:", _VALUES.write(column, changes.column(number)).at(every)]
    return weave([*line, "}" if columns else "{}"], changes.num_rows).cast(pa.string())
