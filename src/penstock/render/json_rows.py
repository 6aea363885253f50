"""Rows of any table in one shape: the row as a JSON text beside the columns that say what, when and in which order.

Values are those of `json_lines`; a column that an image does not carry is null, and named in `_absent`. A JSON document
of which the log has only changes is such a column, and `_partial` has the operations.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct, numbers, texts
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.changes import changes_at
from penstock.binlog.rows.decode import has_old_times
from penstock.binlog.rows.fields import CHANGE_FIELDS, table_fields
from penstock.binlog.rows.mixed import are_alone
from penstock.binlog.rows.programs import MOST_TABLES, TablePrograms
from penstock.binlog.values.column import Decoding
from penstock.model import Column, TableName, TableSchema
from penstock.render.json_lines import JsonValues
from penstock.render.mixed_json import MixedJson, mixed_json_rows
from penstock.render.weave import Chosen, Written, weave

ROW_FIELDS = pa.schema([pa.field("_table", pa.string()), pa.field("row", pa.string()), *CHANGE_FIELDS])
_DECODING = Decoding(dates="text", partial_json="operations")
_ORDER = [("_seq", "ascending"), ("_row", "ascending")]

ColumnsOf = Callable[[TableSchema], Sequence[Column]]


class _RowValues(JsonValues):
    """For programs: what kind of text a column holds must not depend on its values."""

    def guessed(self, array: pa.Array) -> Written:
        return self.binary(array)


_VALUES = _RowValues()


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A table, the columns of it that are shown, and its program; -1: it is decoded by itself."""

    table: TableSchema
    columns: Sequence[Column]
    program: int


class JsonRows:
    """Of one stream. What it has found out of tables it remembers."""

    def __init__(self, columns_of: ColumnsOf) -> None:
        self._columns_of = columns_of
        self._plans: dict[bytes, tuple[str, _Plan]] = {}  # by table map
        self._shapes: dict[tuple[object, ...], tuple[tuple[Column, ...], int]] = {}
        self._programs = TablePrograms(has_labels=True)

    def of(self, block: Block) -> pa.RecordBatch | None:
        """All rows of a block, in the order of the log."""
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        if not events.size:
            return None
        ids = block.column("table_id")[events]
        several = distinct(ids)
        plans = self._planned(block, several)
        table = np.searchsorted(np.array(several, np.int64), ids)
        parts = list(self._parts(block, events, table, plans))
        if len(parts) > 1:
            return pa.Table.from_batches(parts).sort_by(_ORDER).combine_chunks().to_batches()[0]
        return parts[0] if parts else None

    def _parts(
        self, block: Block, events: NDArray[np.int64], table: NDArray[np.int64], plans: Sequence[_Plan]
    ) -> Iterator[pa.RecordBatch]:
        """Tables with few rows together, the others one after the other; `table` is the number of each event's plan."""
        program = np.array([plan.program for plan in plans], np.int64)
        alone = are_alone(block, events, table, len(plans)) | (program < 0)
        if not alone.all():
            mixed = ~alone[table]
            own = table[mixed]
            names = texts([str(plan.table.name) for plan in plans])
            several = MixedJson(block, events[mixed], self._programs, program[own], names, own)
            arrays = mixed_json_rows(several, _DECODING, _VALUES)
            if arrays is None:
                alone[:] = True
            elif len(arrays[0]):
                yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)
        for number in np.flatnonzero(alone).tolist():
            yield from _of_table(block, events[table == number], plans[number])

    def _planned(self, block: Block, ids: Sequence[int]) -> list[_Plan]:
        if self._programs.is_full or len(self._plans) >= MOST_TABLES:
            self._plans, self._shapes, self._programs = {}, {}, TablePrograms(has_labels=True)
        found = list[_Plan]()
        for number in ids:
            known = self._plans.get(block.tables[number])
            if known is None or known[0] != block.server_version or number in block.problems:
                known = block.server_version, self._plan(block.schema_of(number), block.server_version)
                self._plans[block.tables[number]] = known
            found.append(known[1])
        return found

    def _plan(self, table: TableSchema, server_version: str) -> _Plan:
        """Tables that differ in their names only have one program."""
        columns = self._columns_of(table)
        if has_old_times(table, server_version):
            return _Plan(table, columns, -1)
        names = tuple(column.name for column in columns)
        known = self._shapes.get((id(table.columns), names))
        if known is None:
            program = self._programs.add(table, columns, _column_texts(table, {*names}))
            known = self._shapes[id(table.columns), names] = table.columns, program
        return _Plan(table, columns, known[1])


def _column_texts(table: TableSchema, shown: set[str]) -> list[bytes]:
    """What comes before the value of a column in the object, and its name."""
    found, mark = list[bytes](), "{"
    for column in table.columns:
        found += [f"{mark}{json.dumps(column.name, ensure_ascii=False)}:".encode(), column.name.encode()]
        if column.name in shown:
            mark = ","
    return found


def _of_table(block: Block, events: NDArray[np.int64], plan: _Plan) -> Iterator[pa.RecordBatch]:
    fields = table_fields(plan.table, [column.name for column in plan.columns], _DECODING)
    for changes in changes_at(block, events, plan.table, fields, _DECODING):
        rows: int = changes.num_rows
        if rows:
            arrays = [_repeated(plan.table.name, rows), _texts(plan.columns, changes), *changes.columns[len(fields) :]]
            yield pa.RecordBatch.from_arrays(arrays, schema=ROW_FIELDS)


def _repeated(name: TableName, rows: int) -> pa.Array:
    return texts([str(name)]).take(numbers(np.zeros(rows, np.int8)))


def _texts(columns: Sequence[Column], changes: pa.RecordBatch) -> pa.Array:
    every, line = np.arange(changes.num_rows, dtype=np.int64), list[str | Chosen]()
    for number, column in enumerate(columns):
        head = json.dumps(column.name, ensure_ascii=False)
        line += [f"{',' if number else '{'}{head}:", _VALUES.write(column, changes.column(number)).at(every)]
    return weave([*line, "}" if columns else "{}"], changes.num_rows).cast(pa.string())
